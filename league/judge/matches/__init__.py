"""Evaluation: tournaments against snapshots and bots, and loading a policy to play against it."""
