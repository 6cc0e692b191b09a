"""Keeps rows and samples them for a learner again and again."""
