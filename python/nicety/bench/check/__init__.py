"""The checker of handlers."""
