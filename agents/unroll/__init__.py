"""The record of an unroll, and its transport from the actor to the learner."""
