"""What rounding costs a trained model: the same GGUF file in f32, in bf16, in eight bits and with integer products.

    cargo build --locked --release -p judge
    JUDGE_TEST_DATA=FOLDER python scripts/trained/precision.py OUTPUT [--limit N]

All forms start from the file's codes of four bits (Q4_1). `f32` and `bf16` multiply the codes in that arithmetic, `integers` as integers
by inputs that are rounded to eight bits; `int8` rounds the expanded weights again, to eight bits; `int8, integers` rounds the inputs of
products too. Each grades prometheus-eval's 320 responses
(the expected grade at the last layer; --limit takes the first N) and grades both responses of LLMBar's 100 Natural pairs. A changed
grade or verdict is one that f32 gives otherwise.
"""

import json
import pathlib
import struct

from common import arguments, data, figure, judge, model, read, report, table, write

PROMETHEUS = data("prometheus_eval", "mt_bench_eval.json")
LLMBAR = ["--benchmark", "llmbar", "--data", data("llmbar", "LLMBar", "Natural", "dataset.json"), "--apart", "--verdict", "logits"]
# Their pairs are left out: they take longest.
GRADES_ALONE = {"integers", "int8, integers"}


def adapter(folder):
    """A LoRA adapter that adds nothing, with which `judge merge` writes the expanded weights."""
    folder.mkdir(exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({
        "peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ["o_proj"], "layers_to_transform": [0], "bias": "none",
        "task_type": "CAUSAL_LM", "fan_in_fan_out": False, "use_dora": False, "use_rslora": False}))
    name = "base_model.model.model.layers.0.self_attn.o_proj.lora_{}.weight"
    width = 576
    tensors = {name.format(side): {"dtype": "F32", "shape": shape, "data_offsets": [at * 4 * width, (at + 1) * 4 * width]}
               for at, (side, shape) in enumerate([("A", [1, width]), ("B", [width, 1])])}
    head = json.dumps(tensors).encode()
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + bytes(2 * 4 * width))
    return folder


def expanded(out):
    folder = out / "expanded"
    if not folder.exists():
        judge("merge", "--model", data("models", "smollm2-135m-instruct", "SmolLM2-135M-Instruct.Q4_1.gguf"), "--adapter", adapter(out / "nothing"),
              "--output", folder)
    return folder


def forms(out):
    in_bytes = ["--model", expanded(out), "--dtype", "bf16", "--weight-form", "int8"]
    found = {"f32": model("f32"), "bf16": model("bf16"), "int8": in_bytes}
    info = pathlib.Path("/proc/cpuinfo")
    flags = info.read_text().split() if info.exists() else []
    # Both give the same bits.
    kernel = next((kernel for flag, kernel in [("avx512_vnni", "avx512-vnni"), ("avx2", "avx2-int8")] if flag in flags), None)
    if kernel:
        found |= {"integers": [*model("bf16"), "--kernel", kernel], "int8, integers": [*in_bytes, "--kernel", kernel]}
    return found


def mode(values):
    return values.index(max(values)) + 1


def named(form):
    return "." + form.replace(", ", "-")


def main():
    parser = arguments(__doc__)
    parser.add_argument("--limit", type=int, default=320, help="of prometheus-eval's responses")
    args = parser.parse_args()
    out = args.output
    questions = [row["idx"] for row in json.loads(PROMETHEUS.read_text())]
    items, pairs, benches = {}, {}, {}
    every = forms(out)
    for form, flags in every.items():
        scores = out / f"precision.prometheus{named(form)}.jsonl"
        judge("score", "--input", PROMETHEUS, "--output", scores, "--condition", "prompt-end", "--carry", "none", "--limit", args.limit, *flags)
        for row in read(scores):
            if "logits" in row:
                item = items.setdefault(row["id"], {"id": row["id"], "human": row["human"], "question": questions[row["id"]]})
                item |= {f"score {form}": row["score"], f"grade {form}": mode(row["logits"][-1])}
        if form in GRADES_ALONE:
            continue
        verdicts = out / f"precision.natural{named(form)}.jsonl"
        judge("bench", *LLMBAR, "--output", verdicts, "--json", verdicts.with_suffix(".json"), *flags)
        benches[form] = json.loads(verdicts.with_suffix(".json").read_text())["statistics"]["accuracy_mean"]
        for row in read(verdicts):
            for order in row["orders"]:
                key = f"{row['id']} {order['order']}"
                pairs.setdefault(key, {"id": key, "pair": row["id"]})[form] = order["verdict"]
    items = write(out / "precision.items.jsonl", items.values())
    pairs = write(out / "precision.pairs.jsonl", pairs.values())
    rows = []
    for form in every:
        agree = ["agree", "--quiet", "--input", items, "--cluster", "question"]
        ranks = report(out / "precision.agree.json", *agree, "--predicted", f"score {form}", "--second", "score f32",
                       "--statistics", "spearman,difference_spearman")["statistics"]
        grades = report(out / "precision.agree.json", *agree, "--predicted", f"grade {form}", "--human", "grade f32", "--labels", "1,2,3,4,5",
                        "--statistics", "accuracy")["statistics"]
        moved = report(out / "precision.agree.json", *agree, "--predicted", f"score {form}", "--human", "score f32", "--statistics", "mae")["statistics"]
        compared = [figure(ranks["spearman"]), figure(ranks.get("difference_spearman")), figure(moved["mae"]), figure(grades["accuracy"])]
        if form in GRADES_ALONE:
            rows.append([form, *compared, "not measured", "not measured"])
            continue
        verdicts = report(out / "precision.agree.json", "agree", "--quiet", "--input", pairs, "--cluster", "pair", "--predicted", form, "--human", "f32",
                          "--labels", "A,B", "--statistics", "accuracy")["statistics"]
        rows.append([form, *compared, figure(benches[form]), figure(verdicts["accuracy"])])
    table(["form", "Spearman with GPT-4's grades", "less that of f32", "mean change of the score", "grades as in f32", "accuracy on LLMBar Natural",
           "verdicts as in f32"], rows)


if __name__ == "__main__":
    main()
