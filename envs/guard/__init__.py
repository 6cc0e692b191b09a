"""Code of others inside this process: what it does to the process is kept apart from what the process is to us."""
