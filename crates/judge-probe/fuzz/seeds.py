"""Writes the fixtures' pickles into fuzz/corpus/pickle."""

import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
corpus = HERE / "corpus" / "pickle"
corpus.mkdir(parents=True, exist_ok=True)
for fixture in sorted((HERE.parent / "tests" / "fixtures").glob("sklearn_import_*.json")):
    for i, case in enumerate(json.loads(fixture.read_text())["cases"]):
        (corpus / f"{fixture.stem}_{i}").write_bytes(bytes.fromhex(case["pickle"]))
print(corpus, len(list(corpus.iterdir())))
