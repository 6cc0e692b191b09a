"""Acts in batched games and counts the outcomes."""
