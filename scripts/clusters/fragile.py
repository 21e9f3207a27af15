"""A worker that dies or hangs of one row, for tests of the glue: passes batches on to the real one, unless the row is among them.

    python fragile.py die|hang|swap|garbage ID -- judge stream …
"""

import os
import signal
import sys
import time
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "clusters"))
from judge_stream import JudgeStream  # noqa: E402

fault, poison, _, *command = sys.argv[1:]
if "--schema" in command:
    os.execvp(command[0], command)
requests = pa.ipc.open_stream(sys.stdin.buffer)
answers = None
with JudgeStream(command, requests.schema.names) as judge:
    for batch in requests:
        if poison in batch.column(0).to_pylist():
            if fault == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if fault == "hang":
                time.sleep(3600)
            if fault == "garbage":
                sys.stdout.buffer.write(b"no stream at all" * 1000)
                sys.stdout.buffer.flush()
        reply = judge.score(batch)
        if fault == "swap" and poison in batch.column(0).to_pylist():
            reply = reply.take(list(reversed(range(reply.num_rows))))
        answers = answers or pa.ipc.new_stream(sys.stdout.buffer, reply.schema)
        answers.write_batch(reply)
        sys.stdout.buffer.flush()
if answers:
    answers.close()
