"""Parts of the TVM engine."""
