"""What a model does, by the names that transformers gives its pipelines."""

TEXT = "text-classification"
IMAGE = "image-classification"
