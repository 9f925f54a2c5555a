"""XDP programs on cards and in hosts' drivers, and pictures of line-rate checks."""
