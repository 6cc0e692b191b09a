"""Outside environments as `BatchedEnv`, and ours as PettingZoo."""
