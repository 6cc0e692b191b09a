"""Built-in games as tensors of one device, bit for bit those of `league.envs.games`."""
