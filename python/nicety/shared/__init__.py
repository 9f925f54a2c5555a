"""Shared by all rooms: checks of arguments, files, numbers and texts."""
