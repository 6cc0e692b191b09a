"""Exact exploitability: small games whose every history is known, and what that tells of a run's exports."""
