"""Script runtime: job arguments, log, supervised child process."""
