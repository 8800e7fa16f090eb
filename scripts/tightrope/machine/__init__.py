"""Facts about this machine: hardware, missing requirements and load of other programs.

- `host`: its description, by which results are comparable
- `cores`: the CPU cores that this process may use
- `processes`: parents and children of this process, their memory, and how they end
- `counters`: CPU time, waiting, idle time and energy
- `interference`: other load, and whether it disturbed a measurement
- `nvml`: the NVIDIA GPU and its state
- `lacks`: what is missing to build or run a variant
- `distributions`: installed distributions, what they need and their licences
"""
