"""Decides when a player's weights are frozen as a snapshot."""
