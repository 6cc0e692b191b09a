"""Forks and rewinds of a run."""
