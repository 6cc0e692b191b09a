"""Sweeps: runs with different settings and equal budgets, judged by the strength of what they learn."""
