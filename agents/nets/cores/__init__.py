"""Cores: memory between the decisions of an episode."""
