"""Benchmarks, one per file: the request, the rows, the text and the picture."""
