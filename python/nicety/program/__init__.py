"""Clusters, hosts, the calls of their programs, and the results of a run."""
