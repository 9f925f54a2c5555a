"""Channels and processes: the interface of network flow processors to programs."""
