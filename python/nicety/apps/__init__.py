"""Applications on network flow processors: distinct addresses of a capture, and tours of a travelling salesman."""
