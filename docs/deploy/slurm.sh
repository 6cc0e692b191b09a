#!/bin/bash
#SBATCH --job-name=league
#SBATCH --time=04:00:00
#SBATCH --cpus-per-task=16
#SBATCH --signal=TERM@180
#SBATCH --requeue
#SBATCH --open-mode=append
# A run that is longer than its place in the queue: it is stopped three minutes before the end of its time, or when it
# has to make room, and queued again until its budget is spent. CONFIG is the configuration, RUN the run folder.

if [ -f "$RUN/config.yaml" ]; then
    srun league resume "$RUN"
else
    srun league train "$CONFIG" --run-dir "$RUN"
fi
code=$?
if [ "$code" -eq 75 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
