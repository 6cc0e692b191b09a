"""`league status`: the state of a run and its progress, read from its folder alone. Never imports torch."""
