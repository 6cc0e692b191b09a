"""Heads whose networks learn the values of actions."""
