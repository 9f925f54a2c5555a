"""Benchmarks, a file for each: the request, the rows, the text and the picture."""
