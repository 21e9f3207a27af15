# torch==2.15.0 transformers==5.23.0 peft==0.21.2
"""Loads a folder that merge_adapter wrote with transformers, and compares it with PEFT's own merge of the same adapters, one after another, in f32.

    judge merge --model BASE --adapter ADAPTER --output MERGED --dtype f32
    python scripts/parity/check_merged.py BASE MERGED [ADAPTER ...]

Every tensor of the folder must be one of the model's and the other way round. Prints the largest difference of the hidden states of some tokens, over the largest value of
their layer, and fails if it is more than 1e-5, or 2e-2 where the folder is in bf16.
"""

import sys

import torch
from make_family_fixtures import reproducible
from peft import PeftModel
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

IDS = torch.tensor([[4, 5, 6, 7, 8, 9, 10]])


def load(folder):
    config = AutoConfig.from_pretrained(folder)
    if (config.pad_token_id or 0) >= config.vocab_size:
        config.pad_token_id = None  # the default of a family, in a model with few tokens
    has_labels = any("SequenceClassification" in name for name in config.architectures or [])
    kind = AutoModelForSequenceClassification if has_labels else AutoModelForCausalLM
    return kind.from_pretrained(folder, config=config, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)


def states(model):
    with torch.no_grad():
        return model.eval()(IDS, output_hidden_states=True, use_cache=False).hidden_states


def main():
    reproducible()
    base_folder, folder, *adapters = sys.argv[1:]
    merged, info = load(folder)
    problems = {name: found for name, found in info.items() if found}
    if problems:
        raise SystemExit(f"transformers does not find what it expects: {problems}")
    base, _ = load(base_folder)
    for adapter in adapters:
        base = PeftModel.from_pretrained(base, adapter).merge_and_unload()
    pairs = list(zip(states(base), states(merged), strict=True))
    worst = max(((a - b).abs().max() / a.abs().max()).item() for a, b in pairs)
    tolerance = 1e-5 if AutoConfig.from_pretrained(folder).dtype == torch.float32 else 2e-2
    print(f"{folder}: {len(pairs)} layers, largest difference {worst:.1e}")
    if not worst < tolerance:
        raise SystemExit(f"more than {tolerance:.0e}")


if __name__ == "__main__":
    main()
