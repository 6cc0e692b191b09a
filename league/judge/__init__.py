"""Judging strength: contenders, recorded games, matches, tournaments, pools and probes."""
