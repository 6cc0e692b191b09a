"""Acting in games that live on a device: the games, the policies and the unrolls."""
