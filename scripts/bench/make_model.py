# torch==2.15.0 safetensors==0.8.0
"""Writes a model folder with random bf16 weights of a published model's shape, and a tokenizer of one token to a word.

    python scripts/bench/make_model.py qwen3-0.6b FOLDER [--layers N]

Token i is spelled `i`, so that a prompt's text says its tokens. The shapes are those of the published config.json files. Each block is a
file of its own, so that a model larger than memory can be made.
"""

import argparse
import json
import pathlib

import torch
from safetensors.torch import save_file

SHAPES = {
    "qwen3-0.6b": dict(
        model_type="qwen3", hidden_size=1024, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8, head_dim=128,
        intermediate_size=3072, vocab_size=151936, rope_theta=1000000.0, rms_norm_eps=1e-6, tie_word_embeddings=True,
        max_position_embeddings=40960, architectures=["Qwen3ForCausalLM"]),
    "qwen3-1.7b": dict(
        model_type="qwen3", hidden_size=2048, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8, head_dim=128,
        intermediate_size=6144, vocab_size=151936, rope_theta=1000000.0, rms_norm_eps=1e-6, tie_word_embeddings=True,
        max_position_embeddings=40960, architectures=["Qwen3ForCausalLM"]),
    "llama-3.1-8b": dict(
        model_type="llama", hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, head_dim=128,
        intermediate_size=14336, vocab_size=128256, rope_theta=500000.0, rms_norm_eps=1e-5, tie_word_embeddings=False,
        max_position_embeddings=131072, architectures=["LlamaForCausalLM"],
        rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                          original_max_position_embeddings=8192)),
}


def make(name, folder, layers):
    config = dict(SHAPES[name], hidden_act="silu", torch_dtype="bfloat16", attention_bias=False, bos_token_id=None,
                  eos_token_id=None, attention_dropout=0.0)
    if layers:
        config["num_hidden_layers"] = layers
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return (torch.randn(*shape, generator=generator) * 0.02).to(torch.bfloat16)

    d, ff, hd = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    q, kv = config["num_attention_heads"] * hd, config["num_key_value_heads"] * hd
    ones = lambda n: torch.ones(n, dtype=torch.bfloat16)
    blocks = config["num_hidden_layers"]
    files, total = {}, 0

    def save(tensors):
        nonlocal total
        index = len(set(files.values())) + 1
        name = f"model-{index:05}-of-{blocks + 1:05}.safetensors"
        save_file(tensors, folder / name, metadata={"format": "pt"})
        files.update(dict.fromkeys(tensors, name))
        total += sum(tensor.nbytes for tensor in tensors.values())

    for i in range(blocks):
        p = f"model.layers.{i}."
        tensors = {}
        for stem, shape in [("self_attn.q_proj", (q, d)), ("self_attn.k_proj", (kv, d)), ("self_attn.v_proj", (kv, d)),
                            ("self_attn.o_proj", (d, q)), ("mlp.gate_proj", (ff, d)), ("mlp.up_proj", (ff, d)),
                            ("mlp.down_proj", (d, ff))]:
            tensors[p + stem + ".weight"] = normal(*shape)
        for stem, n in [("input_layernorm", d), ("post_attention_layernorm", d)]:
            tensors[p + stem + ".weight"] = ones(n)
        if config["model_type"] == "qwen3":
            tensors[p + "self_attn.q_norm.weight"] = ones(hd)
            tensors[p + "self_attn.k_norm.weight"] = ones(hd)
        save(tensors)
    ends = {"model.embed_tokens.weight": normal(config["vocab_size"], d), "model.norm.weight": ones(d)}
    if not config["tie_word_embeddings"]:
        ends["lm_head.weight"] = normal(config["vocab_size"], d)
    save(ends)
    index = {"metadata": {"total_size": total}, "weight_map": files}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": {str(i): i for i in range(config["vocab_size"])}, "unk_token": "0"}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=0, help="fewer blocks than the published model has")
    args = parser.parse_args()
    make(args.shape, args.folder, args.layers)
