# torch==2.15.0 transformers==5.23.0 tokenizers==0.23.3
"""Writes crates/judge-models/tests/fixtures/stories260k.json: what transformers says of a small trained Llama.

    python scripts/parity/make_stories260k_facts.py FOLDER

FOLDER is the model in Hugging Face layout; it is not part of the repository. Per prompt: token ids, hidden_states of
the last position (the last one normed), logits of the labels 1 to 5 of every layer (each state times the head's rows),
and the greedy continuation.
"""

import json
import sys
from pathlib import Path

import tokenizers
import torch
import transformers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

EXPECTED_VERSIONS = {"torch": "2.15.0", "transformers": "5.23.0", "tokenizers": "0.23.3"}
OUT = Path(__file__).resolve().parents[2] / "crates/judge-models/tests/fixtures/stories260k.json"
PROMPTS = [
    "Once upon a time, there was a little girl named Lily.",
    "Tom saw a big red ball in the park",
    "The score is 4 of 5, so the number is",
]
NEW_TOKENS = 24


def short(values):
    return [float(f"{v:.7g}") for v in values]


@torch.no_grad()
def main(folder):
    found = {m.__name__: m.__version__.split("+")[0] for m in (torch, transformers, tokenizers)}
    print(found)
    if found != EXPECTED_VERSIONS:
        raise SystemExit(f"pinned to {EXPECTED_VERSIONS}")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(Path(folder) / "tokenizer.json"))
    labels = [tokenizer.get_vocab()[str(i)] for i in range(1, 6)]
    facts = {"labels": labels, "prompts": []}
    for prompt in PROMPTS:
        ids = tokenizer(prompt)["input_ids"]
        out = model(torch.tensor([ids]), output_hidden_states=True)
        last = torch.cat(out.hidden_states)[:, -1]
        torch.testing.assert_close(last[-1] @ model.lm_head.weight.T, out.logits[0, -1])
        new = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                             max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0)[0, len(ids):].tolist()
        facts["prompts"].append({
            "text": prompt,
            "ids": ids,
            "hidden": [short(row.tolist()) for row in last],
            "label_logits": [short(row.tolist()) for row in last @ model.lm_head.weight[labels].T],
            "greedy": new,
            "greedy_text": tokenizer.decode(new, skip_special_tokens=True),
        })
        print(repr(facts["prompts"][-1]["greedy_text"]))
    OUT.write_text(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
