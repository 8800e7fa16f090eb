"""One module per runtime; each has `build` and `load`, and imports its runtime itself."""
