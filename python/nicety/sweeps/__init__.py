"""Sweeps: one function or command at every point of a grid of parameters, on any executor."""
