"""Child processes: starting, reaping, their clocks, and stop signals."""
