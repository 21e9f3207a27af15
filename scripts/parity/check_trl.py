# trl==1.16.0 torch==2.15.0 transformers==5.24.0 peft==0.21.2 datasets==5.2.0
"""Exchanges adapters with TRL, both ways: replies (SFTTrainer) and rewards (RewardTrainer) of the embedded model.

    cargo build --locked --release -p judge
    python scripts/parity/check_trl.py OUTPUT

`judge tune` learns an adapter, which TRL's trainer loads and measures; then TRL's trainer learns one, which `judge` loads and measures.
Every time both say what they measured of the same rows, and the mean losses must be the same within 1e-4 of them. All in f32.
"""

import math
import pathlib
import shutil
import sys

import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer
from trl import RewardConfig, RewardTrainer, SFTConfig, SFTTrainer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "trained"))
from common import ROOT, judge, read, write  # noqa: E402

BASE = ROOT / "models/tiny-judge"
ROWS = 16
# What both trainers have in common: one batch of everything, no padding to some other length, nothing sent anywhere.
COMMON = dict(per_device_train_batch_size=8, per_device_eval_batch_size=ROWS, num_train_epochs=3, learning_rate=5e-3, report_to=[],
              save_strategy="no", bf16=False, use_cpu=True, gradient_checkpointing=False, disable_tqdm=True, seed=0)
LORA = dict(r=4, lora_alpha=8, lora_dropout=0.0)
PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def says(role, content):
    return {"role": role, "content": content}


def tuned(out, objective, rows):
    """An adapter that `judge tune` has learned."""
    folder = out / f"{objective}.judge"
    shutil.rmtree(folder, ignore_errors=True)
    judge("tune", "--objective", objective, "--input", rows, "--model", BASE, "--output", folder, "--epochs", "3", "--lr", "5e-3", "--rank", "4",
          "--alpha", "8", "--overwrite", "--quiet")
    return folder


def of_replies(out, adapter):
    """Nats per token of all replies, as `judge` measures them."""
    judge("sft-evaluate", "--input", out / "replies.jsonl", "--model", BASE, "--dtype", "f32", "--adapter", adapter,
          "--output", out / "evaluated.jsonl", "--overwrite", "--quiet")
    rows = read(out / "evaluated.jsonl")
    return sum(row["nats_per_token"] * row["reply_tokens"] for row in rows) / sum(row["reply_tokens"] for row in rows)


def of_rewards(out, adapter):
    """The loss of Bradley and Terry, of rewards that `judge` reads."""
    rewards = []
    for side in ("chosen", "rejected"):
        judge("reward", "--input", out / f"{side}.jsonl", "--model", BASE, "--dtype", "f32", "--adapter", adapter, "--output",
              out / f"{side}.rewards.jsonl", "--overwrite", "--quiet")
        rewards.append([row["rewards"][0] for row in read(out / f"{side}.rewards.jsonl")])
    return sum(math.log1p(math.exp(rejected - chosen)) for chosen, rejected in zip(*rewards)) / len(rewards[0])


def exchanged(out, name, ours, trainer, rows, own_loss):
    """Our adapter measured by TRL, and TRL's by us; `trainer` makes one of TRL's, over an adapter that is there or a new one."""
    pairs = []
    for by, folder in (("judge", ours), ("TRL", out / f"{name}.trl")):
        found = trainer(rows, ours if by == "judge" else None)
        if by == "TRL":
            found.train()
            found.save_model(str(folder))
        pairs.append((by, own_loss(out, folder), found.evaluate()["eval_loss"]))
    for by, here, there in pairs:
        print(f"{name}, an adapter that {by} has learned: {here:.6f} by judge, {there:.6f} by TRL")
        if not abs(here - there) <= 1e-4 * there:
            raise SystemExit("these are two models")


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(2)
    pairs = read(ROOT / "models/rows/pairs.jsonl")
    pairs = [pair for pair in pairs if set(pair["human"]) in ({"A"}, {"B"})][:ROWS]
    chosen = [pair["response_a" if pair["human"][0] == "A" else "response_b"] for pair in pairs]
    rejected = [pair["response_b" if pair["human"][0] == "A" else "response_a"] for pair in pairs]
    tokenizer = AutoTokenizer.from_pretrained(BASE)

    asked = [[says("user", pair["instruction"])] for pair in pairs]
    replies = [[says("assistant", reply)] for reply in chosen]
    conversations = [[*prompt, *reply] for prompt, reply in zip(asked, replies)]
    write(out / "replies.jsonl", [{"id": str(place), "messages": messages} for place, messages in enumerate(conversations)])
    ours = tuned(out, "completion", out / "replies.jsonl")

    def of_sft(rows, adapter):
        base = AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32)
        model = PeftModel.from_pretrained(base, adapter, is_trainable=True) if adapter else base
        lora = None if adapter else LoraConfig(**LORA, target_modules=PROJECTIONS, task_type="CAUSAL_LM")
        settings = SFTConfig(output_dir=str(out / "sft"), max_length=512, **COMMON)
        return SFTTrainer(model=model, args=settings, train_dataset=rows, eval_dataset=rows, processing_class=tokenizer, peft_config=lora)

    exchanged(out, "completion", ours, of_sft, Dataset.from_dict({"prompt": asked, "completion": replies}), of_replies)

    for side, texts in (("chosen", chosen), ("rejected", rejected)):
        write(out / f"{side}.jsonl", [{"id": str(place), "instruction": pair["instruction"], "response": text}
                                      for place, (pair, text) in enumerate(zip(pairs, texts))])
    rows = [{"id": str(place), "prompt": prompt, "chosen": [says("assistant", better)], "rejected": [says("assistant", worse)]}
            for place, (prompt, better, worse) in enumerate(zip(asked, chosen, rejected))]
    write(out / "preferences.jsonl", rows)
    ours = tuned(out, "reward", out / "preferences.jsonl")

    def of_reward(rows, adapter):
        base = AutoModelForSequenceClassification.from_pretrained(BASE, num_labels=1, dtype=torch.float32)
        model = PeftModel.from_pretrained(base, adapter, is_trainable=True) if adapter else base
        lora = None if adapter else LoraConfig(**LORA, target_modules=PROJECTIONS, task_type="SEQ_CLS", modules_to_save=["score"])
        settings = RewardConfig(output_dir=str(out / "rewards"), max_length=512, **COMMON)
        return RewardTrainer(model=model, args=settings, train_dataset=rows, eval_dataset=rows, processing_class=tokenizer, peft_config=lora)

    preferences = Dataset.from_list([{key: row[key] for key in ("prompt", "chosen", "rejected")} for row in rows])
    exchanged(out, "reward", ours, of_reward, preferences, of_rewards)


if __name__ == "__main__":
    main()
