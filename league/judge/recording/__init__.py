"""Recording games and reading recorded ones."""
