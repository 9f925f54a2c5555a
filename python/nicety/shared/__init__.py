"""What all rooms use: checks of arguments, files, numbers and texts."""
