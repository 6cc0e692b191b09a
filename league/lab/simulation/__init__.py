"""Simulates months of a league in minutes with simulated learners."""
