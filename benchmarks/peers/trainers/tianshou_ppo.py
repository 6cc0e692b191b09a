"""PPO of tianshou, with the settings of its own example of discrete PPO, and illegal actions masked in the actor.

Sixteen games, each a seat's view of it; the opponent is a copy of the network at the start of each rollout.
Source: tianshou 2, examples/discrete/discrete_ppo.py... see the constants.
"""
