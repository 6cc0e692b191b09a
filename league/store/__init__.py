"""What is on disk: atomic files, the journal, content-addressed snapshots, the run folder and its lock."""
