"""Access shared by checkpoint and data sources.

- `local`: paths of a pattern, packages, files and archives on this machine
- `tables`: columns of local tables
- `hub`: the Hugging Face Hub
"""
