"""Clusters, hosts, and the calls of their programs; what a run leaves."""
