"""Profiles of handlers: their cycles by instruction, line, function and call."""
