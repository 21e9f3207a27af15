"""`judge tune` beside torch and PEFT: seconds of a step, and memory, of a LoRA adapter of all projections, f32, on the same processor.

    cargo build --locked --release -p judge
    JUDGE_TEST_DATA=FOLDER python scripts/trained/tuning_speed.py OUTPUT [--model FOLDER] [--steps 4] [--batch 4] [--words 160]

Both learn the last turns of the same conversations, with rank 16, batches of so many rows, AdamW and no checkpointing of activations but
where it is said. Each side is a process of its own, and its peak memory is that of the system (VmHWM). torch 2.15.0, PEFT 0.21.2,
transformers 5.24.0; the model is a folder that both load.
"""

import json
import random
import re
import subprocess
import sys
import time

from common import arguments, judge, write

WORDS = "the parcel is late again and nobody answers my mails please send the money back today or tomorrow morning thanks".split()


def peak():
    return int(re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1]) / 1e6


def rows(n, words):
    draw = random.Random(0)
    text = lambda: " ".join(draw.choice(WORDS) for _ in range(words // 2))
    return [{"id": i, "messages": [{"role": "user", "content": text()}, {"role": "assistant", "content": text()}]} for i in range(n)]


def theirs(folder, file, steps, batch):
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4, weight_decay=0.0)
    data = [json.loads(line)["messages"] for line in open(file)]
    seconds = []
    for step in range(steps):
        start = time.perf_counter()
        examples = []
        for messages in data[step * batch:(step + 1) * batch]:
            prompt = tokenizer.apply_chat_template(messages[:-1], add_generation_prompt=True, return_dict=False)
            whole = tokenizer.apply_chat_template(messages, return_dict=False)
            examples.append((whole, [-100] * len(prompt) + whole[len(prompt):]))
        longest = max(len(ids) for ids, _ in examples)
        pad = lambda ids, value: ids + [value] * (longest - len(ids))
        ids = torch.tensor([pad(ids, 0) for ids, _ in examples])
        labels = torch.tensor([pad(labels, -100) for _, labels in examples])
        mask = torch.tensor([pad([1] * len(ids), 0) for ids, _ in examples])
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds, "gigabytes": peak()}))


def main():
    if sys.argv[1] == "--theirs":
        return theirs(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    parser = arguments(__doc__)
    parser.add_argument("--model", required=True, help="folder of a decoder in safetensors")
    parser.add_argument("--steps", default=4, type=int)
    parser.add_argument("--batch", default=4, type=int)
    parser.add_argument("--words", default=160, type=int)
    args = parser.parse_args()
    file = write(args.output / "rows.jsonl", rows(args.steps * args.batch, args.words))
    command = [sys.executable, __file__, "--theirs", args.model, str(file), str(args.steps), str(args.batch)]
    torch = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    print(f"torch and PEFT: {min(torch['seconds']):.2f} s a step at best, {torch['gigabytes']:.2f} GB")
    # Where states of lower blocks are kept, the first epoch makes them: what counts is a step of the second.
    arms = (("all blocks kept", 1, ["--blocks-at-once", "1000"]), ("4 blocks at once", 1, []),
            ("last 8 blocks, recomputed", 1, ["--top-blocks", "8", "--recompute"]), ("last 8 blocks, states kept", 2, ["--top-blocks", "8"]))
    for name, epochs, more in arms:
        folder = args.output / name.replace(", ", "-").replace(" ", "-")
        judge("tune", "--objective", "completion", "--input", file, "--model", args.model, "--output", folder, "--epochs", str(epochs),
              "--batch-size", str(args.batch), "--micro-batch", str(max(args.batch // 2, 1)), "--overwrite", "--quiet", "--json", args.output / "a.json", *more)
        found = json.loads((args.output / "a.json").read_text())
        seconds = min(found["seconds_per_step"][-args.steps:])
        print(f"judge tune, {name}: {seconds:.2f} s a step at best ({seconds / min(torch['seconds']):.2f} of torch's), "
              f"{found['peak_gigabytes']:.2f} GB ({found['peak_gigabytes'] / torch['gigabytes']:.2f})")


if __name__ == "__main__":
    main()
