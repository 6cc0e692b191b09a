"""Experiments around runs: simulation, sweeps, fresh exploiters and differences."""
