"""Race the finalists of a model on one device."""
