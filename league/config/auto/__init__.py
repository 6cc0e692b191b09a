"""Settings that fit themselves to a game and a budget: what is known, the rules, and the resolution of a file."""
