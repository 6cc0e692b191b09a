"""Runs that are open for reading, and followed while they proceed."""
