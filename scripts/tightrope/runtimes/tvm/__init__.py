"""What the TVM engine is made of."""
