"""Probes: measurements of a league's snapshots by fixed yardsticks while it trains."""
