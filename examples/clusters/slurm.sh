#!/usr/bin/env bash
# An array of Slurm tasks that score the shards of a plan:
#
#     judge shards plan --input 'data/*.parquet' … --output plan.json
#     sbatch --array=0-511%64 slurm.sh 512        # 512 tasks, 64 at a time; the number is that of the array
#     judge shards check --plan plan.json --output parts
#
# A task that is requeued or killed costs the shard that it was at; submit the same array again for what is missing. An array may be smaller than
# the number of shards: each task takes every shard whose number is its own modulo the size of the array.
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --cpus-per-task=8
#SBATCH --signal=TERM@60
# For GPUs: #SBATCH --gres=gpu:1, and --device cuda:0 below.
set -euo pipefail
export RAYON_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"
# srun does not take the number of CPUs over from sbatch by itself.
exec srun --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" judge shards run --plan plan.json --output parts --of "${1:?the size of the array}" --quiet
