"""Benchmarks of ranks on grids and tori."""
