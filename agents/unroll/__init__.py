"""The record of an unroll, and its way from the actor to the learner."""
