"""Figures of a run as records: the page, the static report, JSON and CSV are made of the same ones."""
