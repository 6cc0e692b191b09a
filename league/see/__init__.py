"""What people see of a run: reports, the web page, trackers and games."""
