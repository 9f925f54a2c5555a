"""`nicety bench`: what becomes of a report, and the commands."""
