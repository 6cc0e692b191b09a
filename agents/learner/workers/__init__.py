"""Worker processes for stages and replicas of one learner."""
