"""V-trace, PPO and APPO, and the terms common to their losses."""
