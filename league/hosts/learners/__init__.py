"""Learner hosts: updates of one policy, in lockstep with actors or beside them."""
