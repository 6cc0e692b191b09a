"""How strong a policy is: tournaments against snapshots and bots, and loading a policy to play it."""
