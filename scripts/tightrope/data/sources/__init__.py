"""One module per kind of data source, loaded by name."""
