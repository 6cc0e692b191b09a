"""An archive of a run for people who help with it, without weights and secrets."""
