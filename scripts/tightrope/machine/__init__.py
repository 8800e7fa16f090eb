"""What this computer is, what it lacks, and who else keeps it busy."""
