"""Trials: runs of one budget in processes of their own, each measured by what it has learnt."""
