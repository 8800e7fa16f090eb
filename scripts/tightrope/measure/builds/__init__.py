"""Build an engine several times and compare the builds."""
