# torch==2.15.0 transformers==5.23.0 safetensors==0.8.0 tokenizers==0.23.3 peft==0.21.2
"""Makes crates/judge-models/tests/fixtures/adapters: small random LoRA adapters of PEFT, and what it makes of models with them, not merged, in f32.

    python scripts/parity/make_adapter_fixtures.py [NAME ...]

Names of adapters make these alone and leave the others as they are.

Each folder is an adapter as PEFT saves it, for the model named in its expected.json, a folder of families/ or heads/. expected.json has, for some lists of token ids,
"states": the last position's hidden states of every layer, the last one normed, and "rewards" where the model has a head of labels. Beside the adapter "value" lies a value head as LLaMA-Factory saves it
(of transformers' last hidden state, which TRL's value head reads), and "rewards" are its values, "of_base" those of the model without the adapter.
"""

import json
import sys

import peft
import torch
from make_family_fixtures import ROOT as FAMILIES
from make_family_fixtures import emptied, reproducible, write_json
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

ROOT = FAMILIES.parent / "adapters"
IDS = [[4, 5, 6, 7, 8, 9, 10], [50, 20, 30, 4]]
# name: (base, settings)
ADAPTERS = {
    "plain": ("families/llama-off", dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj"])),
    "patterns": ("families/qwen3-off", dict(
        r=4, lora_alpha=6, use_rslora=True, target_modules="all-linear", rank_pattern={"mlp.up_proj": 2}, alpha_pattern={"layers.1.self_attn.k_proj": 3})),
    "dora": ("families/llama-off", dict(r=2, lora_alpha=4, use_dora=True, target_modules=["o_proj", "gate_proj"])),
    "fused": ("families/phi3-off", dict(r=3, lora_alpha=9, target_modules=["qkv_proj", "gate_up_proj"])),
    "labels": ("heads/qwen3", dict(r=4, lora_alpha=8, target_modules=["q_proj", "k_proj"], task_type="SEQ_CLS")),
    "neighbours": ("families/glm4-on", dict(r=3, lora_alpha=6, target_modules=["q_proj", "k_proj"])),
    "delta": ("families/qwen3_5_text-on", dict(r=3, lora_alpha=6, target_modules=["in_proj_qkv", "out_proj", "q_proj"])),
    "reward": ("families/llama-off", dict(r=2, lora_alpha=4, target_modules=["q_proj", "v_proj"], task_type="SEQ_CLS", modules_to_save=["score"])),
    "value": ("families/llama-off", dict(r=2, lora_alpha=4, target_modules=["k_proj"], task_type="CAUSAL_LM")),
}


def load(base, settings):
    kind = AutoModelForSequenceClassification if settings.get("task_type") == "SEQ_CLS" else AutoModelForCausalLM
    config = AutoConfig.from_pretrained(FAMILIES.parent / base)
    if config.model_type in ("phi3", "glm4"):
        config.pad_token_id = None
    if base.startswith("families") and kind is AutoModelForSequenceClassification:
        config.num_labels = 1  # as TRL's RewardTrainer loads a causal model
    return kind.from_pretrained(FAMILIES.parent / base, config=config, attn_implementation="eager", dtype=torch.float32).eval()


def main():
    reproducible()
    if peft.__version__ != "0.21.2":
        raise SystemExit(f"pinned to peft 0.21.2, found {peft.__version__}")
    wanted = sys.argv[1:] or list(ADAPTERS)
    for seed, (name, (base, settings)) in enumerate(ADAPTERS.items()):
        if name not in wanted:
            continue
        torch.manual_seed(seed)
        model = get_peft_model(load(base, settings), LoraConfig(**settings)).eval()
        with torch.no_grad():
            for key, p in sorted(model.named_parameters()):
                if "lora_B" in key:
                    p.copy_(0.1 * torch.randn(p.shape))
                elif "magnitude" in key or "score" in key and p.requires_grad:
                    p.mul_(1.0 + 0.2 * torch.randn(p.shape))
        folder = emptied(ROOT / name)
        model.save_pretrained(folder)
        head = None
        if name == "value":
            head = torch.nn.Linear(model.config.hidden_size, 1)
            save_file({f"v_head.summary.{key}": value.detach().clone() for key, value in head.state_dict().items()}, folder / "value_head.safetensors")
        found = []
        with torch.no_grad():
            for ids in IDS:
                out = model(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
                one = {"ids": ids, "states": torch.cat(out.hidden_states)[:, -1].tolist()}
                if settings.get("task_type") == "SEQ_CLS":
                    one["rewards"] = out.logits[0].tolist()
                if head is not None:
                    one["rewards"] = head(out.hidden_states[-1][:, -1])[0].tolist()
                    with model.disable_adapter():
                        plain = model(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
                    one["of_base"] = head(plain.hidden_states[-1][:, -1])[0].tolist()
                found.append(one)
        write_json(folder / "expected.json", {"base": base, "prompts": found})
        config = json.loads((folder / "adapter_config.json").read_text())
        config["base_model_name_or_path"] = base
        write_json(folder / "adapter_config.json", config)
        (folder / "README.md").unlink(missing_ok=True)
        print(name, sum(f.stat().st_size for f in folder.iterdir()))


if __name__ == "__main__":
    main()
