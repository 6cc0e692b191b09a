"""Policies on disk: stores, loading, selection, imports and exports."""
