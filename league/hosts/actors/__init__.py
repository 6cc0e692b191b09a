"""Actor hosts: batched games, the policies that play them, and their saved state."""
