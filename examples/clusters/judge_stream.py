"""The other side of the pipe of `judge stream`: a batch of rows in, a batch of results out, the same rows in the same order.

    with JudgeStream(["judge", "stream", "--columns", "instruction=prompt,response=completion"], ["id", "prompt", "completion"]) as judge:
        results = judge.score(batch)          # pyarrow.RecordBatch

Needs pyarrow and nothing else. What can go wrong on a cluster, and what is done about it:

* The worker is killed, or dies of a row: `WorkerDied`, and the next batch starts a new one. The engine's own process lives on. With
  `isolate=True` the batch is halved until the row is found; alone it has a second chance, then its status is `worker_died`. A worker
  that cannot even answer an empty batch is no row's fault.
* The worker refuses its command line or the columns (exit code 2): `WorkerRefused`. No retry helps, so let the job fail.
* The worker hangs, or a reader waits for bytes that a wrong length announces: after `timeout` seconds it is killed, and that is a death.
* This process is killed: the worker sees the end of its input without the end mark, and ends by itself.
* A stream that is cut between two batches looks complete to every reader, so no answer where one is due is a death, and so are other ids.
* The worker's stderr is ours, since nobody would empty a pipe. It stays in our session and process group, which engines kill.
"""

import atexit
import json
import subprocess
import threading

import pyarrow as pa

TEXT = pa.large_string()
_shared = {}


class WorkerDied(RuntimeError):
    """The worker ended, or was ended, before it had answered."""


def _is_text(kind):
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _of_values(kind):
    """The type of what a column holds, also where that is kept as categories."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def result_schema(argv):
    """The columns of the results that this command gives, and the same as Spark's DDL. No model is loaded."""
    columns, ddl = subprocess.run([*argv, "--schema"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    lists = {"list<double>": pa.list_(pa.float64()), "list<float>": pa.list_(pa.float32())}
    fields = [
        pa.field(column["name"], lists.get(column["type"]) or pa.type_for_alias(column["type"]), column["nullable"])
        for column in json.loads(columns)
    ]
    return pa.schema(fields), ddl


def shared(argv, columns, **options):
    """The JudgeStream of this process for a command: one model, however many tasks the engine gives to the process."""
    key = (tuple(argv), tuple(columns))
    if key not in _shared:
        _shared[key] = JudgeStream(argv, columns, **options)
    return _shared[key]


class WorkerRefused(RuntimeError):
    """The worker says that it was started wrongly, or with columns that it does not read."""


class JudgeStream:
    """One scoring process, started with the first batch. `columns` are those that are sent, the ids first."""

    def __init__(self, argv, columns, timeout=3600, isolate=False, env=None):
        self.argv, self.columns, self.timeout, self.isolate, self.env = list(argv), list(columns), timeout, isolate, env
        self.results, self.ddl = result_schema(argv)
        self.requests = self.process = self.run = None
        self.has_answered = False
        atexit.register(self.close)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def score(self, batch):
        """The results of a batch. WorkerDied if there are none; without `isolate`, the engine is to try again or to give up."""
        if not self.isolate or batch.num_rows == 0:
            return self._exchange(self._request(batch))
        return pa.Table.from_batches(self._halves(self._request(batch)), self.results).combine_chunks().to_batches()[0]

    def close(self, kill=False):
        """Ends the worker; its exit code, or None if there is none."""
        process, self.process = self.process, None
        if process is None:
            return None
        try:
            if kill:
                process.kill()
            else:
                self.writer.close()  # the end mark
            process.stdin.close()
        except (OSError, pa.ArrowException):
            pass  # it was dead already
        try:
            code = process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        process.stdout.close()
        return code

    def _request(self, batch):
        """The batch in the one schema that a stream has, whatever types the engine gives its texts from batch to batch."""
        id_column, batch = self.columns[0], batch.select(self.columns)
        if self.requests is None:
            kinds = {f.name: _of_values(f.type) for f in batch.schema}
            one = {name: TEXT if _is_text(kind) or pa.types.is_null(kind) else kind for name, kind in kinds.items()}
            found, wanted = kinds[id_column], self.results.field("id").type
            if not (_is_text(found) and _is_text(wanted) or pa.types.is_integer(found) and pa.types.is_integer(wanted)):
                raise ValueError(f"the ids in {id_column!r} are {found}, the command reads {wanted}: see its --id-type")
            one[id_column] = wanted
            self.requests = pa.schema([(name, one[name]) for name in self.columns])
        return pa.RecordBatch.from_arrays([batch.column(f.name).cast(f.type) for f in self.requests], schema=self.requests)

    def _exchange(self, request):
        watchdog, is_new = None, self.process is None
        if is_new:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env)
        try:
            if is_new:
                self.writer, self.reader = pa.ipc.new_stream(self.process.stdin, self.requests), None
            if self.timeout:
                watchdog = threading.Timer(self.timeout, self.process.kill)
                watchdog.start()
            self.writer.write_batch(request)
            self.process.stdin.flush()
            self.reader = self.reader or pa.ipc.open_stream(self.process.stdout)
            reply = self.reader.read_next_batch()
            if reply.schema != self.results or reply.column("id") != request.column(0):
                raise WorkerDied("it answered with other rows")
        except (StopIteration, OSError, pa.ArrowException, WorkerDied) as problem:
            code = self.close(kill=True)
            if code == 2:
                raise WorkerRefused(f"{self.argv[0]} refused its options or the columns {self.columns}; it has said why") from None
            raise WorkerDied(f"the worker ended with {code} in a batch of {request.num_rows} rows: {problem!r}") from None
        except BaseException:
            self.close(kill=True)  # an answer may be under way that nobody will read
            raise
        finally:
            if watchdog:
                watchdog.cancel()
        self.has_answered = True
        if reply.num_rows:
            self.run = reply.column("run")[0].as_py()
        return reply

    def _halves(self, request):
        """The results of a batch in parts; a row that the worker does not survive twice, alone, has the status worker_died."""
        for attempt in range(2):
            try:
                return [self._exchange(request)]
            except WorkerDied as death:
                if not self.has_answered:
                    self._exchange(request.slice(0, 0))
                if request.num_rows > 1:
                    half = request.num_rows // 2
                    return self._halves(request.slice(0, half)) + self._halves(request.slice(half))
                problem = str(death)
        row = {"id": request.column(0)[0].as_py(), "status": "worker_died", "detail": problem}
        row |= {"input": bytes(16), "run": self.run or "", "device": ""}
        return [pa.RecordBatch.from_pylist([row], schema=self.results)]
