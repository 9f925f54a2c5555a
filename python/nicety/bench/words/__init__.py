"""In words: why a card does not keep up, and the conditions for reading its figures."""
