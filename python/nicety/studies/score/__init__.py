"""Scores of cards: each published measurement beside the figure that comes out of the model."""
