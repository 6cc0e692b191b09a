"""Files on disk: atomic writes, the journal, content-addressed snapshots, the run folder and its lock."""
