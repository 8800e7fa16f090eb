"""What holds an engine back: its operators, the peaks of the machine, a verdict."""
