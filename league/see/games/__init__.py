"""Recorded games: how they are written, verified, shown and found."""
