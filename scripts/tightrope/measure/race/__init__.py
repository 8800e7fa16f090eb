"""Race the finalists of a model on one device to decide which is the fastest."""
