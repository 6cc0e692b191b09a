"""The configuration of a run: records, checks, YAML."""
