# torch==2.15.0 transformers==5.24.0 safetensors==0.8.0 tokenizers==0.23.3
"""Makes crates/judge-models/tests/fixtures/attention_entropy.json: the attention entropies of the models in families/.

    python scripts/parity/attention_entropy_fixtures.py [NAME ...]

Names make those families alone and leave the others as they are.

For each family that make_family_fixtures.py made a model of, and for each prompt, the entropy of every head of every block: of the weights
that transformers returns (eager attention, output_attentions=True), each query's -sum(p ln p) over its weights above 0 in f64, in nats, then
the mean over queries, [n_layers][n_heads]. Two ways: "f32", and "rounded", f32 arithmetic on weights rounded to bf16; and
"bf16_error", the largest difference from "rounded" that transformers' own bf16 arithmetic makes.

The first two prompts are those of families/; the others are longer than a window, an original context and a tile of keys.
"""

import json
import sys

import torch
from make_family_fixtures import EXPERTS, FAMILIES, LONGER, PROMPTS, ROOT, TOWERS, empty, fresh_rope, reproducible, vocabulary
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

PATH = ROOT.parent / "attention_entropy.json"


def load(name, fields, dtype):
    """The committed weights, in dtype: the configuration is built as it was, for the folder's is in the layout of older releases."""
    fields = dict(fields)
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    if name in EXPERTS | TOWERS or name in ("gpt2-on", "gpt_neox-on"):
        # Whichever way its experts are written, without the parts that see, and with old names.
        auto = AutoModelForImageTextToText if name in TOWERS else AutoModelForCausalLM
        return auto.from_pretrained(ROOT / name, config=config, attn_implementation="eager", dtype=dtype).eval()
    model = empty(config, dtype)
    state = {}
    for file in sorted((ROOT / name).glob("model*.safetensors")):
        state.update(load_file(file))
    absent, unknown = model.load_state_dict(state, strict=False)
    assert not unknown and (not absent or (absent == ["lm_head.weight"] and config.tie_word_embeddings)), (absent, unknown)
    model.tie_weights()
    return model


@torch.no_grad()
def entropies(model, prompt):
    words = vocabulary()
    fresh_rope(model)
    out = model(torch.tensor([[words.index(word) for word in prompt.split()]]), output_attentions=True, use_cache=False)
    layers = []
    for attention in out.attentions:
        p = attention[0].double()  # [n_heads, seq, seq]
        assert torch.equal(p.triu(1), torch.zeros_like(p)), "a later position is seen"
        layers.append(-torch.special.xlogy(p, p).sum(-1).mean(-1))
    return torch.stack(layers)


def main():
    reproducible()
    wanted = sys.argv[1:] or list(FAMILIES)
    families = json.loads(PATH.read_text())["families"] if sys.argv[1:] else {}
    for name, (fields, _, _, _) in FAMILIES.items():
        if name not in wanted:
            continue
        model = load(name, fields, torch.float32)
        half = load(name, fields, torch.bfloat16)
        rounded = load(name, fields, torch.float32)
        rounded.load_state_dict(half.state_dict())
        found = {"f32": [], "rounded": []}
        error = 0.0
        for prompt in PROMPTS + LONGER:
            exact = entropies(rounded, prompt)
            found["f32"].append(entropies(model, prompt).tolist())
            found["rounded"].append(exact.tolist())
            error = max(error, (entropies(half, prompt) - exact).abs().max().item())
        families[name] = {**found, "bf16_error": error}
        print(name, error)
    PATH.write_text(json.dumps({"prompts": PROMPTS + LONGER, "families": families}, indent=1) + "\n")
    print(PATH.stat().st_size)


if __name__ == "__main__":
    main()
