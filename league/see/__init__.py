"""Runs as people see them: reports, the web page, trackers and games."""
