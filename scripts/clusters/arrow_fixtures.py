"""Streams and files of rows as pyarrow writes them, in all the types and encodings that engines use: crates/judge-data/tests/fixtures/pyarrow.json.

    pip install -r scripts/clusters/requirements.txt && python scripts/clusters/arrow_fixtures.py
"""

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

OUTPUT = Path(__file__).parents[2] / "crates" / "judge-data" / "tests" / "fixtures" / "pyarrow.json"
PROMPTS = ["Is it?", None, "", "Wie heißt „Käse“ auf Französisch?", "a text of more than twelve bytes, which views keep apart"]
ANSWERS = ["yes", "no", "x" * 40, "fromage", None]
TURNS = pa.list_(pa.struct([("content", pa.string()), ("role", pa.string())]))


def conversation(prompt, answer):
    if prompt is None:
        return None
    return [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}]


def rows(text=pa.string(), ids=None):
    columns = {
        "completion": pa.array(ANSWERS, text),
        "unused": pa.array([1.5, None, 2.5, 3.5, 4.5]),
        "id": ids if ids is not None else pa.array(["a", "b", "c", "d", "e"], text),
        "prompt": pa.array(PROMPTS, text),
    }
    return pa.table(columns)


def conversations():
    turns = [conversation(prompt, answer) for prompt, answer in zip(PROMPTS, ANSWERS)]
    return pa.table({"id": pa.array([1, 2, 3, 4, 5], pa.int32()), "messages": pa.array(turns, TURNS)})


def stream(batches, schema):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def parquet(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def expected(table):
    messages = "messages" in table.column_names
    if not messages:
        return [[row["id"], row["prompt"], row["completion"]] for row in table.to_pylist()]
    turns = [(row["id"], row["messages"]) for row in table.to_pylist()]
    # An answer that is null is no turn that could be read.
    readable = lambda turns: turns is not None and all(turn["content"] is not None for turn in turns)
    return [[id, turns[0]["content"], turns[1]["content"]] if readable(turns) else [id, None, None] for id, turns in turns]


def main():
    tables = {
        "string": rows(),
        "large_string": rows(pa.large_string()),
        "string_view": rows(pa.string_view()),
        "int64 ids": rows(ids=pa.array([2**63 - 1, -1, 0, 7, 8])),
        "messages": conversations(),
    }
    streams = {name: (table.to_batches(), table) for name, table in tables.items()}
    table = tables["string"]
    streams["two batches and an empty one"] = (table.to_batches(max_chunksize=3) + table.slice(0, 0).to_batches() + [pa.RecordBatch.from_pylist([], table.schema)], table)
    streams["slices"] = ([table.to_batches()[0].slice(1, 2), table.to_batches()[0].slice(3, 2)], table.slice(1, 4))
    sliced = tables["messages"].to_batches()[0].slice(2, 3)
    streams["a slice of messages"] = ([sliced], pa.Table.from_batches([sliced]))
    views = tables["string_view"].to_batches()[0].slice(3, 2)
    streams["a slice of views"] = ([views], pa.Table.from_batches([views]))
    files = {
        "plain": parquet(table, compression="none", use_dictionary=False),
        "snappy, dictionaries, row groups of 2": parquet(table, compression="snappy", row_group_size=2),
        "zstd, pages of version 2": parquet(table, compression="zstd", data_page_version="2.0"),
        "views": parquet(tables["string_view"]),
        "large strings, without the schema of Arrow": parquet(tables["large_string"], store_schema=False),
        "int64 ids": parquet(tables["int64 ids"], compression="zstd"),
        "messages": parquet(tables["messages"]),
        "delta encodings": parquet(table, use_dictionary=False, column_encoding={"prompt": "DELTA_BYTE_ARRAY", "completion": "DELTA_LENGTH_BYTE_ARRAY"}),
    }
    of_file = {"views": tables["string_view"], "int64 ids": tables["int64 ids"], "messages": tables["messages"]}
    content = {
        "made_by": "scripts/clusters/arrow_fixtures.py",
        "versions": {"pyarrow": pa.__version__},
        "streams": [{"name": name, "bytes": stream(batches, table.schema).hex(), "rows": expected(table)} for name, (batches, table) in streams.items()],
        "files": [{"name": name, "bytes": data.hex(), "rows": expected(of_file.get(name, table))} for name, data in files.items()],
        "refused": [
            {"name": "compressed", "bytes": compressed(table).hex(), "says": "compress"},
            {"name": "dictionaries", "bytes": stream(dictionary(table).to_batches(), dictionary(table).schema).hex(), "says": "dictionary"},
        ],
    }
    OUTPUT.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(streams)} streams, {len(files)} files, {OUTPUT.stat().st_size} bytes -> {OUTPUT}")


def compressed(table):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return sink.getvalue()


def dictionary(table):
    return table.set_column(3, "prompt", table.column("prompt").dictionary_encode())


if __name__ == "__main__":
    main()
