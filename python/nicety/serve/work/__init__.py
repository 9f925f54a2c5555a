"""A work of the workbench, such as a line-rate check, in a process of its own."""
