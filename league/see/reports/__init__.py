"""Reports on a run: status, verify, doctor, lineage, payoff, ratings."""
