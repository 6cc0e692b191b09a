"""The views of a running league: its heartbeat, live table and metrics, and what looks at it to warn or to pause."""
