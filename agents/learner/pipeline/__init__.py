"""Pipeline parallelism: stages, schedules, and the two pipelines."""
