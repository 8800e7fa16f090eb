"""A small and a large model served as one: its threshold, its answers and its throughput."""
