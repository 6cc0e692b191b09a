"""Chooses opponents: roles, matchmakers, PFSP."""
