"""Archives that serve a built engine, from the engine and its measurements."""
