"""Built-in games: whole batches are stepped in numpy, with no Python per game."""
