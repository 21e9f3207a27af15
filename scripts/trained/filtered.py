"""Does filtering pay? A small decoder tuned on a part of a pool of answers, chosen by a judge, a probe, and what needs neither.

    cargo build --locked --release -p judge
    python scripts/trained/filtered.py OUTPUT [--quick] [--pool 3000] [--check]
    JUDGE_TEST_DATA=FOLDER python scripts/trained/filtered.py OUTPUT --tune-trained

A decoder of the embedded model's shape with random parameters first learns generated answers as they are, with all their planted
defects. Each arm then tunes it on a third of another pool, three epochs, and `all` on the whole pool, one: as many steps, and about as
many tokens. Pools are of the topics that the judge was trained on, and of topics that it has never seen (`shifted`).

nats        of a token of sound answers to unseen questions, by `judge sft-evaluate`
twins       the answer that all raters prefer has more probability per token than the other one to the same question
right       greedy answers whose numbers are those of the question and of the result; questions whose result is a word are left out
padded      greedy answers with a sentence that stands in five answers of the pool at least, all of them padded

Intervals of shares are Wilson's. --quick takes a pool of 600 and the known topics; --tune-trained tunes the model of docs/trained.md, an adapter of
its last eight blocks, and does not teach it anything before. --check compares the figures with those of expected/filtered.json, which are of --quick.
"""

import json
import math
import random
import re
import statistics
import struct
from collections import Counter

from common import ROOT, arguments, checked, judge, model, number, read, table, write

SHARE, EPOCHS = 1 / 3, 3
ARMS = ["sound", "judge", "probe", "perplexity", "longest", "random", "all"]


def fresh(folder, seed):
    """The embedded model's folder with random parameters: norms 1, all else normal with a deviation of 0.02."""
    own, draw = ROOT / "models/tiny-judge", random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        text = (own / name).read_text()
        (folder / name).write_text(text.replace('"bfloat16"', '"float32"'))
    stored = (own / "model.safetensors").read_bytes()
    old = json.loads(stored[8:8 + struct.unpack("<Q", stored[:8])[0]])
    head, body, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name in sorted(set(old) - {"__metadata__"}):
        shape = old[name]["shape"]
        n = math.prod(shape)
        values = [1.0] * n if len(shape) == 1 else [draw.gauss(0, 0.02) for _ in range(n)]
        body.append(struct.pack(f"<{n}f", *values))
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * n]}
        at += 4 * n
    text = json.dumps(head).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(body))
    return folder


def rows(out, split, n, *more):
    path = out / f"{split}.{n}{''.join(more)}.jsonl"
    judge("rows", "--split", split, "--rows", n, *more, "--output", path, "--overwrite")
    return path


def tune(out, name, start, file, epochs, flags):
    folder = out / name
    if not folder.exists():
        judge("tune", "--objective", "completion", "--input", file, "--output", folder, "--epochs", epochs, *start, *flags, "--quiet",
              "--overwrite")
    return folder


def sentences(text):
    return {part.strip() for part in re.split(r"(?<=[.!?])\s", text) if part.strip()}


def numbers(text):
    return set(re.findall(r"\d+", text))


def share(hits):
    """A share with Wilson's interval of 95 %."""
    n, z = len(hits), 1.959963984540054
    if not n:
        return "undefined"
    p = sum(hits) / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return f"{number(p)} [{number((middle - half) / (1 + z * z / n))}, {number((middle + half) / (1 + z * z / n))}]"


class Study:
    """One split: a pool, and unseen questions of the same topics."""

    def __init__(self, out, split, test_split, pool, tests, generator, flags, written):
        self.out, self.generator, self.flags, self.written, self.nats = out, generator, flags, written, {}
        out.mkdir(parents=True, exist_ok=True)
        self.pool_file = rows(out, split, pool, "--truth")
        self.pool = read(self.pool_file)
        seen = {row["instruction"] for row in self.pool}
        fresh_rows = [row for row in read(rows(out, test_split, 40 * tests, "--truth")) if row["instruction"] not in seen]
        sound = {row["instruction"]: row for row in fresh_rows if not row["defects"]}
        self.sound = list(sound.values())[:tests]
        pairs = [row for row in read(rows(out, test_split, 20 * tests, "--pairs")) if row["instruction"] not in seen]
        self.pairs = [row for row in pairs if len(set(row["human"])) == 1 and row["human"][0] != "tie"][:tests]
        in_padded, elsewhere = Counter(), set()
        for row in self.pool:
            if any("padding" in name for name in row["defects"]):
                in_padded.update(sentences(row["response"]))
            else:
                elsewhere |= sentences(row["response"])
        self.empty = {part for part, count in in_padded.items() if count >= 5 and part not in elsewhere}

    def chosen(self, arm, probes):
        """The rows of an arm."""
        n = round(SHARE * len(self.pool))
        if arm == "all":
            return self.pool
        if arm == "sound":
            return sorted(self.pool, key=lambda row: -row["quality"])[:n]
        flags = {"judge": ["--baseline", "expected"], "probe": ["--baseline", "probe", "--probes", probes],
                 "perplexity": ["--baseline", "perplexity", *self.generator]}.get(arm, ["--baseline", arm])
        file = self.out / f"{arm}.chosen.jsonl"
        judge("select", "--input", self.pool_file, "--output", self.out / f"{arm}.graded.jsonl", "--selected", file, "--format", "rows",
              "--top", SHARE, *flags, "--quiet", "--overwrite")
        return read(file)

    def measured(self, name, model_flags):
        """What a tuned model says of unseen questions."""
        asked = [{"id": row["id"], "instruction": row["instruction"], "response": row["response"], "reference": row["response"]}
                 for row in self.sound[:self.written]]
        rest = [{key: row[key] for key in ("id", "instruction", "response")} for row in self.sound[self.written:]]
        found = self.evaluated(name, "sound", asked + rest, model_flags)
        nats = sum(row["nats_per_token"] * row["reply_tokens"] for row in found) / sum(row["reply_tokens"] for row in found)
        sides = [{"id": f"{row['id']}/{side}", "instruction": row["instruction"], "response": row[f"response_{side}"]}
                 for row in self.pairs for side in "ab"]
        likely = {row["id"]: row["nats_per_token"] for row in self.evaluated(name, "twins", sides, model_flags)}
        twins = [(likely[f"{row['id']}/a"] < likely[f"{row['id']}/b"]) == (row["human"][0] == "A") for row in self.pairs]
        right, padded = [], []
        by_id = {row["id"]: row for row in found}
        for row in self.sound[:self.written]:
            text = by_id[row["id"]]["written"]
            padded.append(any(part in text for part in self.empty))
            given, results = numbers(row["instruction"]), numbers(row["response"]) - numbers(row["instruction"])
            if len(results) == 1:
                right.append(results <= numbers(text) <= given | results)
        self.nats[name] = [row["nats_per_token"] for row in found]
        return [number(nats), share(twins), share(right), share(padded)]

    def less_random(self, name):
        """The mean over answers of their nats per token less those of the same answer after random rows, with its interval of 95 %."""
        if name not in ARMS or name == "random":
            return ""
        differences = [own - other for own, other in zip(self.nats[name], self.nats["random"])]
        middle, half = statistics.fmean(differences), 1.96 * statistics.stdev(differences) / math.sqrt(len(differences))
        return f"{number(middle)} [{number(middle - half)}, {number(middle + half)}]"

    def evaluated(self, name, what, own, model_flags):
        file = write(self.out / f"{name}.{what}.input.jsonl", own)
        output = self.out / f"{name}.{what}.jsonl"
        judge("sft-evaluate", "--input", file, "--output", output, "--max-new-tokens", "96", *model_flags, "--quiet", "--overwrite")
        return read(output)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--pool", type=int, default=3000)
    parser.add_argument("--tune-trained", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    out = args.output
    pool, tests, written = (600, 150, 100) if args.quick else (args.pool, 400, 200)
    if args.tune_trained:
        pool, tests, written = 300, 150, 0
        start = ["--model", model()[1]]
        flags, base = ["--top-blocks", "8", "--lr", "2e-4"], start
        tuned = lambda folder: [*start, "--adapter", folder]
    else:
        flags = ["--method", "full", "--batch-size", "16", "--micro-batch", "8", "--blocks-at-once", "6", "--lr", "1e-3"]
        before = rows(out, "train", 4 * pool)
        generator = tune(out, f"generator.{pool}", ["--model", fresh(out / "random", 0)], before, 2, flags)
        start = base = ["--model", generator]
        tuned = lambda folder: ["--model", folder]
    probes = out / "probes"
    if not probes.exists():
        judge("probe", "train", "--input", rows(out, "train", 1500), "--columns", "human=scores", "--output", probes,
              "--quiet")
    lines = []
    for split, test_split in [("validation", "test"), ("shifted", "shifted")][:1 if args.quick else 2]:
        study = Study(out / split, split, test_split, pool, tests, base, flags, written)
        topics = {"validation": "known", "shifted": "new"}[split]
        lines.append([topics, "before", "", "", *study.measured("before", base)])
        for arm in ARMS:
            own = study.chosen(arm, probes)
            file = write(study.out / f"{arm}.train.jsonl", [{key: row[key] for key in ("id", "instruction", "response")} for row in own])
            folder = tune(study.out, f"{arm}.{pool}.tuned", start, file, 1 if arm == "all" else EPOCHS, flags)
            defective = sum(bool(row["defects"]) for row in own) / len(own)
            quality = sum(row["quality"] for row in own) / len(own)
            lines.append([topics, arm, number(quality), number(defective), *study.measured(arm, tuned(folder))])
        own = [line for line in lines if line[0] == topics]
        for line in own:
            line.append(study.less_random(line[1]))
    head = ["topics", "chosen by", "mean quality", "with a defect", "nats", "twins", "right", "padded", "nats less those of random"]
    table(head, lines)
    checked(args, "filtered", head, lines)


if __name__ == "__main__":
    main()
