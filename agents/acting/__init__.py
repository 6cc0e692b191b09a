"""Acting in batched games, and counts of their outcomes."""
