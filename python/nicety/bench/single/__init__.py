"""Benchmarks of a single card: the contexts of its microengines, and its access to host memory."""
