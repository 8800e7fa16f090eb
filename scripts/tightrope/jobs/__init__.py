"""How a script runs: its arguments, its log, its supervised child process."""
