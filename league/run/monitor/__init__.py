"""Monitoring of a run: metric names, views and sinks."""
