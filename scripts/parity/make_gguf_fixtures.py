# torch==2.15.0 transformers==5.23.0 safetensors==0.8.0 tokenizers==0.23.3 gguf==0.19.0
"""Makes crates/judge-models/tests/fixtures/gguf: small random models in GGUF files, and what others make of them.

    pip install --no-deps gguf==0.19.0
    python scripts/parity/make_gguf_fixtures.py [NAME ...]

Names of folders make these alone. Files are written by the package gguf of llama.cpp, which also packs (Q8_0, Q4_0, F16, BF16) and expands; it packs no K types, so
their blocks are random bytes with scales of a sensible size. What the weights are in a Hugging Face folder is asked of transformers, which undoes the converter's
changes; the permutation of queries and keys, the norms with 1 added and the cut vocabulary are done to them here as the converter does.

expected.safetensors is as in make_quantised_fixtures.py, with the SHA-256 of every tensor of the model.
"""

import json
import sys

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from make_family_fixtures import D_VOCAB, config_json, emptied, reproducible, write_json, write_tokenizer
from make_family_fixtures import ROOT as FAMILIES
from make_family_fixtures import build as build_family
from make_quantised_fixtures import IDS, digests
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

ROOT = FAMILIES.parent / "gguf"
COMMON = dict(vocab_size=D_VOCAB, num_hidden_layers=1, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=None, rope_parameters=dict(rope_type="default", rope_theta=10000.0))
# name: (architecture, fields of config.json, type by the tensor's name in the file, rows of the vocabulary that are left out)
FOLDERS = {
    "llama": ("llama", dict(model_type="llama", **COMMON, hidden_size=256, intermediate_size=32, num_attention_heads=2, num_key_value_heads=1, head_dim=32, tie_word_embeddings=True), {
        "token_embd": Type.Q6_K, "attn_q": Type.Q4_K, "attn_k": Type.Q5_K, "attn_v": Type.Q6_K, "attn_output": Type.Q4_0, "ffn_gate": Type.Q4_K, "ffn_up": Type.Q5_K, "ffn_down": Type.Q8_0,
    }, 0),
    "qwen2": ("qwen2", dict(model_type="qwen2", **COMMON, hidden_size=32, intermediate_size=32, num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=False), {
        "token_embd": Type.Q8_0, "output": Type.BF16, "ffn_down": Type.F32,
    }, 0),
    "qwen3": ("qwen3", dict(model_type="qwen3", **COMMON, hidden_size=32, intermediate_size=32, num_attention_heads=2, num_key_value_heads=1, head_dim=32, tie_word_embeddings=True), {
        "token_embd": Type.Q8_0, "attn_q": Type.Q8_0, "attn_k": Type.Q4_0,
    }, 0),
    "gemma3": ("gemma3", dict(model_type="gemma3_text", **{k: v for k, v in COMMON.items() if k != "rope_parameters"}, hidden_size=32, intermediate_size=32, num_attention_heads=2, num_key_value_heads=1, head_dim=32, query_pre_attn_scalar=32, layer_types=["full_attention"]), {
        "token_embd": Type.Q8_0,
    }, 4),
}
K_BYTES = {Type.Q4_K: 144, Type.Q5_K: 176, Type.Q6_K: 210}


def random_blocks(rng, kind, shape, size):
    """Blocks of a K type whose values are about as large as `size`."""
    blocks = rng.integers(0, 256, (shape[0], shape[1] // 256, K_BYTES[kind]), dtype=np.uint8)
    count = blocks.shape[:2]
    factor = rng.uniform(1, 2, count)

    def put(at, values):
        blocks[:, :, at : at + 2] = values.astype("<f2").view(np.uint8).reshape(*count, 2)

    if kind == Type.Q6_K:
        put(208, factor * size / 1500)
    else:
        middle = 7.5 if kind == Type.Q4_K else 15.5
        put(0, factor * size / (30 * middle))
        put(2, factor * size / 30)
    return blocks.reshape(shape[0], -1)


def permute(w, n_heads):
    """The converter's order of queries and keys for rotations of neighbours."""
    return w.reshape(n_heads, 2, w.shape[0] // n_heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def write_keys(writer, config, architecture):
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_key_length(width)
    writer.add_value_length(width)
    writer.add_rope_dimension_count(width)
    # As the converter does: of Gemma 3 that of full attention.
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope.get("full_attention", rope)["rope_theta"])
    # What a reader passes over: lists of texts and numbers.
    writer.add_token_list(["<unk>", "<s>", "</s>"])
    writer.add_array("tokenizer.ggml.scores", [0.0, 1.0, 2.0])


def make(name, architecture, fields, types, left_out, seed):
    folder = emptied(ROOT / name)
    fields = dict(fields)
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    model = build_family(config, seed)
    rng = np.random.default_rng(seed)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[architecture.upper()], config.num_hidden_layers)
    writer = gguf.GGUFWriter(folder / "model.gguf", architecture)
    write_keys(writer, config, architecture)
    if architecture == "llama":
        writer.add_tensor("rope_freqs.weight", np.ones(config.head_dim // 2, np.float32))
    for key, p in model.state_dict().items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        stored = names.get_name(key, try_suffixes=(".weight", ".bias"))
        w = p.numpy().copy()
        if left_out and "embed_tokens" in key:
            w = w[:-left_out]
        if architecture == "llama" and (".q_proj." in key or ".k_proj." in key):
            w = permute(w, config.num_attention_heads if ".q_proj." in key else config.num_key_value_heads)
        if architecture == "gemma3" and key.endswith("norm.weight"):
            w = w + 1
        kind = Type.F32 if w.ndim == 1 else types.get(stored.split(".")[-2], Type.F16)
        if kind in K_BYTES:
            packed = random_blocks(rng, kind, w.shape, float(np.abs(w).mean()))
        else:
            packed = gguf.quantize(w, kind)
        writer.add_tensor(stored, np.ascontiguousarray(packed), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    written = config_json(config, "v5", torch.bfloat16)
    read = AutoConfig.for_model(fields := written.pop("model_type"), **{**written, "vocab_size": D_VOCAB - left_out})
    written["model_type"] = fields
    other = AutoModelForCausalLM.from_pretrained(folder, gguf_file="model.gguf", config=read, dtype=torch.float32, attn_implementation="eager").eval()
    found, expected = {}, {}
    reader = gguf.GGUFReader(folder / "model.gguf")
    expanded = {tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type).reshape(*reversed(tensor.shape.tolist())) for tensor in reader.tensors}
    for key, p in other.state_dict().items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        stored = names.get_name(key, try_suffixes=(".weight", ".bias"))
        if not (architecture == "llama" and ("q_proj" in key or "k_proj" in key)) and not (architecture == "gemma3" and "norm" in key):
            assert np.array_equal(expanded[stored], p.numpy()), f"gguf and transformers disagree on {key}"
        if stored.split(".")[-2] in types and types[stored.split(".")[-2]] not in K_BYTES or p.ndim == 1:
            own = model.state_dict()[key][: p.shape[0]]
            assert (own - p).abs().max() < 0.2 * own.abs().max(), key
        found[key] = digests(p)
    with torch.no_grad():
        for i, ids in enumerate(IDS):
            out = other(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
            expected[f"{i}.ids"] = torch.tensor(ids, dtype=torch.int32)
            expected[f"{i}.hidden"] = torch.cat(out.hidden_states)[:, -1].contiguous()
    save_file(expected, folder / "expected.safetensors", metadata={"sha256": json.dumps(found)})
    write_json(folder / "config.json", written)
    write_tokenizer(folder)
    print(name, sum(f.stat().st_size for f in folder.iterdir()), out.hidden_states[-2].abs().mean().item())


def main():
    reproducible()
    names = sys.argv[1:] or list(FOLDERS)
    for seed, (name, settings) in enumerate(FOLDERS.items()):
        if name in names:
            make(name, *settings, 700 + seed)


if __name__ == "__main__":
    main()
