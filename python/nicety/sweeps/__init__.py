"""Sweeps: a function or a command is run at every point of a grid of parameters, on any executor."""
