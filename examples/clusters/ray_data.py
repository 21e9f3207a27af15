"""Scores a data set with Ray Data: each actor has a scoring process with a model of its own.

    python ray_data.py --input in/ --output out/run1/ --send id,prompt,completion --workers 4 --gpus 1 -- \\
        judge stream --model /models/judge --columns instruction=prompt,response=completion --device cuda:0

--send names the columns that are sent, the ids first. The output must be a new folder. What is there afterwards is proved by
`judge shards check` (see docs/clusters.md).
"""

import argparse
import os
import sys

import pyarrow as pa
import ray

# Where the file lies on the workers: beside this one, which `ray job submit --working-dir` takes along.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from judge_stream import JudgeStream, WorkerDied  # noqa: E402


class Judge:
    def __init__(self, argv, columns, timeout, isolate):
        self.stream = JudgeStream(argv, columns, timeout=timeout, isolate=isolate)

    def __call__(self, table):
        batches = table.combine_chunks().to_batches()
        return pa.Table.from_batches([self.stream.score(batch) for batch in batches], self.stream.results)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", required=True, help="Parquet files or their folder")
    parser.add_argument("--output", required=True, help="a new folder")
    parser.add_argument("--send", required=True, help="columns that are sent, with commas between, the ids first")
    parser.add_argument("--workers", type=int, default=1, help="scoring processes; a pool of this size, never more or fewer")
    parser.add_argument("--cpus", type=float, default=1, help="of each; also its RAYON_NUM_THREADS. Leave some for the tasks that read and write, or nothing moves")
    parser.add_argument("--gpus", type=float, default=0, help="of each")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--rows-per-task", type=int, help="what is done again when a worker dies [default: four batches]")
    parser.add_argument("--retries", type=int, default=10, help="of a task whose worker, actor or node died")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds after which a batch counts as hung")
    parser.add_argument("--isolate", action="store_true", help="find the row that kills a worker, and go on without its score")
    parser.add_argument("--address", help="of the cluster [default: that of the environment, or a new one]")
    parser.add_argument("command", nargs="+", help="judge stream and its options, after --")
    args = parser.parse_args()
    if os.path.exists(args.output):
        parser.error(f"{args.output} is there already: rows of two runs would lie in one folder")

    threads = {"RAYON_NUM_THREADS": str(max(1, int(args.cpus)))}
    ray.init(address=args.address, runtime_env={"env_vars": threads})
    context = ray.data.DataContext.get_current()
    context.actor_task_retry_on_errors = [WorkerDied]  # the task is done again, up to --retries times; other errors end the job
    columns = args.send.split(",")
    rows = ray.data.read_parquet(args.input, columns=columns)
    # Ray cuts by bytes, for which scoring has no use: a block of its own size would keep one worker busy for hours, and the others idle.
    rows = rows.repartition(target_num_rows_per_block=args.rows_per_task or 4 * args.batch_size)
    rows = rows.map_batches(
        Judge,
        fn_constructor_args=(args.command, columns, args.timeout, args.isolate),
        batch_format="pyarrow",
        batch_size=args.batch_size,
        num_cpus=args.cpus,
        num_gpus=args.gpus,
        max_task_retries=args.retries,
        compute=ray.data.ActorPoolStrategy(size=args.workers),
    )
    rows.write_parquet(args.output)  # before anything counts them: counting runs the model


if __name__ == "__main__":
    main()
