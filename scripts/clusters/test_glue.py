"""The glue in examples/clusters/, against the real worker and against ones that die, hang and lie.

    python scripts/clusters/test_glue.py target/release/examples [glue|ray|spark …]

Says that ray or spark is skipped where it is not installed; `scripts/clusters/test.sh` installs both into a throw-away environment.
"""

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
GLUE = HERE.parents[1] / "examples" / "clusters"
sys.path.insert(0, str(GLUE))
from judge_stream import JudgeStream, WorkerDied  # noqa: E402

EXAMPLES = Path(sys.argv[1]).resolve()
WORKER = [str(EXAMPLES / "score_stream"), "--columns", "instruction=prompt,response=completion", "--quiet"]
COLUMNS = ["id", "prompt", "completion"]


def rows(n, start=0):
    return pa.table(
        {
            "id": [f"row-{i}" for i in range(start, start + n)],
            "prompt": [f"What is {i} + {i % 7}?" for i in range(start, start + n)],
            "completion": [str(i + i % 7 + (i % 3 == 0)) for i in range(start, start + n)],
        }
    )


def batch(n, start=0):
    return rows(n, start).to_batches()[0]


def fragile(fault, poison):
    return [sys.executable, str(HERE / "fragile.py"), fault, poison, "--", *WORKER]


def left():
    """Scoring processes that still run."""
    found = subprocess.run(["pgrep", "-x", "score_stream"], stdout=subprocess.PIPE, text=True).stdout.split()
    return [pid for pid in found if "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0]]


def wait_until(condition, what, seconds=60):
    """A bound for what has no event to wait for: another process that ends."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def as_rows(table):
    """Without the device, in the order of the ids: what must be equal."""
    return sorted(map(str, table.drop_columns(["device"]).to_pylist()))


def expected(table):
    with JudgeStream(WORKER, COLUMNS) as judge:
        return as_rows(pa.Table.from_batches([judge.score(part) for part in table.to_batches(max_chunksize=97)]))


def test_types():
    with JudgeStream(WORKER, COLUMNS) as judge:
        first = judge.score(batch(20))
        for kind in [pa.string(), pa.large_string(), pa.string_view()]:
            same = pa.RecordBatch.from_arrays([column.cast(kind) for column in batch(20)], names=COLUMNS)
            assert judge.score(same) == first, kind
        assert judge.score(batch(20).slice(5, 3)) == first.slice(5, 3)
        assert judge.score(batch(20).slice(0, 0)).num_rows == 0
        assert judge.close() == 0
    with JudgeStream(WORKER, COLUMNS) as judge:
        assert judge.score(pa.RecordBatch.from_arrays([c.cast(pa.string_view()) for c in batch(20)], names=COLUMNS)) == first


def test_deaths():
    whole = expected(rows(32))
    for fault, options in [("die", {}), ("swap", {}), ("garbage", {"timeout": 5}), ("hang", {"timeout": 5})]:
        with JudgeStream(fragile(fault, "row-100"), COLUMNS, **options) as judge:
            assert as_rows(pa.Table.from_batches([judge.score(batch(32))])) == whole
            try:
                judge.score(batch(2, 99))
            except WorkerDied as death:
                assert "2 rows" in str(death), death
            else:
                raise AssertionError(f"{fault}: nobody noticed")
            assert as_rows(pa.Table.from_batches([judge.score(batch(32))])) == whole, "a new worker goes on"
    # Killed between two batches: seen with the next one.
    with JudgeStream(WORKER, COLUMNS) as judge:
        judge.score(batch(3))
        judge.process.send_signal(signal.SIGKILL)
        judge.process.wait()
        try:
            judge.score(batch(3))
        except WorkerDied:
            pass
        else:
            raise AssertionError("a dead worker answered")
        assert judge.score(batch(3)).num_rows == 3


def test_isolation():
    with JudgeStream(fragile("die", "row-17"), COLUMNS, isolate=True) as judge:
        reply = judge.score(batch(32))
    assert reply.column("id").to_pylist() == batch(32).column("id").to_pylist()
    status = reply.column("status").to_pylist()
    assert status[17] == "worker_died" and status.count("scored") == 31, status
    assert reply.column("score")[17].as_py() is None and "1 rows" in reply.column("detail")[17].as_py()


def test_parent_killed():
    """A parent that is killed in the middle of a pass leaves nothing behind."""
    code = f"""
import sys; sys.path.insert(0, {str(GLUE)!r})
import pyarrow as pa
from judge_stream import JudgeStream
judge = JudgeStream({WORKER!r}, {COLUMNS!r})
many = lambda n: pa.record_batch({{"id": [str(i) for i in range(n)], "prompt": ["What is %d?" % i for i in range(n)], "completion": ["2"] * n}})
judge.score(many(2))
print("ready", flush=True)
judge.score(many(300000))
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert parent.stdout.readline() == b"ready\n"
    worker = subprocess.run(["pgrep", "-P", str(parent.pid), "-x", "score_stream"], stdout=subprocess.PIPE).stdout.split()
    assert len(worker) == 1
    parent.kill()
    parent.wait()
    wait_until(lambda: not left(), f"still there: {left()}")


def read(folder):
    files = [file for file in sorted(Path(folder).rglob("*.parquet"))]
    return pa.concat_tables([pq.read_table(file) for file in files])


def check(folder, table):
    found = read(folder)
    assert found.num_rows == table.num_rows, (found.num_rows, table.num_rows)
    assert as_rows(found) == expected(table)
    types = {f.name: f.type for f in found.schema}
    assert not any(pa.types.is_null(t) or pa.types.is_dictionary(t) for t in types.values()), types


def write_input(folder, table, files):
    Path(folder).mkdir()
    size = -(-table.num_rows // files)
    for file in range(files):
        pq.write_table(table.slice(file * size, size), f"{folder}/part-{file:05}.parquet")


def kill_now_and_then(done, pattern, times, seconds=1.0):
    """SIGKILL of one process that pgrep finds, some times."""
    killed = 0
    while killed < times and not done.wait(seconds):
        found = subprocess.run(["pgrep", *pattern], stdout=subprocess.PIPE, text=True).stdout.split()
        if found:
            os.kill(int(found[-1]), signal.SIGKILL)
            killed += 1
    return killed


def run_and_kill(command, log, pattern, times):
    done = threading.Event()
    counts = []
    killer = threading.Thread(target=lambda: counts.append(kill_now_and_then(done, pattern, times)))
    with open(log, "w") as file:
        job = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=GLUE)
        killer.start()
        code = job.wait()
        done.set()
        killer.join()
    assert code == 0, f"{command}: {code}\n{Path(log).read_text()[-4000:]}"
    return counts[0]


def engine(name, command_of, table, patterns):
    for pattern, times in patterns:
        with tempfile.TemporaryDirectory() as folder:
            write_input(f"{folder}/in", table, 8)
            command = command_of(f"{folder}/in", f"{folder}/out")
            killed = run_and_kill(command, f"{folder}/log", pattern, times)
            check(f"{folder}/out", table)
            wait_until(lambda: not left(), f"{name}: still there: {left()}")
            print(f"  {name}: complete with {killed} times SIGKILL of {pattern[1]}", flush=True)


def test_ray(table=None):
    table = table or rows(20000)
    def command(source, target):
        return [sys.executable, str(GLUE / "ray_data.py"), "--input", source, "--output", target, "--send", ",".join(COLUMNS),
                "--workers", "2", "--cpus", "0.4", "--batch-size", "256", "--", *WORKER]
    engine("ray", command, table, [(["-x", "score_stream"], 0), (["-x", "score_stream"], 3), (["-f", "^ray::MapWorker"], 2)])


def test_spark(table=None):
    table = table or rows(20000)
    def command(source, target):
        submit = Path(importlib.util.find_spec("pyspark").origin).parent / "bin" / "spark-submit"
        return [str(submit), "--master", "local-cluster[2,1,1024]", "--py-files", str(GLUE / "judge_stream.py"), "--conf", "spark.pyspark.python=" + sys.executable,
                str(GLUE / "spark.py"), "--input", source, "--output", target, "--send", ",".join(COLUMNS), "--partitions", "16", "--batch-size", "256", "--", *WORKER]
    engine("spark", command, table, [(["-x", "score_stream"], 0), (["-x", "score_stream"], 3), (["-f", "CoarseGrainedExecutorBackend"], 1)])


def main():
    wanted = sys.argv[2:] or ["glue", "ray", "spark"]
    tests = {"glue": [test_types, test_deaths, test_isolation, test_parent_killed], "ray": [test_ray], "spark": [test_spark]}
    modules = {"ray": "ray", "spark": "pyspark"}
    for name in wanted:
        if name in modules and importlib.util.find_spec(modules[name]) is None:
            print(f"skipped: {name}, as {modules[name]} is not installed (scripts/clusters/test.sh installs it)")
            continue
        for test in tests[name]:
            started = time.monotonic()
            test()
            print(f"ok: {test.__name__}, {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
