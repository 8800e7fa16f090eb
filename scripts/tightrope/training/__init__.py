"""Fine-tune a model, and time its training."""
