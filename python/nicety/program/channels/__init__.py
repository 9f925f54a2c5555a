"""Channels and processes: the interface to the programs on network flow processors."""
