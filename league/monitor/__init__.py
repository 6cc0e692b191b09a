"""What a run shows: metric names and the sinks they go to."""
