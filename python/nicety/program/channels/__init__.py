"""Channels and processes: what network flow processors offer to programs."""
