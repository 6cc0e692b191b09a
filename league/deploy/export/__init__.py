"""Exported policies: packages, graphs for other programs, and the model card."""
