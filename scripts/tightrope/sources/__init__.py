"""Access shared by checkpoint and data sources: Hub, packages, archives, tables, patterns."""
