"""Checks of what games of others show and answer, against what they declared."""
