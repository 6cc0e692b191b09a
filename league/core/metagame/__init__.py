"""Ratings, meta-game solvers, cycles and lineage."""
