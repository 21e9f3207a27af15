# transformers==5.24.0 tokenizers==0.23.3 safetensors==0.8.0 numpy==2.4.6 gguf==0.19.0
"""Makes crates/judge-models/tests/fixtures/gguf_families, gguf_split and gguf_tokenizers: the models of tests/fixtures/families, and tokenizers, as GGUF files without anything beside them.

    pip install transformers==5.24.0 tokenizers==0.23.3 safetensors==0.8.0 numpy==2.4.6 pyyaml
    pip install --no-deps gguf==0.19.0
    python scripts/parity/make_gguf_family_fixtures.py

Keys and names of tensors are those of the package gguf of llama.cpp (its tensor-name map); what `convert_hf_to_gguf.py` does beside renaming is done here as it does: queries and keys
permuted (`permute`), value heads of Qwen3.5 put in turn (`tiled`) and its decay rates in the place of their logarithms, 1 added to norms of Gemma and Qwen3.5, experts stacked, kernels of convolutions and the gate of a shared expert squeezed, divisors of frequencies as tensors.

gguf_families/NAME/model.gguf has the weights of families/NAME, and config.json beside it is what the file is to be read as: that of families/NAME with the fields of EDITS, where
llama.cpp has no choice of its own (it knows one activation, one pattern of windows). The test gives it to the other side alone.

gguf_tokenizers/NAME.gguf are whole models, of one random block. expected.json has the tokens of TEXTS: by transformers' own reading of the file for byte-level vocabularies; for `prepend` by
the tokenizer.json that its entries are from (crates/judge-text/tests/fixtures/tokenizers/prepend).
"""

import json
import shutil
from importlib.metadata import version
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from tokenizers import Tokenizer
from transformers.integrations.gguf.gguf_tokenizer_mapping import convert_gguf_tokenizer

FIXTURES = Path(__file__).resolve().parents[2] / "crates/judge-models/tests/fixtures"
TOKENIZERS = Path(__file__).resolve().parents[2] / "crates/judge-text/tests/fixtures/tokenizers"
S, F = "sliding_attention", "full_attention"
# Folder: its architecture, and what it is read as.
EDITS = {
    "llama-off": ("llama", {}),
    "llama-on": ("llama", dict(rope_theta=500000.0, rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192))),
    "mixtral-off": ("llama", {}),
    "qwen2-off": ("qwen2", {}),
    "qwen3-off": ("qwen3", {}),
    "qwen2_moe-off": ("qwen2moe", {}),
    "qwen3_moe-off": ("qwen3moe", dict(norm_topk_prob=True)),
    "olmoe-off": ("olmoe", {}),
    "gemma2-off": ("gemma2", dict(hidden_activation="gelu_pytorch_tanh", sliding_window=5, layer_types=[S, F, S], attn_logit_softcapping=2.0, final_logit_softcapping=8.0)),
    "gemma3_text-off": ("gemma3", dict(sliding_window=5, layer_types=[S, S, S])),
    "phi3-off": ("phi3", {}),
    "phi3-on": ("phi3", {}),
    "granite-on": ("granite", {}),
    "smollm3-off": ("smollm3", {}),
    "gpt_oss-on": ("gpt-oss", dict(swiglu_alpha=1.702, swiglu_limit=7.0)),
    "ministral3-on": ("mistral3", dict(sliding_window=None)),
    "ministral3-off": ("mistral3", {}),
    "olmo2-off": ("olmo2", {}),
    "olmo3-on": ("olmo2", {}),
    "exaone4-off": ("exaone4", {}),
    "exaone4-on": ("exaone4", {}),
    "cohere2-off": ("cohere2", dict(sliding_window=5, layer_types=[S, S, S], logit_scale=0.25)),
    "ernie4_5-off": ("ernie4_5", {}),
    "glm4-off": ("glm4", {}),
    "glm4-on": ("glm4", {}),
    "lfm2-off": ("lfm2", {}),
    "lfm2-on": ("lfm2", {}),
    "gemma4_text-off": ("gemma4", {}),
    "gemma4_text-on": ("gemma4", {}),
    "gemma4_text-experts": ("gemma4", {}),
    "qwen3_5_text-off": ("qwen35", {}),
    "qwen3_5_text-on": ("qwen35", {}),
    "qwen3_5_moe_text-on": ("qwen35moe", {}),
}
PERMUTED = ["llama", "granite", "smollm3", "mistral3"]
DTYPES = {"BF16": (np.uint16, Type.BF16), "F16": (np.float16, Type.F16), "F32": (np.float32, Type.F32)}
PRE = ["llama-bpe", "qwen2", "qwen35", "tekken", "gpt-4o", "gpt-2"]
TEXTS = [
    "score: 4", " The judge says 12345 words.", "It's 2 < 3?\n\n  Ärger – 東京 😀", "tabs\tand  runs   of spaces ", "<s>a</s> b", "CamelCase don't DON'T x_1 == y[22]; // ok\r\n", "مرحبا ١٢٣ नमस्ते", "",
]


def tensors_of(folder):
    """Name: (bits as stored, name of the dtype)."""
    index = folder / "model.safetensors.index.json"
    files = sorted(set(json.loads(index.read_text())["weight_map"].values())) if index.exists() else ["model.safetensors"]
    all = {}
    for file in files:
        data = (folder / file).read_bytes()
        length = int.from_bytes(data[:8], "little")
        for name, entry in json.loads(data[8 : 8 + length]).items():
            if name != "__metadata__":
                start, end = entry["data_offsets"]
                bits = np.frombuffer(data[8 + length + start : 8 + length + end], DTYPES[entry["dtype"]][0])
                all[name] = (bits.reshape(entry["shape"]).copy(), entry["dtype"])
    return all


def widened(bits, dtype):
    return (bits.astype(np.uint32) << 16).view(np.float32) if dtype == "BF16" else bits.astype(np.float32)


def permute(w, n_heads):
    return w.reshape(n_heads, 2, w.shape[0] // n_heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def tiled(w, config, name):
    """The value heads of a delta rule, by key head in a folder, in turn in a file."""
    keys, values, width = config["linear_num_key_heads"], config["linear_num_value_heads"], config["linear_value_head_dim"]

    def turn(w, width):
        return w.reshape(keys, values // keys, width, *w.shape[1:]).swapaxes(0, 1).reshape(w.shape)

    if name in ("in_proj_qkv.weight", "conv1d.weight"):
        before = 2 * keys * config["linear_key_head_dim"]
        return np.concatenate([w[:before], turn(w[before:], width)])
    if name == "in_proj_z.weight":
        return turn(w, width)
    if name == "out_proj.weight":
        return turn(w.T, width).T
    return turn(w, 1) if name != "norm.weight" else w


def gemma4_keys(writer, config, head_dim):
    """Blocks with and without a window have heads and rotations of their own."""
    get = config.get
    full_dim = get("global_head_dim") or next(iter(config["per_layer_config"].values()))["head_dim"]
    windows = [kind == S for kind in config["layer_types"]]
    shared = config["num_kv_shared_layers"]
    writer.add_shared_kv_layers(shared)
    writer.add_embedding_length_per_layer_input(get("hidden_size_per_layer_input") or 0)
    writer.add_sliding_window(config["sliding_window"])
    writer.add_sliding_window_pattern(windows)
    for add, value in [(writer.add_key_length, full_dim), (writer.add_value_length, full_dim), (writer.add_key_length_swa, head_dim), (writer.add_value_length_swa, head_dim)]:
        add(value)
    ropes = config["rope_parameters"]
    writer.add_rope_dimension_count(full_dim)
    writer.add_rope_dimension_count_swa(head_dim)
    writer.add_rope_freq_base_swa(ropes["sliding_attention"]["rope_theta"])
    turning = int(full_dim * ropes["full_attention"]["partial_rotary_factor"] / 2)
    writer.add_tensor("rope_freqs.weight", np.array([1.0] * turning + [1e30] * (full_dim // 2 - turning), np.float32))
    if config["final_logit_softcapping"]:
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])


def write_keys(writer, config, architecture, tensors):
    get = config.get
    heads = config["num_attention_heads"]
    head_dim = get("head_dim") or config["hidden_size"] // heads
    # A block that predicts further tokens is counted.
    writer.add_block_count(config["num_hidden_layers"] + architecture.startswith("qwen35"))
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    width = next((bits.shape[0] for name, (bits, _) in tensors.items() if name.endswith("feed_forward.w1.weight")), get("intermediate_size"))
    if get("use_double_wide_mlp"):
        width = [width * (1 + (i >= config["num_hidden_layers"] - config["num_kv_shared_layers"])) for i in range(config["num_hidden_layers"])]
    if width:
        writer.add_feed_forward_length(width)
    writer.add_head_count(heads)
    kv = get("num_key_value_heads") or heads
    if architecture == "lfm2":
        full = get("full_attn_idxs") or [i for i, kind in enumerate(config["layer_types"]) if kind == F]
        writer.add_head_count_kv([kv if i in full else 0 for i in range(config["num_hidden_layers"])])
        writer.add_shortconv_l_cache(config["conv_L_cache"])
        writer.add_layer_norm_rms_eps(config["norm_eps"])
    elif get("num_global_key_value_heads"):
        writer.add_head_count_kv([kv if kind == S else config["num_global_key_value_heads"] for kind in config["layer_types"]])
    else:
        writer.add_head_count_kv(kv)
    if architecture == "cohere2":
        writer.add_layer_norm_eps(config["layer_norm_eps"])
        writer.add_logit_scale(config["logit_scale"])
    elif architecture != "lfm2":
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    if get("head_dim") and architecture != "gemma4":
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    ropes = get("rope_parameters") or {}
    rope = ropes.get("full_attention", ropes) or (get("rope_scaling") or {})
    theta = rope.get("rope_theta", get("rope_theta"))
    writer.add_rope_freq_base(theta)
    partial = rope.get("partial_rotary_factor", get("partial_rotary_factor")) or 1.0
    if architecture != "gemma4":
        writer.add_rope_dimension_count(int(head_dim * partial))
    kind = rope.get("rope_type", rope.get("type"))
    if kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR if kind == "linear" else gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        if kind == "yarn":
            writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
            if "beta_fast" in rope:
                writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
            if "beta_slow" in rope:
                writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
            if "mscale_all_dim" in rope:
                writer.add_rope_scaling_yarn_log_mul(rope["mscale_all_dim"])
            if "llama_4_scaling_beta" in rope:
                writer.add_attn_temperature_scale(rope["llama_4_scaling_beta"])
    if kind == "llama3":
        frequencies = 1.0 / theta ** (np.arange(0, head_dim, 2, dtype=np.float32) / head_dim)
        factor, low, high, context = (rope[name] for name in ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"))
        lengths = 2 * np.pi / frequencies
        smooth = (context / lengths - low) / (high - low)
        divisors = np.where(lengths < context / high, 1.0, np.where(lengths > context / low, factor, 1 / ((1 - smooth) / factor + smooth)))
        writer.add_tensor("rope_freqs.weight", divisors.astype(np.float32))
    if kind == "su":
        writer.add_tensor("rope_factors_long.weight", np.array(rope["long_factor"], np.float32))
        writer.add_tensor("rope_factors_short.weight", np.array(rope["short_factor"], np.float32))
        writer.add_rope_scaling_orig_ctx_len(config["original_max_position_embeddings"])
    if get("sliding_window") and architecture in ("gemma2", "gemma3", "phi3", "olmo2", "exaone4", "cohere2", "gpt-oss"):
        writer.add_sliding_window(config["sliding_window"])
        if architecture in ("olmo2", "exaone4"):
            writer.add_sliding_window_pattern([kind == S for kind in config["layer_types"]])
    if architecture == "gemma4":
        gemma4_keys(writer, config, head_dim)
    if architecture.startswith("qwen35"):
        writer.add_nextn_predict_layers(1)
        writer.add_full_attention_interval(2)
        writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
        writer.add_ssm_state_size(config["linear_key_head_dim"])
        writer.add_ssm_group_count(config["linear_num_key_heads"])
        writer.add_ssm_time_step_rank(config["linear_num_value_heads"])
        writer.add_ssm_inner_size(config["linear_num_value_heads"] * config["linear_value_head_dim"])
        writer.add_tensor(f"blk.{config['num_hidden_layers']}.nextn.eh_proj.weight", np.zeros((4, 8), np.float32))
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    if architecture == "granite":
        writer.add_attention_scale(config["attention_multiplier"])
        writer.add_embedding_scale(config["embedding_multiplier"])
        writer.add_residual_scale(config["residual_multiplier"])
        writer.add_logit_scale(config["logits_scaling"])
    if experts := get("num_local_experts") or get("num_experts"):
        writer.add_expert_count(experts)
        writer.add_expert_used_count(get("num_experts_per_tok") or config["top_k_experts"])
        if architecture == "gpt-oss":
            writer.add_expert_feed_forward_length(config["intermediate_size"])
        if "moe_intermediate_size" in config:
            writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
        if "shared_expert_intermediate_size" in config:
            writer.add_expert_shared_feed_forward_length(config["shared_expert_intermediate_size"])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])


def stacked(tensors):
    """Experts of a block as one tensor, by the name that the tensor-name map has for it."""
    out, parts = {}, {}
    for name, (bits, dtype) in tensors.items():
        before, mark, rest = name.partition(".experts.")
        if mark and rest.split(".")[0].isdigit():
            number, stem = rest.split(".", 1)
            parts.setdefault(f"{before}.experts.{stem}", {})[int(number)] = (bits, dtype)
        elif "mlp.router." in name or "self_attn.sinks" in name:
            out[name.replace("sinks", "sinks.weight")] = (bits, dtype)
        elif name.endswith(("gate_up_proj_bias", "down_proj_bias")):
            parts_of = dict(gate=bits[:, ::2], up=bits[:, 1::2]) if "gate_up" in name else dict(down=bits)
            for stem, part in parts_of.items():
                out[f"{before}.experts.{stem}_proj.bias"] = (part, dtype)
        elif name.endswith("experts.gate_up_proj") and f"{name}_bias" in tensors:
            for stem, part in (("gate_proj", bits[:, :, ::2]), ("up_proj", bits[:, :, 1::2])):
                out[f"{before}.experts.{stem}.weight"] = (part.swapaxes(1, 2), dtype)
        elif name.endswith("experts.down_proj") and f"{name}_bias" in tensors:
            out[name + ".weight"] = (bits.swapaxes(1, 2), dtype)
        elif name.endswith("experts.gate_up_proj") and ".mlp." not in name:
            out[name + ".weight"] = (bits, dtype)
        elif name.endswith("experts.gate_up_proj"):
            half = bits.shape[1] // 2
            for stem, part in (("gate_proj", bits[:, :half]), ("up_proj", bits[:, half:])):
                out[name.replace("gate_up_proj", f"{stem}.weight")] = (part, dtype)
        elif name.endswith("experts.down_proj"):
            out[name + ".weight"] = (bits, dtype)
        else:
            out[name] = (bits, dtype)
    for name, all in parts.items():
        out[name] = (np.stack([all[i][0] for i in range(len(all))]), all[0][1])
    return out


def stored_name(names, name):
    if ".sinks." in name:
        return f"blk.{name.split('.')[2]}.attn_sinks.weight"
    for of_folder, of_file in (("router.scale", "ffn_gate_inp.scale"), ("router.per_expert_scale", "ffn_down_exps.scale"), ("layer_scalar", "layer_output_scale.weight")):
        if name.endswith(of_folder):
            return f"blk.{name.split('.')[2]}.{of_file}"
    for spelt in (name, name.replace("model.layers", "layers").replace("block_sparse_moe", "feed_forward")):
        if found := names.get_name(spelt, try_suffixes=(".weight", ".bias")):
            return found
    raise KeyError(name)


def make_family(name, architecture, edits):
    config = json.loads((FIXTURES / "families" / name / "config.json").read_text()) | edits
    folder = FIXTURES / "gguf_families" / name
    folder.mkdir(parents=True)
    tensors = tensors_of(FIXTURES / "families" / name)
    key = next(arch for arch, known in gguf.MODEL_ARCH_NAMES.items() if known == architecture)
    names = gguf.get_tensor_name_map(key, config["num_hidden_layers"])
    writer = gguf.GGUFWriter(folder / "model.gguf", architecture)
    write_keys(writer, config, architecture, tensors)
    heads = config["num_attention_heads"]
    for name, (bits, dtype) in stacked(tensors).items():
        if architecture in PERMUTED and (".q_proj." in name or ".k_proj." in name):
            bits = permute(bits, heads if ".q_proj." in name else config.get("num_key_value_heads") or heads)
        if name.endswith(("conv.conv.weight", "conv1d.weight", "shared_expert_gate.weight")):
            bits = bits.squeeze()
        if ".linear_attn." in name:
            bits = tiled(bits, config, name.rpartition("linear_attn.")[2])
        if name.endswith("A_log"):
            bits, dtype = -np.exp(widened(bits, dtype)), "F32"
        name = name.replace(".dt_bias", ".dt_proj.bias")
        if architecture in ("gemma2", "gemma3", "qwen35", "qwen35moe") and name.endswith("norm.weight") and "linear_attn" not in name:
            bits, dtype = widened(bits, dtype) + np.float32(1), "F32"
        if bits.ndim == 1 or "conv.conv" in name or "conv1d" in name:
            bits, dtype = widened(bits, dtype), "F32"
        kind = DTYPES[dtype][1]
        data = np.ascontiguousarray(bits)
        writer.add_tensor(stored_name(names, name), data.view(np.uint8) if kind == Type.BF16 else data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def split(name):
    """The file of a family in parts of at most 12 tensors, as `gguf-split` writes them."""
    source, to = gguf.GGUFReader(FIXTURES / "gguf_families" / name / "model.gguf"), FIXTURES / "gguf_split"
    to.mkdir(parents=True)
    parts = [source.tensors[i : i + 12] for i in range(0, len(source.tensors), 12)]
    for number, tensors in enumerate(parts):
        writer = gguf.GGUFWriter(to / f"m-{number + 1:05}-of-{len(parts):05}.gguf", source.fields["general.architecture"].contents())
        if number == 0:
            for key, field in source.fields.items():
                if not key.startswith("GGUF.") and key != "general.architecture":
                    writer.add_key_value(key, field.contents(), field.types[0], field.types[-1] if len(field.types) > 1 else None)
        writer.add_uint16("split.no", number)
        writer.add_uint16("split.count", len(parts))
        writer.add_int32("split.tensors.count", len(source.tensors))
        for tensor in tensors:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def write_tokenizer(path, model, pre, tokens, types, merges=None, scores=None, bos=None, eos=None, unknown=None, template=None):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    if pre:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if merges is not None:
        writer.add_token_merges(merges)
    if scores is not None:
        writer.add_token_scores(scores)
    writer.add_bos_token_id(bos)
    writer.add_eos_token_id(eos)
    if unknown is not None:
        writer.add_unk_token_id(unknown)
    if template:
        writer.add_chat_template(template)
    rng = np.random.default_rng(len(tokens))
    writer.add_block_count(1)
    writer.add_context_length(512)
    writer.add_embedding_length(8)
    writer.add_feed_forward_length(8)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tensor("token_embd.weight", rng.normal(0, 1, (len(tokens), 8)).astype(np.float16))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(8, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        writer.add_tensor(f"blk.0.{name}.weight", rng.normal(0, 0.3, (8, 8)).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def entries(json):
    vocabulary = dict(json["model"]["vocab"]) | {token["content"]: token["id"] for token in json["added_tokens"]}
    tokens = [None] * len(vocabulary)
    for token, number in vocabulary.items():
        tokens[number] = token
    special = {token["content"] for token in json["added_tokens"]}
    types = [gguf.TokenType.CONTROL if t in special else gguf.TokenType.BYTE if len(t) == 6 and t.startswith("<0x") else gguf.TokenType.NORMAL for t in tokens]
    return tokens, types


def make_tokenizers():
    folder = FIXTURES / "gguf_tokenizers"
    folder.mkdir(parents=True)
    expected = {}
    source = json.loads((TOKENIZERS / "byte-level/tokenizer.json").read_text())
    tokens, types = entries(source)
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in source["model"]["merges"]]
    bos, eos = tokens.index("<s>"), tokens.index("</s>")
    for pre in PRE:
        path = folder / f"{pre}.gguf"
        write_tokenizer(path, "gpt2", pre, tokens, types, merges=merges, bos=bos, eos=eos)
        # What transformers' reader, which asks for torch, makes of the file.
        found = dict(tokenizer_type="gpt2", pre_tokenizer_type=pre, tokens=tokens, token_type=[int(kind) for kind in types], merges=merges)
        other, _ = convert_gguf_tokenizer("llama", found)
        expected[pre] = [other.encode(text, add_special_tokens=False).ids for text in TEXTS]
    source_path = TOKENIZERS / "prepend/tokenizer.json"
    source = json.loads(source_path.read_text())
    tokens, types = entries(source)
    ranks = {}
    for rank, merge in enumerate(source["model"]["merges"]):
        ranks.setdefault("".join(merge.split(" ") if isinstance(merge, str) else merge), -float(rank + 1))
    scores = [ranks.get(token, -1e6) for token in tokens]
    template = json.loads((TOKENIZERS / "prepend/tokenizer_config.json").read_text())["chat_template"]
    types[tokens.index("<unk>")] = gguf.TokenType.UNKNOWN
    write_tokenizer(folder / "prepend.gguf", "llama", None, tokens, types, scores=scores, bos=tokens.index("<s>"), eos=tokens.index("</s>"), unknown=tokens.index("<unk>"), template=template)
    expected["prepend"] = [Tokenizer.from_file(str(source_path)).encode(text, add_special_tokens=False).ids for text in TEXTS]
    # Gemma 4's: the same entries, with merges, and no prefix.
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in source["model"]["merges"]]
    write_tokenizer(folder / "gemma4.gguf", "gemma4", None, tokens, types, merges=merges, scores=scores, bos=tokens.index("<s>"), eos=tokens.index("</s>"), unknown=tokens.index("<unk>"))
    found = dict(tokenizer_type="gemma4", tokens=tokens, token_type=[int(kind) for kind in types], merges=merges, scores=scores)
    other, _ = convert_gguf_tokenizer("gemma4", found)
    expected["gemma4"] = [other.encode(text, add_special_tokens=False).ids for text in TEXTS]
    (folder / "expected.json").write_text(json.dumps(dict(texts=TEXTS, ids=expected), ensure_ascii=False) + "\n")


def main():
    for package, pinned in [("transformers", "5.24.0"), ("tokenizers", "0.23.3"), ("numpy", "2.4.6"), ("gguf", "0.19.0")]:
        assert version(package) == pinned, f"{package} is {version(package)}, expected {pinned}"
    for name in ("gguf_families", "gguf_tokenizers", "gguf_split"):
        shutil.rmtree(FIXTURES / name, ignore_errors=True)
    for name, (architecture, edits) in EDITS.items():
        make_family(name, architecture, edits)
    split("qwen3-off")
    make_tokenizers()
    print(sum(file.stat().st_size for name in ("gguf_families", "gguf_tokenizers") for file in (FIXTURES / name).rglob("*.*")))


if __name__ == "__main__":
    main()
