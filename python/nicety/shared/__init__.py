"""Shared by all packages: checks of arguments, files, numbers and texts."""
