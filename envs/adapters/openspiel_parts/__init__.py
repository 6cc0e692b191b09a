"""A game of OpenSpiel: how it is loaded and read, and its tree."""
