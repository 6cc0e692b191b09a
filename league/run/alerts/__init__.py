"""Alerts of a run: conditions that are looked at as it trains, and sinks that carry the news elsewhere."""
