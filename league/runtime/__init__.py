"""Where actors and learners run: in this process, or on Ray."""
