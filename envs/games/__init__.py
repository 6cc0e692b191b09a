"""Games of ours: whole batches stepped in numpy, no Python per game."""
