"""Runs one league: the daemon, its launch, budget and observer."""
