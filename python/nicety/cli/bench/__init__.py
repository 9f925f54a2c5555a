"""`nicety bench`: the output of reports, and the commands."""
