"""The games: batched games in numpy, adapters for external environments, scripted bots. Imports numpy only."""
