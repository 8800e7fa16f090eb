"""From records to summary.json; needs no engine."""
