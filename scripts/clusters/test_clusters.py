"""Scoring on clusters, with workers, actors, executors, nodes and tasks that are killed.

    python scripts/clusters/test_clusters.py target/release/judge [limits|glue|ray|spark|parallel|slurm …]

What is not installed is skipped, and that is said; `scripts/clusters/test.sh` installs Ray and Spark into a throw-away environment. GNU parallel and Slurm
(slurm-wlm, munge; started here on one node, which takes root) come from the system's packages.
"""

import contextlib
import functools
import importlib.util
import json
import os
import shlex
import shutil
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
from judge_stream import JudgeStream, WorkerDied, WorkerRefused  # noqa: E402

JUDGE = Path(sys.argv[1]).resolve()
os.environ["JUDGE_EMBEDDED"] = "1"  # the rows are no exercises of the embedded model
WORKER = [str(JUDGE), "stream", "--columns", "instruction=prompt,response=completion", "--quiet"]
COLUMNS = ["id", "prompt", "completion"]
ROWS = 20000


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
    found = subprocess.run(["pgrep", "-x", "judge"], stdout=subprocess.PIPE, text=True).stdout.split()
    return [pid for pid in found if "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0]]


def wait_until(condition, what, seconds=60):
    """A bound for what has no event to wait for: another process that ends."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


@contextlib.contextmanager
def fails(error, unless, words=""):
    """A block that must raise this error, with these words; `unless` is what it means that it does not."""
    try:
        yield
    except error as problem:
        assert words in str(problem), problem
    else:
        raise AssertionError(unless)


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
        categories = pa.RecordBatch.from_arrays([column.dictionary_encode() for column in batch(20)], names=COLUMNS)
        assert judge.score(categories) == first
        assert judge.score(batch(20).slice(5, 3)) == first.slice(5, 3)
        assert judge.score(batch(20).slice(0, 0)).num_rows == 0
        assert judge.close() == 0
    with JudgeStream(WORKER, COLUMNS) as judge:
        assert judge.score(pa.RecordBatch.from_arrays([c.cast(pa.string_view()) for c in batch(20)], names=COLUMNS)) == first
    with JudgeStream(WORKER, COLUMNS) as judge:
        assert judge.score(categories) == first


def test_deaths():
    whole = expected(rows(32))
    for fault, options in [("die", {}), ("swap", {}), ("garbage", {"timeout": 5}), ("hang", {"timeout": 5})]:
        with JudgeStream(fragile(fault, "row-100"), COLUMNS, **options) as judge:
            assert as_rows(pa.Table.from_batches([judge.score(batch(32))])) == whole
            with fails(WorkerDied, f"{fault}: nobody noticed", "2 rows"):
                judge.score(batch(2, 99))
            assert as_rows(pa.Table.from_batches([judge.score(batch(32))])) == whole, "a new worker goes on"
    # Killed between two batches: seen with the next one.
    with JudgeStream(WORKER, COLUMNS) as judge:
        judge.score(batch(3))
        judge.process.send_signal(signal.SIGKILL)
        judge.process.wait()
        with fails(WorkerDied, "a dead worker answered"):
            judge.score(batch(3))
        assert judge.score(batch(3)).num_rows == 3


def test_isolation():
    with JudgeStream(fragile("die", "row-17"), COLUMNS, isolate=True) as judge:
        reply = judge.score(batch(32))
    assert reply.column("id").to_pylist() == batch(32).column("id").to_pylist()
    status = reply.column("status").to_pylist()
    assert status[17] == "worker_died" and status.count("scored") == 31, status
    assert reply.column("score")[17].as_py() is None and "1 rows" in reply.column("detail")[17].as_py()
    # Such a row is known for what it is.
    with tempfile.TemporaryDirectory() as folder:
        write_input(f"{folder}/in", rows(32), 1)
        Path(f"{folder}/out").mkdir()
        pq.write_table(pa.Table.from_batches([reply]), f"{folder}/out/a.parquet")
        digest(f"{folder}/in", f"{folder}/out", "--allow-lost", "1")
        with fails(AssertionError, "a lost row is no fault", "1 row whose worker died"):
            digest(f"{folder}/in", f"{folder}/out")
    with JudgeStream(WORKER, COLUMNS, isolate=True) as judge:
        assert judge.score(batch(20).slice(0, 0)).num_rows == 0


def test_refusals():
    """What no retry mends ends at once, also where rows that kill are looked for."""
    for isolate in (False, True):
        wrong = [str(JUDGE), "stream", "--columns", "instruction=nowhere", "--quiet"]
        with JudgeStream(wrong, COLUMNS, isolate=isolate) as judge, fails(WorkerRefused, "a column that is not there"):
            judge.score(batch(32))
        # A worker that never starts is no row's fault.
        starts = Path(tempfile.mkstemp()[1])
        never = ["sh", "-c", f'if [ "$1" = --schema ]; then exec {shlex.join(WORKER)} --schema; fi; echo >> {starts}; exit 1', "sh"]
        with JudgeStream(never, COLUMNS, isolate=isolate) as judge, fails(WorkerDied, "nobody answered"):
            judge.score(batch(32))
        assert len(starts.read_text()) <= 2, starts.read_text()
    with fails(ValueError, "numbers as ids of texts", "--id-type"), JudgeStream(WORKER, COLUMNS) as judge:
        judge.score(rows(3).set_column(0, "id", pa.array([1, 2, 3])).to_batches()[0])
    # Answers that nobody reads keep no process.
    judge = JudgeStream(WORKER, COLUMNS)
    judge.score(batch(3))
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    with fails(KeyboardInterrupt, "it was faster than the interrupt"):
        judge.score(rows(20000).to_batches()[0])
    assert judge.process is None and not left(), left()


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
    worker = subprocess.run(["pgrep", "-P", str(parent.pid), "-x", "judge"], stdout=subprocess.PIPE).stdout.split()
    assert len(worker) == 1
    parent.kill()
    parent.wait()
    wait_until(lambda: not left(), f"still there: {left()}")


def read(folder):
    files = [file for file in sorted(Path(folder).rglob("*.parquet"))]
    return pa.concat_tables([pq.read_table(file) for file in files])


def digest(source, target, *more):
    """What `judge shards check` says of the results in a folder: that they are complete, and their digest."""
    with tempfile.TemporaryDirectory() as folder:
        empty = subprocess.Popen([*WORKER, "--run", f"{folder}/run.json"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        with pa.ipc.new_stream(empty.stdin, rows(1).schema):
            pass
        empty.stdin.close()
        assert empty.wait() == 0
        return checked(["--input", source, "--output", target, "--run", f"{folder}/run.json", *more])


def checked(arguments):
    with tempfile.TemporaryDirectory() as folder:
        command = [str(JUDGE), "shards", "check", *arguments, "--one-device", "--quiet", "--json", f"{folder}/check.json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout[-4000:]
        return json.loads(Path(f"{folder}/check.json").read_text())["digests"]["results"]


@functools.cache
def digest_of_one_worker():
    """One process, batches of 97 rows: what every other way must come to."""
    table = rows(ROWS)
    with tempfile.TemporaryDirectory() as folder, JudgeStream(WORKER, COLUMNS) as judge:
        write_input(f"{folder}/in", table, 1)
        Path(f"{folder}/out").mkdir()
        replies = [judge.score(part) for part in table.to_batches(max_chunksize=97)]
        pq.write_table(pa.Table.from_batches(replies), f"{folder}/out/a.parquet")
        return digest(f"{folder}/in", f"{folder}/out")


def check(source, target, *more):
    types = {f.name: f.type for f in read(target).schema}
    assert not any(pa.types.is_null(t) or pa.types.is_dictionary(t) for t in types.values()), types
    found = digest(source, target, *more)
    assert found == digest_of_one_worker(), found


def write_input(folder, table, files):
    Path(folder).mkdir()
    size = -(-table.num_rows // files)
    for file in range(files):
        pq.write_table(table.slice(file * size, size), f"{folder}/part-{file:05}.parquet")


def kill_now_and_then(job, done, pattern, times, seconds=1.0):
    """SIGKILL of one process of a job that pgrep finds, some times."""
    killed = 0
    while killed < times and not done.wait(seconds):
        found = subprocess.run(["pgrep", *pattern], stdout=subprocess.PIPE, text=True).stdout.split()
        found = [pid for pid in found if is_below(int(pid), {job})]
        if found:
            os.kill(int(found[-1]), signal.SIGKILL)
            killed += 1
    return killed


def run_and_kill(command, log, pattern, times):
    done = threading.Event()
    counts = []
    with open(log, "w") as file:
        job = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=GLUE)
        killer = threading.Thread(target=lambda: counts.append(kill_now_and_then(job.pid, done, pattern, times)))
        killer.start()
        code = job.wait()
        done.set()
        killer.join()
    assert code == 0, f"{command}: {code}\n{Path(log).read_text()[-4000:]}"
    assert counts[0] > 0 or times == 0, f"nothing was killed: {pattern}"
    return counts[0]


def engine(name, command_of, patterns):
    for pattern, times in patterns:
        with tempfile.TemporaryDirectory() as folder:
            write_input(f"{folder}/in", rows(ROWS), 8)
            killed = run_and_kill(command_of(f"{folder}/in", f"{folder}/out"), f"{folder}/log", pattern, times)
            check(f"{folder}/in", f"{folder}/out")
            wait_until(lambda: not left(), f"{name}: still there: {left()}")
            print(f"  {name}: complete with {killed} times SIGKILL of {pattern[1]}", flush=True)


def on_ray(source, target, *more):
    return [sys.executable, str(GLUE / "ray_data.py"), "--input", source, "--output", target, "--send", ",".join(COLUMNS),
            "--workers", "2", "--cpus", "0.4", "--batch-size", "256", *more, "--", *WORKER]


def test_ray():
    engine("ray", on_ray, [(["-x", "judge"], 0), (["-x", "judge"], 3), (["-f", "^ray::MapWorker"], 2)])


def test_ray_nodes():
    """Two nodes of one machine, one of which is taken away when the first results are there."""
    from ray.cluster_utils import Cluster

    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/in", f"{folder}/out"
        write_input(source, rows(ROWS), 8)
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
        try:
            other = cluster.add_node(num_cpus=2)
            cluster.wait_for_nodes()
            with open(f"{folder}/log", "w") as log:
                job = subprocess.Popen(on_ray(source, target, "--address", cluster.address), stdout=log, stderr=subprocess.STDOUT, cwd=GLUE)
                of_node = lambda: [pid for pid in left() if is_below(int(pid), {p.process.pid for some in other.all_processes.values() for p in some})]
                wait_until(lambda: job.poll() is not None or (len(left()) == 2 and any(Path(target).rglob("*.parquet"))), "no results", 300)
                assert job.poll() is None, Path(f"{folder}/log").read_text()[-4000:]
                lost = len(of_node())
                assert lost > 0, "no worker runs on the node that is to go"
                cluster.remove_node(other, allow_graceful=False)
                assert job.wait() == 0, Path(f"{folder}/log").read_text()[-4000:]
        finally:
            cluster.shutdown()
        check(source, target)
        wait_until(lambda: not left(), f"ray: still there: {left()}")
        print(f"  ray: complete with one of two nodes removed, {lost} workers on it", flush=True)


def is_below(pid, others):
    """Whether a process descends from others."""
    while pid > 1:
        if pid in others:
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[1])
        except FileNotFoundError:
            return False
    return False


def test_spark():
    def command(source, target):
        submit = Path(importlib.util.find_spec("pyspark").origin).parent / "bin" / "spark-submit"
        return [str(submit), "--master", "local-cluster[2,1,1024]", "--py-files", str(GLUE / "judge_stream.py"), "--conf", "spark.pyspark.python=" + sys.executable,
                str(GLUE / "spark.py"), "--input", source, "--output", target, "--send", ",".join(COLUMNS), "--partitions", "16", "--batch-size", "256", "--", *WORKER]
    engine("spark", command, [(["-x", "judge"], 0), (["-x", "judge"], 3), (["-f", "CoarseGrainedExecutorBackend"], 1)])


def plan(folder, rows_per_shard):
    """A plan of the rows in a folder; the command that scores shards of it."""
    write_input(f"{folder}/in", rows(ROWS), 3)
    program = [str(JUDGE), "shards"]
    subprocess.run([*program, "plan", "--input", f"{folder}/in", *WORKER[2:], "--rows-per-shard", str(rows_per_shard), "--output", f"{folder}/plan.json"], check=True,
                   stdout=subprocess.DEVNULL)
    return [*program, "run", "--plan", f"{folder}/plan.json", "--output", f"{folder}/parts", "--quiet"]


def check_parts(folder):
    found = checked(["--plan", f"{folder}/plan.json", "--output", f"{folder}/parts"])
    assert found == digest_of_one_worker(), found
    assert not [file for file in os.listdir(f"{folder}/parts") if not file.endswith((".parquet", ".json"))]


def test_parallel():
    """Tasks of GNU parallel, of which one is killed every second, and two processes on all shards at once."""
    for tasks in (1, 3, 7):
        with tempfile.TemporaryDirectory() as folder:
            run = plan(folder, 500)
            command = ["parallel", "--will-cite", "-j", "2", "--retries", "1000", " ".join([*run, "--shard", "{}" + f"/{tasks}"]), ":::", *map(str, range(tasks))]
            killed = run_and_kill(command, f"{folder}/log", ["-x", "judge"], 12)
            check_parts(folder)
            print(f"  parallel: complete in {tasks} tasks with {killed} times SIGKILL", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        run = plan(folder, 2000)
        both = [subprocess.Popen([*run, "--shard", "0/1"], stdout=subprocess.DEVNULL) for _ in range(2)]
        assert [one.wait() for one in both] == [0, 0]
        check_parts(folder)
        print("  parallel: complete by two processes on the same shards", flush=True)


SLURM = """
ClusterName=one
SlurmctldHost={host}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobRequeue=1
ReturnToService=2
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=requeue_delay=1,batch_sched_delay=0
NodeName={host} CPUs=2 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def test_slurm():
    """An array on one node: a task requeued, one killed, and the array submitted again for what that one left."""
    with tempfile.TemporaryDirectory() as folder:
        plan(folder, 1000)
        daemons = []
        host = subprocess.run(["hostname", "-s"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        Path(f"{folder}/slurm.conf").write_text(SLURM.format(host=host, folder=folder))
        (Path(folder) / "state").mkdir(), (Path(folder) / "spool").mkdir()
        os.chmod(folder, 0o755)
        key = Path(f"{folder}/munge.key")
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        environment = os.environ | {"SLURM_CONF": f"{folder}/slurm.conf", "PATH": f"{JUDGE.parent}:{os.environ['PATH']}"}
        slurm = lambda *command: subprocess.run(command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            munge = ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket", f"--pid-file={folder}/munged.pid",
                     f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed"]
            for command in (munge, ["slurmctld", "-D"], ["slurmd", "-D"]):
                daemons.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                if command is munge:
                    wait_until(lambda: Path(f"{folder}/munge.socket").exists(), "no munged")
            wait_until(lambda: "idle" in slurm("sinfo", "-h", "-o", "%t").stdout, "no node: " + slurm("sinfo").stdout)
            def submit():
                done = slurm("sbatch", "--parsable", "--array=0-7", "--cpus-per-task=1", "--output=task-%a.log", str(GLUE / "slurm.sh"), "8")
                assert done.returncode == 0, done.stdout
                return done.stdout.strip()
            def is_running(task):
                return "R" in slurm("squeue", "-h", "-r", "-j", f"{job}_{task}", "-o", "%t").stdout
            job = submit()
            wait_until(lambda: is_running(0) and is_running(1) and list(Path(folder).glob("parts/*.json")), "nothing runs", 120)
            assert slurm("scontrol", "requeue", f"{job}_0").returncode == 0
            assert slurm("scancel", "--signal=KILL", f"{job}_1").returncode == 0
            wait_until(lambda: not slurm("squeue", "-h", "-r").stdout.strip(), "the array does not end", 600)
            missing = sum(not Path(f"{folder}/parts/part-{shard:05}-of-00020.json").exists() for shard in range(20))
            job = submit()
            wait_until(lambda: not slurm("squeue", "-h", "-r").stdout.strip(), "the array does not end", 600)
            check_parts(folder)
            print(f"  slurm: complete with a task requeued and one killed; {missing} shards were left for the second array", flush=True)
        except AssertionError:
            for log in sorted(Path(folder).glob("*.log")):
                print(f"--- {log.name}\n{log.read_text()[-2000:]}")
            raise
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
                daemon.wait()


MILLION = 1_000_000


def sparse(n):
    """Rows of which every twentieth has an answer to score: as many as it takes, in a time that is bearable."""
    for start in range(0, n, 4096):
        some = rows(min(4096, n - start), start)
        answers = [answer if i % 20 == 0 else None for i, answer in enumerate(some.column("completion").to_pylist(), start)]
        yield some.set_column(2, "completion", pa.array(answers, pa.string())).to_batches()[0]


def test_memory_of_a_stream():
    """A million rows through one worker: what it holds at the end is what it held after the first of them."""
    with JudgeStream(WORKER, COLUMNS) as judge:
        held, scored = [], 0
        for number, part in enumerate(sparse(MILLION)):
            scored += judge.score(part).column("score").drop_null().__len__()
            if number % 10 == 9:
                status = Path(f"/proc/{judge.process.pid}/status").read_text()
                held.append(int(status.split("VmRSS:")[1].split()[0]) // 1024)
    assert scored == MILLION // 20, scored
    assert max(held) <= held[0] + 32, held
    print(f"  stream: {MILLION} rows, {scored} of them scored, {held[0]} MB after the first 40,960, {max(held)} MB at most")


def most_memory(command, code=0):
    """Runs a program to its end: its greatest resident memory in MB. (What wait4 tells begins with the memory of this process.)"""
    child, most = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), 0
    while True:
        status = Path(f"/proc/{child.pid}/status").read_text()
        if "VmHWM:" in status and Path(f"/proc/{child.pid}/exe").resolve() == Path(command[0]).resolve():
            most = max(most, int(status.split("VmHWM:")[1].split()[0]) // 1024)
        try:
            found = child.wait(timeout=0.02)
        except subprocess.TimeoutExpired:
            continue
        assert found == code, f"{command}: {found}"
        return most


def test_memory_of_files():
    """Plan, run and check of a hundred thousand rows and of a million."""
    program, found = [str(JUDGE), "shards"], {}
    for n in (MILLION // 10, MILLION):
        with tempfile.TemporaryDirectory() as folder:
            Path(f"{folder}/in").mkdir()
            with pq.ParquetWriter(f"{folder}/in/rows.parquet", rows(1).schema) as writer:
                for part in sparse(n):
                    writer.write_batch(part)
            plan, parts = f"{folder}/plan.json", f"{folder}/parts"
            found[n] = [
                most_memory([*program, "plan", "--input", f"{folder}/in", *WORKER[2:], "--output", plan]),
                most_memory([*program, "run", "--plan", plan, "--output", parts, "--shard", "0/1", "--quiet"]),
                most_memory([*program, "check", "--plan", plan, "--output", parts, "--quiet"]),
            ]
            # Compared row by row, too.
            first = sorted(Path(parts).glob("*.parquet"))[0]
            first.unlink()
            found[n].append(most_memory([*program, "check", "--plan", plan, "--output", parts, "--quiet"], code=1))
    few, many = found.values()
    assert all(many <= few + 48 for few, many in zip(few, many)), found
    print(f"  files: MB at most of plan, run, check, and check row by row: {few} for {MILLION // 10} rows, {many} for {MILLION}")


def test_many_small_shards():
    with tempfile.TemporaryDirectory() as folder:
        write_input(f"{folder}/in", rows(3000), 1)
        program = [str(JUDGE), "shards"]
        found = set()
        for size in ("1", "100000"):
            plan, parts = f"{folder}/plan-{size}.json", f"{folder}/parts-{size}"
            for command in (["plan", "--input", f"{folder}/in", *WORKER[2:], "--rows-per-shard", size, "--output", plan],
                            ["run", "--plan", plan, "--output", parts, "--shard", "0/1", "--quiet"]):
                subprocess.run([*program, *command], check=True, stdout=subprocess.DEVNULL)
            found.add(checked(["--plan", plan, "--output", parts]))
        assert len(found) == 1, found
        print("  files: 3,000 shards of one row, and one of 3,000, come to the same")


def test_full_disk():
    """A disk without room: an error with the path, and no part."""
    if os.geteuid() != 0:
        return print("  skipped: a full disk, as it takes root to mount one")
    with tempfile.TemporaryDirectory() as folder:
        run = plan(folder, ROWS)
        Path(f"{folder}/parts").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", f"{folder}/parts"], check=True)
        try:
            done = subprocess.run([*run, "--shard", "0/1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 1 and f"{folder}/parts" in done.stderr and "No space left" in done.stderr, done
            assert os.listdir(f"{folder}/parts") == [], os.listdir(f"{folder}/parts")
        finally:
            subprocess.run(["umount", f"{folder}/parts"], check=True)
        subprocess.run([*run, "--shard", "0/1"], check=True, stdout=subprocess.DEVNULL)
        check_parts(folder)
        print(f"  full disk: {done.stderr.strip().splitlines()[0].replace(folder, '…')}; with room it is complete")


TESTS = {
    "limits": (None, [test_full_disk, test_many_small_shards, test_memory_of_files, test_memory_of_a_stream]),
    "glue": (None, [test_types, test_deaths, test_isolation, test_refusals, test_parent_killed]),
    "ray": ("ray", [test_ray_nodes, test_ray]),
    "spark": ("pyspark", [test_spark]),
    "parallel": ("parallel", [test_parallel]),
    "slurm": ("slurmctld", [test_slurm]),
}


def main():
    for name in sys.argv[2:] or TESTS:
        needed, tests = TESTS.get(name) or (None, [globals()[name]])  # a test alone, by its own name
        if needed and not shutil.which(needed) and importlib.util.find_spec(needed) is None:
            print(f"skipped: {name}, as {needed} is not installed")
            continue
        for test in tests:
            started = time.monotonic()
            test()
            print(f"ok: {test.__name__}, {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
