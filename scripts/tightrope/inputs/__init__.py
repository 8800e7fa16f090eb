"""Preprocessing of examples into model inputs."""
