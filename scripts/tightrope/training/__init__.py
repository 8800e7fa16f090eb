"""Fine-tune a model and measure its training time."""
