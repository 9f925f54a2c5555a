"""`nicety sweep`."""
