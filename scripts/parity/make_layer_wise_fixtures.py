# FlagEmbedding==1.4.2 transformers==4.44.2 torch==2.8.0 safetensors==0.8.0
"""Makes crates/judge-models/tests/fixtures/layer_wise: small random MiniCPMs, and the numbers that FlagEmbedding's own code makes of them.

    pip install --no-deps FlagEmbedding==1.4.2
    pip install transformers==4.44.2 torch==2.8.0 safetensors==0.8.0
    python scripts/parity/make_layer_wise_fixtures.py

transformers has no MiniCPM. FlagEmbedding's class reads a head of one label at each layer from `start_layer` on (`heads-*`), or, with the head type `raw`, the
vocabulary, as MiniCPM itself does (`plain`). The package needs others that have nothing to do with the model, so that its two files are loaded alone.

expected.json has for each list of token ids, by layer: of heads their number, of `plain` the logits of the vocabulary, which the last layer alone has.
"""

import importlib
import importlib.metadata
import json
import shutil
import sys
import types
from pathlib import Path

import torch
from safetensors.torch import save_file

FIXTURES = Path(__file__).resolve().parents[2] / "crates/judge-models/tests/fixtures"
ROOT = FIXTURES / "layer_wise"
# Its tokenizer has a word for each token.
LLAMA = FIXTURES / "families/llama-off"
FOLDER = "inference/reranker/decoder_only/models"
IDS = [[4, 5, 6, 7, 8, 9, 10], [50, 20, 30, 4], [9]]
BASE = dict(vocab_size=json.loads((LLAMA / "config.json").read_text())["vocab_size"], hidden_size=32, intermediate_size=48, num_hidden_layers=4, max_position_embeddings=64, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2)
SCALED = dict(scale_emb=12, scale_depth=1.4, dim_model_base=10)
MODELS = {
    "heads-scaled": dict(BASE, **SCALED, num_attention_heads=4, num_key_value_heads=2, start_layer=1, rope_theta=1000.0),
    "heads-plain": dict(BASE, num_attention_heads=4, attention_bias=True, start_layer=4),
    "plain": dict(BASE, **SCALED, num_attention_heads=4, num_key_value_heads=2, head_type="raw", head_multi=False, start_layer=4, tie_word_embeddings=False),
}


def flag_embedding():
    """The modules of the configuration and of the model, without the rest of the package."""
    files = importlib.metadata.files("FlagEmbedding")
    root = Path(next(file for file in files if str(file) == "FlagEmbedding/__init__.py").locate()).parent
    for name, path in [("FlagEmbedding", root), ("FlagEmbedding.utils", root / "utils"), ("models", root / FOLDER)]:
        package = types.ModuleType(name)
        package.__path__ = [str(path)]
        sys.modules[name] = package
    return [importlib.import_module(f"models.{name}_minicpm_reranker") for name in ("configuration", "modeling")]


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


@torch.no_grad()
def build(model, seed):
    rng = torch.Generator().manual_seed(seed)
    for name, p in sorted(model.named_parameters()):
        noise = torch.randn(p.shape, generator=rng)
        if "norm" in name:
            p.copy_(1.0 + 0.3 * noise)
        elif name.endswith("bias"):
            p.copy_(0.5 * noise)
        else:
            p.copy_(noise / p.shape[-1] ** 0.5)
        p.copy_(p.to(torch.bfloat16).float())
    return model


@torch.no_grad()
def read(model, ids, layers):
    given = dict(attention_mask=torch.ones(1, len(ids), dtype=torch.long), use_cache=False, return_dict=True)
    found = model(torch.tensor([ids]), cutoff_layers=layers, **given).logits
    if model.config.head_type == "raw":
        return {str(layers[0]): found[0].reshape(len(ids), -1)[-1].tolist()}
    return {str(layer): one[0, -1].item() for layer, one in zip(layers, found)}


def main():
    torch.set_num_threads(1)
    configuration, modeling = flag_embedding()
    shutil.rmtree(ROOT, ignore_errors=True)
    for seed, (name, fields) in enumerate(MODELS.items()):
        folder = ROOT / name
        folder.mkdir(parents=True)
        config = configuration.LayerWiseMiniCPMConfig(**fields, attn_implementation="eager")
        model = build(modeling.LayerWiseMiniCPMForCausalLM(config).eval(), seed)
        is_plain = config.head_type == "raw"
        last = config.num_hidden_layers
        layers = [last] if is_plain else list(range(config.start_layer, last + 1))
        write_json(folder / "expected.json", [{"ids": ids, "layers": read(model, ids, layers)} for ids in IDS])
        save_file({k: v.to(torch.bfloat16).contiguous() for k, v in model.state_dict().items()}, folder / "model.safetensors", metadata={"format": "pt"})
        written = json.loads(config.to_json_string())
        written["architectures"] = ["MiniCPMForCausalLM" if is_plain else "LayerWiseMiniCPMForCausalLM"]
        written["torch_dtype"] = "bfloat16"
        if is_plain:
            written = {k: v for k, v in written.items() if k not in ("head_type", "head_multi", "start_layer")}
        write_json(folder / "config.json", written)
        write_json(folder / "generation_config.json", {"eos_token_id": []})
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(LLAMA / file, folder)
        print(name, written["architectures"], layers)


if __name__ == "__main__":
    main()
