"""Who plays whom, and the daemon that runs it."""
