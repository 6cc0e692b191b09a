"""External environments as `BatchedEnv`, and built-in games as PettingZoo envs."""
