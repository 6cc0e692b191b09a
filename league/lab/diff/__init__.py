"""Comparison of runs: settings, cost and strength, and whether a difference is more than seeds explain."""
