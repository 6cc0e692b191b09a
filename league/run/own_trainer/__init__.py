"""A league for a trainer of the user's own: the same core, journal and run folder, without daemon or learners."""
