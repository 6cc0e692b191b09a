"""What is played: batched games, adapters for outside environments, scripted bots. Imports numpy only."""
