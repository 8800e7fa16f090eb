"""Script runtime: job arguments, log, supervised child process.

- `job`: the entry point of every script
- `execution`: how a job runs, and its one output or why it has none
- `child`: work in child processes, within the limits of the job
- `progress`: the bar of a long step in the job's log
"""
