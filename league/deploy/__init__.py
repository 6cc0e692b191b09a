"""Policies outside of a run: exported packages and policy servers."""
