"""One module per runtime, with `build` and `load`; only that module imports the runtime."""
