"""Scores a data set with Spark: each Python worker has a scoring process with a model of its own, kept from task to task.

    spark-submit --py-files judge_stream.py spark.py --input in/ --output out/run1/ --send id,prompt,completion -- \\
        judge stream --model /models/judge --columns instruction=prompt,response=completion

--send names the columns that are sent, the ids first. One task at a time per executor (spark.task.cpus = spark.executor.cores, or one
GPU each), or there are as many models. What is there afterwards is proved by `judge shards check` (see docs/clusters.md).
"""

import argparse
import os

import judge_stream
from pyspark import TaskContext
from pyspark.sql import SparkSession


def scorer(argv, columns, timeout, isolate):
    def score(batches):
        context, env = TaskContext.get(), dict(os.environ)
        if gpu := context.resources().get("gpu"):
            env["CUDA_VISIBLE_DEVICES"] = gpu.addresses[0]
        env.setdefault("RAYON_NUM_THREADS", str(context.cpus()))
        judge = judge_stream.shared(argv, columns, timeout=timeout, isolate=isolate, env=env)
        for batch in batches:
            yield judge.score(batch)

    return score


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", required=True, help="Parquet files or their folder")
    parser.add_argument("--output", required=True, help="a new folder")
    parser.add_argument("--send", required=True, help="columns that are sent, with commas between, the ids first")
    parser.add_argument("--partitions", type=int, help="tasks; a few for each worker [default: as the input has them]")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--timeout", type=float, default=3600, help="seconds after which a batch counts as hung")
    parser.add_argument("--isolate", action="store_true", help="find the row that kills a worker, and go on without its score")
    parser.add_argument("command", nargs="+", help="judge stream and its options, after --")
    args = parser.parse_args()

    spark = SparkSession.builder.getOrCreate()
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", args.batch_size)
    columns = args.send.split(",")
    _, ddl = judge_stream.result_schema(args.command)
    rows = spark.read.parquet(args.input).select(*columns)
    if args.partitions:
        rows = rows.repartition(args.partitions)
    # mode "error" is the default: a folder that is there is refused. Written before anything counts it: counting runs the model.
    rows.mapInArrow(scorer(args.command, columns, args.timeout, args.isolate), ddl).write.parquet(args.output)


if __name__ == "__main__":
    main()
