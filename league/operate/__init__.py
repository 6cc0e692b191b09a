"""Operating runs: their history, fault drills and support bundles."""
