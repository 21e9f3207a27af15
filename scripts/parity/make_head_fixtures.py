# torch==2.15.0 transformers==5.23.0 safetensors==0.8.0 tokenizers==0.23.3
"""Makes crates/judge-models/tests/fixtures/heads: small random sequence classifiers and the numbers that transformers gives their labels.

    python scripts/parity/make_head_fixtures.py [FAMILY ...]

Names of families, and `padding`, make their folders alone and leave the others as they are.

One folder for each family of make_family_fixtures.py, named like its FAMILY-off, with one label, or with three and pad_token_id in families whose name has an
even number of letters. expected.json of a folder has, for each of some lists of token ids, the last of which end with padding, what the head gives: "f32", and
"bf16_error", the largest difference that transformers' own bf16 arithmetic makes from f32 arithmetic on the same rounded weights.
padding.json has what transformers makes of lists of ids by heads/qwen3 with other values of pad_token_id, alone and in a batch that is padded on either side.
without.json lists the families of which transformers has no such class.
"""

import sys

import torch
from make_family_fixtures import EXPERTS, FAMILIES, config_json, emptied, reproducible, saved_state, seed_of, write_json, write_tokenizer
from make_family_fixtures import ROOT as FAMILY_ROOT
from safetensors.torch import save_file
from transformers import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING, AutoConfig, AutoModelForSequenceClassification

ROOT = FAMILY_ROOT.parent / "heads"
PADDING = 3
IDS = [[4, 5, 6, 7, 8, 9, 10], [50, 20, 30, 4], [9, 9, 8], [4, 5, 6, PADDING, PADDING], [11, PADDING]]
TEMPLATE = "{% for m in messages %}{{ m.role[:1] == 'u' and 'ba' or 'de' }} {{ m.content }} {% endfor %}{% if add_generation_prompt %}de{% endif %}\n"


def build(config, seed, dtype=torch.float32, state=None):
    model = AutoModelForSequenceClassification.from_config(config, attn_implementation="eager", dtype=dtype).eval()
    if state is not None:
        model.load_state_dict(state)
        return model
    rng = torch.Generator().manual_seed(seed)
    gemma = config.model_type.startswith("gemma")
    offset = gemma or config.model_type in ("qwen3_5_text", "qwen3_5_moe_text")
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            noise = torch.randn(p.shape, generator=rng)
            if ("norm" in name or ".ln_" in name) and not name.endswith("bias"):
                p.copy_(0.3 * noise + (0.0 if offset and "linear_attn" not in name else 1.0))
            elif "A_log" in name:
                p.copy_(0.5 * noise)
            elif name.endswith("bias"):
                p.copy_(0.5 * noise)
            else:
                p.copy_(noise if "embed_tokens" in name and not gemma else noise / p.shape[-1] ** 0.5)
            p.copy_(p.to(torch.bfloat16).float())
    return model


@torch.no_grad()
def rewards(model, ids):
    return model(torch.tensor([ids]), use_cache=False).logits[0].float()


@torch.no_grad()
def make_padding():
    """EOS is 2. A text that ends with it, one that has it inside and at its end, and one of nothing else."""
    found = []
    for pad in (2, 3, None):
        model = AutoModelForSequenceClassification.from_pretrained(ROOT / "qwen3", dtype=torch.float32, attn_implementation="eager").eval()
        model.config.pad_token_id = pad
        for ids in ([4, 5, 6, 2], [4, 5, 2, 6, 7, 2, 2], [2, 4, 5, 6], [2, 2], [4, 3, 5, 3]):
            one = {"pad_token_id": pad, "ids": ids, "f32": rewards(model, ids).tolist()}
            if pad is not None:
                for side in ("left", "right"):
                    fill, rows = [pad] * 3, [ids, [9] * (len(ids) + 3)]
                    rows[0] = fill + ids if side == "left" else ids + fill
                    own = [1] * len(ids)
                    mask = torch.tensor([[0] * 3 + own if side == "left" else own + [0] * 3, [1] * len(rows[0])])
                    one[side] = model(torch.tensor(rows), attention_mask=mask, use_cache=False).logits[0].float().tolist()
            found.append(one)
    write_json(ROOT / "padding.json", found)
    print("padding", len(found))


def main():
    reproducible()
    wanted, without = sys.argv[1:], []
    for name, (fields, _, _, _) in FAMILIES.items():
        family, _, variant = name.rpartition("-")
        if variant != "off":
            continue
        if type(AutoConfig.for_model(fields["model_type"])) not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING or family in ("internlm3", "minicpm"):
            without.append(family)  # these two have no code of their own in transformers
            continue
        if wanted and family not in wanted:
            continue
        folder = emptied(ROOT / family)
        many = len(family) % 2 == 0
        fields = {**fields, "num_labels": 3 if many else 1, "num_hidden_layers": 2, "pad_token_id": PADDING if many else None}
        for per_layer in ("layer_types", "no_rope_layers"):
            if per_layer in fields:
                fields[per_layer] = fields[per_layer][:2]
        config = AutoConfig.for_model(fields.pop("model_type"), **fields)
        model = build(config, 1000 + seed_of(name))
        half = build(config, 0, torch.bfloat16, model.state_dict())
        found = []
        for ids in IDS:
            if not many and PADDING in ids:
                continue
            exact = rewards(model, ids)
            found.append({"ids": ids, "f32": exact.tolist(), "bf16_error": (rewards(half, ids) - exact).abs().max().item()})
        write_json(folder / "expected.json", found)
        state = saved_state(model) if name in EXPERTS else model.state_dict()
        state = {k: v.to(torch.bfloat16).contiguous() for k, v in state.items()}
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
        config.architectures = [type(model).__name__]
        written = config_json(config, "v5", torch.bfloat16)
        if many:
            written["id2label"] = {"0": "helpful", "1": "safe", "2": "brief"}
        else:
            written["id2label"] = {"0": "LABEL_0"}
        write_json(folder / "config.json", written)
        write_json(folder / "generation_config.json", {"eos_token_id": []})
        write_tokenizer(folder)
        (folder / "chat_template.jinja").write_text(TEMPLATE)
        print(family, config.architectures, [one["f32"] for one in found][:1])
    if not wanted or "padding" in wanted:
        make_padding()
    if not wanted:
        write_json(ROOT / "without.json", sorted(without))


if __name__ == "__main__":
    main()
