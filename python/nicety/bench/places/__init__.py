"""XDP programs on cards and in hosts' drivers, lost frames, and pictures of line-rate checks."""
