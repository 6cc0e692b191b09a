"""Serving a policy over HTTP: batches, sessions, the server and its client."""
