"""Tournaments between contenders: schedules, games over processes, a journal, standings and reports."""
