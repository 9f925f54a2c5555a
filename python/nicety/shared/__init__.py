"""Code that all packages share: checks of arguments, files, numbers and texts."""
