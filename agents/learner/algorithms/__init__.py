"""V-trace, PPO and APPO, and the terms their losses share."""
