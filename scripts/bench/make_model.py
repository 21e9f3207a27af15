"""Writes a model folder with random bf16 weights of a published model's shape, and a tokenizer of one token to a word.

    python scripts/bench/make_model.py qwen3-0.6b FOLDER [--layers N]

Token i is spelled `i`, so that a prompt's text says its tokens. The shapes are those of the published config.json files. Weights are
drawn between 1/128 and 1/32, with either sign: about as far from zero as the usual normal draw of spread 0.02. Python alone is enough.
"""

import argparse
import json
import math
import pathlib
import random
import struct

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


# How many numbers are drawn; the weights repeat them. A prime, so that no two rows of a matrix are alike.
DRAWN = (1 << 24) + 43


def drawn():
    """Little-endian bf16: seven bits of fraction, the last bit of the exponent and the sign at random."""
    draw = random.Random(0)
    numbers = bytearray(2 * DRAWN)
    numbers[0::2] = draw.randbytes(DRAWN)
    numbers[1::2] = draw.randbytes(DRAWN).translate(bytes(0x3C | byte & 0x80 for byte in range(256)))
    return memoryview(numbers)


def write(path, shapes):
    """Safetensors of these shapes: matrices are random, norms are ones."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes.items():
        start, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    numbers, at = drawn(), 0
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for shape in shapes.values():
            left = 2 * math.prod(shape)
            if len(shape) == 1:
                file.write(b"\x80\x3f" * shape[0])
                continue
            while left:
                part = numbers[at:at + left]
                file.write(part)
                left, at = left - len(part), (at + len(part)) % len(numbers)


def make(name, folder, layers):
    config = dict(SHAPES[name], hidden_act="silu", torch_dtype="bfloat16", attention_bias=False, bos_token_id=None,
                  eos_token_id=None, attention_dropout=0.0)
    if layers:
        config["num_hidden_layers"] = layers
    folder.mkdir(parents=True, exist_ok=True)
    d, ff, hd = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    q, kv = config["num_attention_heads"] * hd, config["num_key_value_heads"] * hd
    shapes = {"model.embed_tokens.weight": (config["vocab_size"], d)}
    for i in range(config["num_hidden_layers"]):
        block = {"self_attn.q_proj": (q, d), "self_attn.k_proj": (kv, d), "self_attn.v_proj": (kv, d), "self_attn.o_proj": (d, q),
                 "mlp.gate_proj": (ff, d), "mlp.up_proj": (ff, d), "mlp.down_proj": (d, ff),
                 "input_layernorm": (d,), "post_attention_layernorm": (d,)}
        if config["model_type"] == "qwen3":
            block |= {"self_attn.q_norm": (hd,), "self_attn.k_norm": (hd,)}
        shapes |= {f"model.layers.{i}.{stem}.weight": shape for stem, shape in block.items()}
    shapes["model.norm.weight"] = (d,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], d)
    write(folder / "model.safetensors", shapes)
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
