"""Collects unrolls and makes batches of them."""
