"""Chaos: breaks a run on purpose, by a plan with a seed, and says what was lost."""
