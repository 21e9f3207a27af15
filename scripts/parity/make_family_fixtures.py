# torch==2.15.0 transformers==5.24.0 safetensors==0.8.0 tokenizers==0.23.3
"""Makes crates/judge-models/tests/fixtures/families: small random-weight models and what transformers says of them.

    python scripts/parity/make_family_fixtures.py [NAME ...]

Names of folders make these alone and leave the others as they are: the last bits of what torch computes depend on the processor.

For each family one model with every switch of that family on and one with them off, as Hugging Face folders
(NAME/), and one model under each kind of rope (rope/, config.KIND.json each, config.json for the default). Weights are scaled so that
activations are of order 1 and that soft-caps, windows and long prompts change the result.

expected.safetensors of a folder holds, for prompt i:
    i.ids      token ids [seq]
    i.hidden   hidden_states [n_layers + 1, seq, d_model] as transformers returns them: the last one is normed
    i.logits   logits without the final soft-cap [seq, d_vocab]
    i.raw      each layer's state of the last position times the head's rows [n_layers + 1, d_vocab]
    i.normed   the same with the final norm applied to inner states first
    i.greedy   greedy continuation [n_new], end tokens not heeded
    i.bf16     hidden_states [n_layers + 1, d_model] of the last position, f32 arithmetic on bf16-rounded weights (and factors that go with them)
and its metadata, as text, the error of transformers' own bf16 arithmetic against i.bf16: per layer the largest
difference over the largest value, and of these the largest.

Folders were made with transformers 5.23.0, those with Mamba and all that are listed after them with 5.24.0.

Models with experts get the first of some seeds with which arithmetic in bf16 routes every row as exact arithmetic does, here and in
attention_entropy_fixtures.py: a bf16 router meets other experts where two logits are nearly equal.

internlm3 has no modelling code of its own in transformers 5: its configuration selects Llama's. minicpm is not in transformers: Granite's code, with the
factors that it has, stands for it here, and make_layer_wise_fixtures.py compares it with code of its own.

Vision-language models are run on text alone, as their whole class runs it, positions over time, height and width included. Their folders have
the text model's tensors and the smallest ones of the other parts, which are not read.
"""

import json
import math
import shutil
import sys
import tempfile
import zlib
from pathlib import Path

import safetensors
import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

EXPECTED_VERSIONS = {"torch": "2.15.0", "transformers": "5.24.0", "safetensors": "0.8.0", "tokenizers": "0.23.3"}
ROOT = Path(__file__).resolve().parents[2] / "crates/judge-models/tests/fixtures/families"
D_VOCAB = 96
NEW_TOKENS = 6


def reproducible():
    """Ends the program unless the versions are those of the fixtures, and has torch compute the same bits each time."""
    found = {m.__name__: m.__version__.split("+")[0] for m in (torch, transformers, safetensors, tokenizers)}
    print(found)
    if found != EXPECTED_VERSIONS:
        raise SystemExit(f"pinned to {EXPECTED_VERSIONS}")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def emptied(folder):
    """A folder with nothing in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def vocabulary():
    words = ["<unk>", "<s>", "</s>"] + [str(i) for i in range(1, 10)]
    words += [c + v for c in "bdfgklmnprstvz" for v in "aeiou"] + ["xa", "xe", "xi", "xo", "xu"]
    words += [f"y{i}" for i in range(D_VOCAB - len(words))]
    return words


def write_tokenizer(folder):
    words = vocabulary()
    special = [
        {"id": i, "content": words[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        for i in range(3)
    ]
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": {w: i for i, w in enumerate(words)}, "unk_token": "<unk>"},
    }) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}) + "\n")


BASE = dict(
    vocab_size=D_VOCAB, hidden_size=32, intermediate_size=40, num_hidden_layers=3, num_attention_heads=4,
    max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=None,
)
GQA = dict(num_key_value_heads=2)
MHA = dict(num_key_value_heads=4)
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
SHORT = [1.0, 1.5]
LONG = [1.5, 4.0]

PATTERN = ["sliding_attention", "full_attention", "sliding_attention"]

# name: (configuration, layout of config.json, stored dtype, shards)
FAMILIES = {
    "llama-on": (dict(model_type="llama", **BASE, **GQA, head_dim=16, attention_bias=True, mlp_bias=True, rope_parameters=LLAMA3), "old", torch.float16, 2),
    "llama-off": (dict(model_type="llama", **BASE, **MHA, tie_word_embeddings=True), "v5", torch.float32, 1),
    "mistral-on": (dict(model_type="mistral", **BASE, **GQA, head_dim=12, sliding_window=5), "v5", torch.bfloat16, 1),
    "mistral-off": (dict(model_type="mistral", **BASE, **GQA, sliding_window=None), "old", torch.bfloat16, 1),
    "qwen2-on": (dict(model_type="qwen2", **BASE, **GQA, tie_word_embeddings=True, use_sliding_window=True, sliding_window=5, max_window_layers=1), "old", torch.float32, 1),
    "qwen2-off": (dict(model_type="qwen2", **BASE, **GQA), "v5", torch.bfloat16, 1),
    "qwen3-on": (dict(model_type="qwen3", **BASE, **GQA, head_dim=16, attention_bias=True, use_sliding_window=True, sliding_window=5, layer_types=["sliding_attention", "full_attention", "sliding_attention"]), "v5", torch.bfloat16, 2),
    "qwen3-off": (dict(model_type="qwen3", **BASE, **GQA, head_dim=16, tie_word_embeddings=True), "old", torch.bfloat16, 1),
    "internlm3-on": (dict(model_type="internlm3", **BASE, **GQA, head_dim=16, attention_bias=True, mlp_bias=True, rope_parameters=dict(rope_type="dynamic", factor=6.0, rope_theta=1000.0)), "old", torch.bfloat16, 1),
    "internlm3-off": (dict(model_type="internlm3", **BASE, **GQA, head_dim=8), "v5", torch.bfloat16, 1),
    "gemma2-on": (dict(model_type="gemma2", **BASE, **GQA, head_dim=16, attention_bias=True, tie_word_embeddings=False, query_pre_attn_scalar=24, sliding_window=5, attn_logit_softcapping=2.0, final_logit_softcapping=8.0), "old", torch.bfloat16, 1),
    "gemma2-off": (dict(model_type="gemma2", **BASE, **GQA, head_dim=8, query_pre_attn_scalar=8, attn_logit_softcapping=None, final_logit_softcapping=None, layer_types=["full_attention"] * 3, hidden_activation="gelu"), "v5", torch.bfloat16, 1),
    "phi3-on": (dict(model_type="phi3", **BASE, **GQA, sliding_window=7, tie_word_embeddings=True, partial_rotary_factor=0.5, original_max_position_embeddings=14, rope_parameters=dict(rope_type="longrope", short_factor=SHORT, long_factor=LONG, partial_rotary_factor=0.5)), "old", torch.bfloat16, 1),
    "phi3-off": (dict(model_type="phi3", **BASE, **MHA), "v5", torch.bfloat16, 1),
    "gemma3_text-on": (dict(model_type="gemma3_text", **BASE, **GQA, head_dim=16, attention_bias=True, tie_word_embeddings=False, query_pre_attn_scalar=24, sliding_window=5, layer_types=PATTERN, rope_parameters=dict(full_attention=dict(rope_type="linear", factor=4.0, rope_theta=1000.0), sliding_attention=dict(rope_type="default", rope_theta=50.0))), "old", torch.bfloat16, 1),
    "gemma3_text-off": (dict(model_type="gemma3_text", **BASE, **GQA, head_dim=8, query_pre_attn_scalar=8, layer_types=["full_attention"] * 3), "v5", torch.bfloat16, 1),
    "olmo2-on": (dict(model_type="olmo2", **BASE, **GQA, attention_bias=True, tie_word_embeddings=True, rope_parameters=LLAMA3), "old", torch.bfloat16, 1),
    "olmo2-off": (dict(model_type="olmo2", **BASE, **MHA), "v5", torch.bfloat16, 1),
    "olmo3-on": (dict(model_type="olmo3", **BASE, **GQA, sliding_window=5, layer_types=PATTERN, rope_parameters=dict(full_attention=dict(rope_type="yarn", factor=4.0, rope_theta=1000.0, original_max_position_embeddings=16), sliding_attention=dict(rope_type="default", rope_theta=1000.0))), "v5", torch.bfloat16, 1),
    "olmo3-off": (dict(model_type="olmo3", **BASE, **MHA, sliding_window=64), "v5", torch.bfloat16, 1),
    "smollm3-on": (dict(model_type="smollm3", **BASE, **GQA, attention_bias=True, mlp_bias=True, tie_word_embeddings=False, no_rope_layers=[1, 0, 1], use_sliding_window=True, sliding_window=5, layer_types=["full_attention", "sliding_attention", "full_attention"]), "v5", torch.bfloat16, 1),
    "smollm3-off": (dict(model_type="smollm3", **BASE, **MHA), "old", torch.bfloat16, 1),
    "exaone4-on": (dict(model_type="exaone4", **BASE, **GQA, sliding_window=5, layer_types=PATTERN, tie_word_embeddings=True), "v5", torch.bfloat16, 1),
    "exaone4-off": (dict(model_type="exaone4", **BASE, **MHA, sliding_window=None, layer_types=["full_attention"] * 3), "v5", torch.bfloat16, 1),
    "granite-on": (dict(model_type="granite", **BASE, **GQA, attention_bias=True, mlp_bias=True, embedding_multiplier=3.0, attention_multiplier=0.4, residual_multiplier=0.6, logits_scaling=2.0), "v5", torch.bfloat16, 1),
    "granite-off": (dict(model_type="granite", **BASE, **MHA, attention_multiplier=0.35, tie_word_embeddings=True), "old", torch.bfloat16, 1),
    "minicpm-on": (dict(model_type="granite", **BASE, **GQA, attention_bias=True, embedding_multiplier=12.0, attention_multiplier=8**-0.5, residual_multiplier=1.4 / 3**0.5, logits_scaling=3.2), "minicpm", torch.bfloat16, 1),
    "minicpm-off": (dict(model_type="granite", **BASE, **MHA, attention_multiplier=8**-0.5, residual_multiplier=3**-0.5, logits_scaling=32.0, tie_word_embeddings=True), "minicpm", torch.bfloat16, 1),
    "glm-on": (dict(model_type="glm", **BASE, **GQA, head_dim=16, attention_bias=True, rope_parameters={**LLAMA3, "partial_rotary_factor": 0.75}), "old", torch.bfloat16, 1),
    "glm-off": (dict(model_type="glm", **BASE, **MHA, head_dim=8, attention_bias=False, tie_word_embeddings=True), "v5", torch.bfloat16, 1),
    "glm4-on": (dict(model_type="glm4", **BASE, **GQA, head_dim=12, attention_bias=True, tie_word_embeddings=True, rope_parameters=dict(rope_type="yarn", factor=4.0, rope_theta=1000.0, original_max_position_embeddings=16, partial_rotary_factor=0.5)), "v5", torch.bfloat16, 1),
    "glm4-off": (dict(model_type="glm4", **BASE, **MHA, head_dim=8, attention_bias=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=1.0)), "old", torch.bfloat16, 1),
    "ministral3-on": (dict(model_type="ministral3", **BASE, **GQA, head_dim=16, sliding_window=9, rope_parameters=dict(rope_type="yarn", factor=8.0, rope_theta=1000.0, original_max_position_embeddings=4, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.4)), "v5", torch.bfloat16, 1),
    "ministral3-off": (dict(model_type="ministral3", **BASE, **MHA, head_dim=8, tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=1000.0, original_max_position_embeddings=64, llama_4_scaling_beta=0.0)), "v5", torch.bfloat16, 1),
    "granitemoehybrid-on": (dict(model_type="granitemoehybrid", **BASE, **GQA, num_local_experts=0, shared_intermediate_size=48, layer_types=["full_attention"] * 3, position_embedding_type="rope", attention_bias=True, embedding_multiplier=3.0, attention_multiplier=0.4, residual_multiplier=0.6, logits_scaling=2.0, mamba_n_heads=4), "v5", torch.bfloat16, 1),
    "granitemoehybrid-off": (dict(model_type="granitemoehybrid", **BASE, **MHA, num_local_experts=0, shared_intermediate_size=40, layer_types=["full_attention"] * 3, position_embedding_type=None, attention_multiplier=0.35, tie_word_embeddings=True, mamba_n_heads=4), "v5", torch.bfloat16, 1),
    "cohere2-on": (dict(model_type="cohere2", **BASE, **GQA, attention_bias=True, sliding_window=5, layer_types=PATTERN, logit_scale=0.3, tie_word_embeddings=False, rope_parameters=dict(rope_type="linear", factor=4.0, rope_theta=1000.0)), "v5", torch.bfloat16, 1),
    "cohere2-off": (dict(model_type="cohere2", **BASE, **MHA, sliding_window=64, layer_types=["full_attention"] * 3, logit_scale=1.0), "old", torch.bfloat16, 1),
    "qwen3_5_text-on": (dict(model_type="qwen3_5_text", **BASE, **GQA, head_dim=16, attention_bias=True, layer_types=["linear_attention", "full_attention", "linear_attention"], linear_conv_kernel_dim=4, linear_key_head_dim=8, linear_value_head_dim=12, linear_num_key_heads=2, linear_num_value_heads=4, rope_parameters=dict(rope_type="default", rope_theta=1000.0, partial_rotary_factor=0.5)), "v5", torch.bfloat16, 1),
    "qwen3_5_text-off": (dict(model_type="qwen3_5_text", **BASE, **MHA, head_dim=8, tie_word_embeddings=True, full_attention_interval=2, linear_conv_kernel_dim=2, linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2, linear_num_value_heads=2), "old", torch.bfloat16, 1),
    "ernie4_5-on": (dict(model_type="ernie4_5", **BASE, **GQA, head_dim=12, use_bias=True, tie_word_embeddings=False, rope_parameters=LLAMA3), "old", torch.bfloat16, 1),
    "ernie4_5-off": (dict(model_type="ernie4_5", **BASE, **MHA, head_dim=8), "v5", torch.bfloat16, 1),
    "lfm2-on": (dict(model_type="lfm2", **{**BASE, "intermediate_size": 60}, **GQA, layer_types=["conv", "full_attention", "conv"], conv_L_cache=4, block_multiple_of=16, block_ffn_dim_multiplier=1.1, tie_word_embeddings=False), "v5", torch.bfloat16, 1),
    "lfm2-off": (dict(model_type="lfm2", **BASE, **MHA, full_attn_idxs=[1], block_auto_adjust_ff_dim=False), "old", torch.bfloat16, 1),
}
# The parts of Gemma 4 that models have in different combinations: heads by kind of block and values that are keys; keys of other blocks and inputs by token; experts.
GEMMA4 = dict(model_type="gemma4_text", **{**BASE, "num_hidden_layers": 4, "pad_token_id": 0}, **GQA, head_dim=8, global_head_dim=16, sliding_window=5)
GEMMA4_ROPE = dict(full_attention=dict(rope_type="proportional", partial_rotary_factor=0.5, rope_theta=1000.0), sliding_attention=dict(rope_type="default", rope_theta=50.0))
SHARING = ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "full_attention"]
FAMILIES |= {
    "gemma4_text-off": (dict(**GEMMA4, hidden_size_per_layer_input=0), "v5", torch.bfloat16, 1),
    "gemma4_text-on": (dict(**{**GEMMA4, "num_hidden_layers": 5}, layer_types=SHARING, attention_k_eq_v=True, num_global_key_value_heads=1, attention_bias=True, final_logit_softcapping=8.0, num_kv_shared_layers=2, use_double_wide_mlp=True, hidden_size_per_layer_input=6, vocab_size_per_layer_input=D_VOCAB + 3, tie_word_embeddings=False, rope_parameters=GEMMA4_ROPE), "published", torch.bfloat16, 1),
}

# The models that had their weights from their place in the list; those added since have them from their name, wherever it stands.
SEEDED_BY_PLACE = list(FAMILIES)[:26]

# Families with experts. Their tensors are written as save_pretrained writes them, experts one by one where it does so, or, with the layout "stacked", as
# transformers' own modules have them.
EXPERTS = {
    "mixtral-on": (dict(model_type="mixtral", **{**BASE, "intermediate_size": 16}, **GQA, head_dim=16, sliding_window=5, num_local_experts=5, num_experts_per_tok=3), "old", torch.bfloat16, 2),
    "mixtral-off": (dict(model_type="mixtral", **{**BASE, "intermediate_size": 24}, **MHA, num_local_experts=4, num_experts_per_tok=2, tie_word_embeddings=True), "stacked", torch.bfloat16, 1),
    "qwen3_moe-on": (dict(model_type="qwen3_moe", **{**BASE, "num_hidden_layers": 4}, **GQA, head_dim=16, attention_bias=True, use_sliding_window=True, sliding_window=5, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=16, norm_topk_prob=True, decoder_sparse_step=2, mlp_only_layers=[1]), "v5", torch.bfloat16, 1),
    "qwen3_moe-off": (dict(model_type="qwen3_moe", **BASE, **GQA, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, norm_topk_prob=False, tie_word_embeddings=True), "stacked", torch.float32, 1),
    "qwen2_moe-on": (dict(model_type="qwen2_moe", **BASE, **GQA, use_sliding_window=True, sliding_window=5, max_window_layers=2, num_experts=5, num_experts_per_tok=3, moe_intermediate_size=16, shared_expert_intermediate_size=24, norm_topk_prob=True, mlp_only_layers=[1]), "old", torch.bfloat16, 1),
    "qwen2_moe-off": (dict(model_type="qwen2_moe", **BASE, **MHA, qkv_bias=False, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, shared_expert_intermediate_size=16, norm_topk_prob=False), "stacked", torch.bfloat16, 1),
    "qwen3_5_moe_text-on": (dict(model_type="qwen3_5_moe_text", **{k: v for k, v in BASE.items() if k != "intermediate_size"}, **GQA, head_dim=16, attention_bias=True, layer_types=["linear_attention", "full_attention", "linear_attention"], linear_conv_kernel_dim=4, linear_key_head_dim=8, linear_value_head_dim=12, linear_num_key_heads=2, linear_num_value_heads=4, num_experts=5, num_experts_per_tok=3, moe_intermediate_size=16, shared_expert_intermediate_size=24, rope_parameters=dict(rope_type="default", rope_theta=1000.0, partial_rotary_factor=0.5)), "stacked", torch.bfloat16, 1),
    "qwen3_5_moe_text-off": (dict(model_type="qwen3_5_moe_text", **{k: v for k, v in BASE.items() if k != "intermediate_size"}, **MHA, head_dim=8, tie_word_embeddings=True, full_attention_interval=2, linear_conv_kernel_dim=2, linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2, linear_num_value_heads=2, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, shared_expert_intermediate_size=16), "old", torch.bfloat16, 1),
    "olmoe-on": (dict(model_type="olmoe", **{**BASE, "intermediate_size": 16}, **GQA, attention_bias=True, clip_qkv=0.9, num_experts=5, num_experts_per_tok=3, norm_topk_prob=True, tie_word_embeddings=True), "old", torch.bfloat16, 1),
    "olmoe-off": (dict(model_type="olmoe", **{**BASE, "intermediate_size": 24}, **MHA, num_experts=4, num_experts_per_tok=2, norm_topk_prob=False), "v5", torch.bfloat16, 1),
    "gpt_oss-on": (dict(model_type="gpt_oss", **{**BASE, "intermediate_size": 16}, **GQA, head_dim=16, sliding_window=5, num_local_experts=5, num_experts_per_tok=3, swiglu_alpha=1.5, swiglu_limit=1.25, rope_parameters=dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, beta_fast=32.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=16)), "old", torch.bfloat16, 2),
    "gpt_oss-off": (dict(model_type="gpt_oss", **{**BASE, "intermediate_size": 16}, **MHA, head_dim=8, attention_bias=False, layer_types=["full_attention"] * 3, num_local_experts=4, num_experts_per_tok=2, rope_parameters=dict(rope_type="default", rope_theta=10000.0), tie_word_embeddings=True), "v5", torch.float32, 1),
    "gemma4_text-experts": (dict(**{**GEMMA4, "num_hidden_layers": 3}, layer_types=PATTERN, hidden_size_per_layer_input=0, enable_moe_block=True, num_experts=4, top_k_experts=2, moe_intermediate_size=16, rope_parameters=GEMMA4_ROPE), "published", torch.bfloat16, 1),
}
# Vision-language models: the text model's configuration, the outer one, and what keeps the other parts small.
TEXT = {k: v for k, v in BASE.items() if k not in ("bos_token_id", "eos_token_id", "pad_token_id")}
EYES = dict(depth=1, num_heads=2, patch_size=2, spatial_merge_size=2, temporal_patch_size=2)
SMALL_EYES = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=2)
MROPE = dict(rope_theta=1000.0, mrope_section=[2, 1, 1])
IDS = dict(image_token_id=90, video_token_id=91, vision_start_token_id=92, vision_end_token_id=93)
TOWERS = {
    # As published: the text model's fields beside the others.
    "qwen2_vl": (dict(model_type="qwen2_vl", **IDS, text_config=dict(**TEXT, **GQA, rope_parameters=dict(rope_type="default", **MROPE)), vision_config=dict(**EYES, embed_dim=8, hidden_size=32)), "flat", torch.bfloat16, 1),
    "qwen2_5_vl": (dict(model_type="qwen2_5_vl", **IDS, tie_word_embeddings=True, text_config=dict(**TEXT, **GQA, use_sliding_window=True, sliding_window=5, max_window_layers=1, rope_parameters=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16, **MROPE)), vision_config=dict(**EYES, hidden_size=8, intermediate_size=8, out_hidden_size=32, window_size=8, fullatt_block_indexes=[0])), "v5", torch.bfloat16, 1),
    "glm4v": (dict(model_type="glm4v", image_token_id=90, video_token_id=91, image_start_token_id=92, image_end_token_id=93, video_start_token_id=94, video_end_token_id=95, text_config=dict(**TEXT, **GQA, rope_parameters=dict(rope_type="default", rope_theta=1000.0, partial_rotary_factor=0.5, mrope_section=[1, 1, 0])), vision_config=dict(**EYES, hidden_size=8, intermediate_size=8, out_hidden_size=32, image_size=8)), "v5", torch.bfloat16, 1),
    "internvl": (dict(model_type="internvl", image_token_id=90, tie_word_embeddings=False, text_config=dict(model_type="qwen3", **TEXT, **GQA, head_dim=16), vision_config=dict(**SMALL_EYES)), "v5", torch.bfloat16, 1),
    "smolvlm": (dict(model_type="smolvlm", image_token_id=90, text_config=dict(model_type="llama", **BASE, **GQA), vision_config=dict(**SMALL_EYES)), "v5", torch.bfloat16, 1),
    "idefics3": (dict(model_type="idefics3", image_token_id=90, tie_word_embeddings=True, text_config=dict(model_type="llama", **BASE, **GQA), vision_config=dict(**SMALL_EYES)), "v5", torch.bfloat16, 1),
    "gemma4_unified": (dict(model_type="gemma4_unified", image_token_id=90, video_token_id=91, audio_token_id=92, text_config=dict(**{**TEXT, "num_hidden_layers": 4}, pad_token_id=0, bos_token_id=1, eos_token_id=2, **GQA, head_dim=8, global_head_dim=16, sliding_window=5, layer_types=["sliding_attention", "full_attention"] * 2, attention_k_eq_v=True, num_global_key_value_heads=1, final_logit_softcapping=8.0, rope_parameters=dict(full_attention=dict(rope_type="proportional", partial_rotary_factor=0.5, rope_theta=1000.0), sliding_attention=dict(rope_type="default", rope_theta=50.0))), vision_config=dict(patch_size=2, pooling_kernel_size=1, mm_embed_dim=8, mm_posemb_size=4, output_proj_dims=32), audio_config=dict(audio_embed_dim=8)), "v5", torch.bfloat16, 1),
}
EXPERTS |= {
    "lfm2_moe-on": (dict(model_type="lfm2_moe", **BASE, **GQA, layer_types=["conv", "full_attention", "conv"], conv_L_cache=4, num_dense_layers=1, moe_intermediate_size=16, num_experts=5, num_experts_per_tok=3, routed_scaling_factor=1.5, tie_word_embeddings=False), "v5", torch.bfloat16, 1),
    "lfm2_moe-off": (dict(model_type="lfm2_moe", **BASE, **MHA, layer_types=["full_attention", "conv", "full_attention"], num_dense_layers=1, moe_intermediate_size=24, num_experts=4, num_experts_per_tok=2, use_expert_bias=False, norm_topk_prob=False), "stacked", torch.bfloat16, 1),
    "granitemoehybrid-experts": (dict(model_type="granitemoehybrid", **{**BASE, "intermediate_size": 16}, **GQA, num_local_experts=5, num_experts_per_tok=3, shared_intermediate_size=24, layer_types=["full_attention"] * 3, position_embedding_type="rope", embedding_multiplier=3.0, attention_multiplier=0.4, residual_multiplier=0.6, logits_scaling=2.0, mamba_n_heads=4), "v5", torch.bfloat16, 1),
}
# Experts are published as transposed matrices.
EXPERTS["qwen3_vl_moe"] = (dict(model_type="qwen3_vl_moe", **IDS, tie_word_embeddings=True, text_config=dict(**TEXT, **GQA, head_dim=16, num_experts=5, num_experts_per_tok=3, moe_intermediate_size=24, mlp_only_layers=[1], rope_parameters=dict(rope_type="default", rope_theta=1000.0, mrope_section=[4, 2, 2], mrope_interleaved=True)), vision_config=dict(**EYES, hidden_size=8, intermediate_size=8, out_hidden_size=32, num_position_embeddings=4, deepstack_visual_indexes=[0])), "transposed", torch.bfloat16, 1)
TOWERS["qwen3_vl_moe"] = EXPERTS["qwen3_vl_moe"]
MAMBA = dict(mamba_n_heads=4, mamba_d_state=8, mamba_chunk_size=4)
EXPERTS["granitemoehybrid-mamba-experts"] = (dict(model_type="granitemoehybrid", **{**BASE, "intermediate_size": 16}, **MHA, **MAMBA, num_local_experts=5, num_experts_per_tok=3, shared_intermediate_size=24, layer_types=["linear_attention", "linear_attention", "full_attention"], position_embedding_type="rope", mamba_d_conv=2, mamba_expand=1, mamba_d_head=8, mamba_conv_bias=False, mamba_proj_bias=True, attention_multiplier=0.35, tie_word_embeddings=True), "v5", torch.bfloat16, 1)
NEMOTRON = dict(**{k: v for k, v in BASE.items() if k != "num_hidden_layers"}, mamba_num_heads=4, mamba_head_dim=12, ssm_state_size=8, chunk_size=4)
EXPERTS["nemotron_h-experts"] = (dict(model_type="nemotron_h", **NEMOTRON, **GQA, head_dim=8, layers_block_type=["linear_attention", "moe", "full_attention", "mlp"], n_groups=2, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, moe_shared_expert_intermediate_size=24, routed_scaling_factor=1.5), "v5", torch.bfloat16, 1)
EXPERTS["nemotron_h-shares"] = (dict(model_type="nemotron_h", **NEMOTRON, **GQA, head_dim=8, layers_block_type=["moe", "full_attention", "linear_attention"], n_groups=1, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, moe_shared_expert_intermediate_size=16, norm_topk_prob=False), "stacked", torch.bfloat16, 1)
GPT2 = dict(vocab_size=D_VOCAB, n_embd=32, n_layer=3, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2, pad_token_id=None)
FAMILIES |= {
    # Layers of Mamba-2; prompts take several chunks of its scan.
    "granitemoehybrid-mamba": (dict(model_type="granitemoehybrid", **BASE, **GQA, **MAMBA, num_local_experts=0, shared_intermediate_size=48, layer_types=["linear_attention", "full_attention", "linear_attention"], mamba_n_groups=2, mamba_d_conv=4, embedding_multiplier=3.0, attention_multiplier=0.4, residual_multiplier=0.6, logits_scaling=2.0), "v5", torch.bfloat16, 1),
    "falcon_h1-on": (dict(model_type="falcon_h1", **BASE, **GQA, **MAMBA, mamba_n_groups=2, mamba_d_ssm=48, mamba_rms_norm=True, mamba_norm_before_gate=False, embedding_multiplier=1.3, lm_head_multiplier=0.4, attention_in_multiplier=1.2, attention_out_multiplier=0.8, key_multiplier=0.7, ssm_in_multiplier=0.9, ssm_out_multiplier=0.6, ssm_multipliers=[0.8, 1.1, 0.9, 1.2, 0.7], mlp_multipliers=[1.4, 0.5], rope_parameters=dict(rope_type="default", rope_theta=1000.0)), "v5", torch.bfloat16, 1),
    "falcon_h1-off": (dict(model_type="falcon_h1", **BASE, **MHA, **MAMBA, mamba_d_ssm=None, mamba_d_conv=2, mamba_conv_bias=False, tie_word_embeddings=True), "old", torch.bfloat16, 1),
    "falcon_h1-biases": (dict(model_type="falcon_h1", **{**BASE, "num_hidden_layers": 2}, **GQA, **MAMBA, mamba_d_ssm=32, mamba_rms_norm=True, attention_bias=True, mlp_bias=True, projectors_bias=True, mamba_proj_bias=True, attention_in_multiplier=1.2, ssm_in_multiplier=1.2, ssm_multipliers=[0.8, 1.1, 0.9, 1.2, 0.7], attention_out_multiplier=0.8, mlp_multipliers=[1.4, 0.5], ssm_out_multiplier=0.6), "v5", torch.bfloat16, 1),
    "nemotron_h-on": (dict(model_type="nemotron_h", **NEMOTRON, **GQA, head_dim=12, layers_block_type=["linear_attention", "mlp", "full_attention", "linear_attention", "mlp"], n_groups=2, mlp_bias=True, use_bias=True, time_step_min=0.15), "v5", torch.bfloat16, 1),
    "nemotron_h-off": (dict(model_type="nemotron_h", **NEMOTRON, **MHA, head_dim=8, layers_block_type=["full_attention", "linear_attention", "mlp"], n_groups=1, use_conv_bias=False, conv_kernel=2, mlp_hidden_act="silu"), "pattern", torch.bfloat16, 1),
    "phi-on": (dict(model_type="phi", **BASE, **GQA, rope_parameters=dict(rope_type="default", rope_theta=1000.0, partial_rotary_factor=0.75)), "v5", torch.bfloat16, 2),
    "phi-off": (dict(model_type="phi", **BASE, **MHA, hidden_act="relu", tie_word_embeddings=True), "old", torch.bfloat16, 1),
    "gemma-on": (dict(model_type="gemma", **BASE, **GQA, head_dim=16, attention_bias=True, hidden_act="gelu", tie_word_embeddings=False, rope_parameters=LLAMA3), "old", torch.bfloat16, 1),
    "gemma-off": (dict(model_type="gemma", **BASE, **MHA, head_dim=8), "v5", torch.bfloat16, 1),
    "gpt_neox-on": (dict(model_type="gpt_neox", **BASE, use_parallel_residual=True, attention_bias=True, rope_parameters=dict(rope_type="default", rope_theta=1000.0, partial_rotary_factor=0.5)), "old", torch.float16, 2),
    "gpt_neox-off": (dict(model_type="gpt_neox", **BASE, use_parallel_residual=False, attention_bias=False, hidden_act="gelu_new", tie_word_embeddings=True, rope_parameters=dict(rope_type="linear", factor=4.0, rope_theta=1000.0, partial_rotary_factor=1.0)), "v5", torch.bfloat16, 1),
    "gpt2-on": (dict(model_type="gpt2", **GPT2, n_inner=40, scale_attn_weights=False, tie_word_embeddings=False), "base", torch.bfloat16, 1),
    "gpt2-off": (dict(model_type="gpt2", **GPT2, activation_function="gelu"), "v5", torch.bfloat16, 2),
}
FAMILIES |= EXPERTS | TOWERS

PROMPTS = [
    "ba de fi go ku la me ni po ru sa te vi zo",
    "3 xa y0 ba ba 4",
]

# Longer than a window, an original context and a tile of keys.
WORDS = ["ba", "de", "fi", "go", "3", "ku", "xa", "me"]
LONGER = [" ".join(WORDS[(i * i + i // 7) % len(WORDS)] for i in range(n)) for n in (33, 64)]

# One model, every kind of rope; contexts are short, so that most prompts lie beyond the original one.
ROPE = dict(model_type="qwen2", **{**BASE, "max_position_embeddings": 16, "num_hidden_layers": 2}, **GQA, tie_word_embeddings=True)
FOUR = dict(short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.0, 2.0, 3.0, 5.0])
ROPES = {
    "default": (dict(max_position_embeddings=64), dict(rope_type="default", rope_theta=100.0)),
    "linear": ({}, dict(rope_type="linear", factor=4.0, rope_theta=100.0)),
    "dynamic": ({}, dict(rope_type="dynamic", factor=4.0, rope_theta=100.0)),
    "llama3": (dict(max_position_embeddings=64), {**LLAMA3, "rope_theta": 100.0}),
    "yarn": ({}, dict(rope_type="yarn", factor=4.0, rope_theta=100.0, original_max_position_embeddings=16)),
    "yarn-full": (dict(max_position_embeddings=64), dict(rope_type="yarn", factor=4.0, rope_theta=100.0, original_max_position_embeddings=16, beta_fast=4.0, beta_slow=0.5, mscale=0.7, mscale_all_dim=1.3, truncate=False)),
    "longrope": (dict(max_position_embeddings=64), dict(rope_type="longrope", rope_theta=100.0, original_max_position_embeddings=16, **FOUR)),
    "longrope-factor": ({}, dict(rope_type="longrope", rope_theta=100.0, original_max_position_embeddings=16, factor=4.0, attention_factor=1.2, **FOUR)),
}
ROPE_PROMPTS = [
    "ba de fi go ku",
    "ba de fi go ku la me ni po ru sa te",
    " ".join((["ba", "de", "fi", "go", "ku", "la", "me"] * 5)[:33]),
]


def seed_of(name):
    return SEEDED_BY_PLACE.index(name) if name in SEEDED_BY_PLACE else zlib.crc32(name.encode())


def empty(config, dtype):
    """A model of this configuration, whatever its weights are."""
    auto = AutoModelForCausalLM if config.get_text_config() is config else AutoModelForImageTextToText
    return auto.from_config(config, attn_implementation="eager", dtype=dtype).eval()


def text_model(model):
    """The blocks, without a head: those of the text model inside a vision-language model."""
    inner = model.base_model
    return getattr(inner, "language_model", None) or getattr(inner, "text_model", None) or inner


def build(whole, seed):
    model = empty(whole, torch.float32)
    config = whole.get_text_config()
    rng = torch.Generator().manual_seed(seed)
    gemma4 = config.model_type in ("gemma4_text", "gemma4_unified_text")
    gemma = gemma4 or config.model_type in ("gemma", "gemma2", "gemma3_text")
    offset = config.model_type in ("gemma", "gemma2", "gemma3_text", "qwen3_5_text", "qwen3_5_moe_text")
    with torch.no_grad():
        for name, b in sorted(model.named_buffers()):
            if name.endswith("layer_scalar"):
                b.copy_(1 + 0.3 * torch.randn(b.shape, generator=rng))
            elif name.endswith(("expert_bias", "e_score_correction_bias")):
                b.copy_(0.3 * torch.randn(b.shape, generator=rng))
        for name, p in sorted(model.named_parameters()):
            noise = torch.randn(p.shape, generator=rng)
            if name.endswith(("norm.bias", "ln_1.bias", "ln_2.bias", "ln_f.bias")):
                p.copy_(0.3 * noise)
            elif "norm" in name or ".ln_" in name:
                p.copy_(0.3 * noise + (0.0 if offset and "linear_attn" not in name else 1.0))
                if gemma4 and "q_norm" in name:
                    # Scores are not divided by the root of a head's width: the norm is there for that.
                    p.mul_(0.4)
            elif "A_log" in name:
                p.copy_(0.5 * noise)
            elif name.endswith("bias"):
                p.copy_(0.5 * noise)
            elif name.endswith(("router.scale", "per_expert_scale")):
                p.copy_(1 + 0.3 * noise)
            elif "embed_tokens_per_layer" in name:
                # Gemma multiplies by the square root of a block's share.
                p.copy_(noise / math.sqrt(config.hidden_size_per_layer_input))
            elif ".wte." in name or ".wpe." in name or "embed_in" in name or ".embeddings." in name:
                p.copy_(noise)
            elif name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
                # Stored as [d_in, d_out].
                p.copy_((0.6 if "c_attn" in name and not config.scale_attn_weights else 1.0) * noise / math.sqrt(p.shape[0]))
            elif "embed_tokens" in name:
                # Gemma multiplies by sqrt(d_model).
                p.copy_(noise / (math.sqrt(p.shape[1]) if gemma else 1.0))
            elif "q_proj" in name or "k_proj" in name or "qkv_proj" in name:
                p.copy_(1.5 * noise / math.sqrt(p.shape[1]))
            elif name.endswith(("mlp.gate.weight", "mlp.router.weight", "feed_forward.gate.weight", "mixer.gate.weight", "block_sparse_moe.router.weight")):
                p.copy_(3.0 * noise / math.sqrt(p.shape[1]))
            elif name.endswith("router.proj.weight"):
                # What it reads is divided by the root of its length.
                p.copy_(3.0 * noise)
            elif name.endswith("sinks"):
                p.copy_(noise)
            elif config.model_type == "gpt_oss" and "experts" in name:
                # Stored as [d_in, d_out].
                p.copy_(noise / math.sqrt(p.shape[1]))
            elif "lm_head" in name:
                p.copy_(3.0 * noise / math.sqrt(p.shape[1]))
            else:
                p.copy_(noise / math.sqrt(p.shape[-1]))
    return model


@torch.no_grad()
def routes(model, ids):
    """The experts that each row goes to, [blocks with experts, seq, top_k], ascending, and the smallest distance between the logits of the last that is
    chosen and of the first that is not."""
    found, distances = [], []

    def look(module, inputs, outputs):
        logits, _, chosen = outputs
        if type(module).__name__ == "NemotronHTopkRouter":
            logits = logits.float().sigmoid() + module.e_score_correction_bias
        if type(module).__name__ == "Lfm2MoeTopKRouter" and inputs[1] is not None:
            logits = logits.float().sigmoid() + inputs[1].float()
        # Gemma 4's router gives shares.
        logits = logits.float().log() if type(module).__name__ == "Gemma4TextRouter" else logits
        top = logits.float().topk(chosen.shape[-1] + 1).values
        distances.append((top[:, -2] - top[:, -1]).min().item())
        found.append(chosen.sort().values)

    hooks = [m.register_forward_hook(look) for m in model.modules() if type(m).__name__.endswith(("TopKRouter", "TopkRouter", "TextRouter"))]
    fresh_rope(model)
    model(torch.tensor([ids]), use_cache=False)
    for hook in hooks:
        hook.remove()
    return torch.stack(found), min(distances)


def is_clear(model, prompts):
    """Whether arithmetic in bf16 routes every row of the prompts as exact arithmetic does: a row that meets another expert is far off, and says nothing of
    how exact the arithmetic is."""
    words = vocabulary()
    half, rounded = in_bf16(model)
    for prompt in prompts:
        ids = [words.index(word) for word in prompt.split()]
        (exact, distance), (found, _) = routes(rounded, ids), routes(half, ids)
        if distance < 0.01 or not torch.equal(exact, found):
            return False
    return True


def meets_all_experts(model, prompts):
    """Whether each expert of each block has a row of the prompts, so that gradients reach it."""
    words = vocabulary()
    found = torch.cat([routes(model, [words.index(word) for word in prompt.split()])[0].flatten(1) for prompt in prompts], 1)
    config = model.config.get_text_config()
    names = ("num_local_experts", "num_experts", "n_routed_experts")
    count = next(getattr(config, name) for name in names if getattr(config, name, None) is not None)
    return all(len(row.unique()) == count for row in found)


def in_bf16(model):
    """The model with weights and arithmetic in bf16, and with f32 arithmetic on the same rounded weights."""
    half = empty(model.config, torch.bfloat16)
    half.load_state_dict(model.state_dict())
    rounded = empty(model.config, torch.float32)
    rounded.load_state_dict(half.state_dict())
    # Gemma rounds the factor on its embeddings to the dtype of the weights: a buffer, and so not in the state.
    for name in ("embed_tokens", "embed_tokens_per_layer"):
        scale = getattr(getattr(text_model(rounded), name, None), "embed_scale", None)
        if scale is not None:
            scale.copy_(scale.to(torch.bfloat16))
    return half, rounded


def fresh_rope(model):
    """transformers' dynamic rope remembers earlier calls."""
    text = text_model(model)
    if getattr(text, "rotary_emb", None) is not None:
        text.rotary_emb = type(text.rotary_emb)(config=model.config.get_text_config())


def final_norm(model):
    text = text_model(model)
    return next(norm for norm in (getattr(text, name, None) for name in ("norm", "embedding_norm", "final_layer_norm", "final_layernorm", "norm_f", "ln_f")) if norm is not None)


def head(model, states):
    """The logits of states, with a linear factor of the head but without a soft-cap."""
    config = model.config.get_text_config()
    factor = getattr(config, "logit_scale", 1.0) * getattr(config, "lm_head_multiplier", 1.0)
    return model.lm_head(states) * factor / getattr(config, "logits_scaling", 1.0)


@torch.no_grad()
def states(model, ids):
    fresh_rope(model)
    out = model(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
    hidden = torch.cat(out.hidden_states).float()
    logits = head(model, out.hidden_states[-1])[0].float()
    cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
    torch.testing.assert_close(cap * torch.tanh(logits / cap) if cap else logits, out.logits[0].float(), rtol=2e-2, atol=2e-2)
    return hidden, logits


@torch.no_grad()
def greedy(model, ids):
    """Greedy continuation with the rope of the final length from the first step on: later positions are filled with
    padding, which no earlier one sees."""
    final = len(ids) + NEW_TOKENS
    tokens = list(ids)
    while len(tokens) < final:
        fresh_rope(model)
        out = model(torch.tensor([tokens + [0] * (final - len(tokens))]), use_cache=False)
        best = out.logits[0, len(tokens) - 1].topk(2)
        assert best.values[0] - best.values[1] > 1e-3, "too close to call"
        tokens.append(int(best.indices[0]))
    return tokens[len(ids):]


def generated(model, ids):
    fresh_rope(model)
    model.generation_config.eos_token_id = None
    out = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0)
    return out[0, len(ids):].tolist()


def expected(model, prompts, moving_rope):
    words = vocabulary()
    tensors, own_error = {}, 0.0
    for i, prompt in enumerate(prompts):
        ids = [words.index(w) for w in prompt.split()]
        hidden, logits = states(model, ids)
        assert 0.1 < hidden.abs().mean() < 20, hidden.abs().mean()
        new = greedy(model, ids)
        if not moving_rope:
            assert new == generated(model, ids), (new, generated(model, ids))
        tensors[f"{i}.ids"] = torch.tensor(ids, dtype=torch.int32)
        tensors[f"{i}.hidden"] = hidden
        tensors[f"{i}.logits"] = logits
        with torch.no_grad():
            last = hidden[:, -1]
            tensors[f"{i}.raw"] = head(model, last)
            tensors[f"{i}.normed"] = head(model, torch.cat([final_norm(model)(last[:-1]), last[-1:]]))
        tensors[f"{i}.greedy"] = torch.tensor(new, dtype=torch.int32)

        half, rounded = in_bf16(model)
        reference = states(rounded, ids)[0][:, -1]
        own = states(half, ids)[0][:, -1]
        tensors[f"{i}.bf16"] = reference.contiguous()
        errors = (own - reference).abs().amax(dim=1) / reference.abs().amax(dim=1)
        own_error = max(own_error, errors.max().item())
    return tensors, {"bf16_error_of_transformers": f"{own_error:.6e}"}


def outer_config_json(config, layout, dtype):
    """As config_json, for a vision-language model."""
    config.dtype = str(dtype).removeprefix("torch.")
    saved = config._encode_special_floats(config.to_dict())
    text = config_json(config.get_text_config(), "v5", dtype)
    if layout == "flat":
        rope = text.pop("rope_parameters")
        rope_scaling = {"type": "mrope", "mrope_section": rope["mrope_section"]}
        text |= {"model_type": config.model_type, "rope_theta": rope["rope_theta"], "rope_scaling": rope_scaling}
        for key in ("layer_types", "max_window_layers", "sliding_window"):
            text.pop(key)
    else:
        text = {"text_config": text, "model_type": config.model_type}
    ids = {k: v for k, v in saved.items() if k.endswith("token_id")}
    parts = {part: {"model_type": saved[part]["model_type"]} for part in ("vision_config", "audio_config") if saved.get(part)}
    return {"architectures": config.architectures, "tie_word_embeddings": config.tie_word_embeddings, **ids, **text, **parts}


def config_json(config, layout, dtype):
    if config.get_text_config() is not config:
        return outer_config_json(config, layout, dtype)
    config.dtype = str(dtype).removeprefix("torch.")
    # As it is saved: JSON has no infinity.
    fields = {k: v for k, v in config._encode_special_floats(config.to_dict()).items() if v is not None or k in ("sliding_window", "attn_logit_softcapping", "final_logit_softcapping", "mamba_d_ssm")}
    for key in ("transformers_version", "_name_or_path", "output_hidden_states", "return_dict", "id2label", "label2id", "problem_type", "is_encoder_decoder", "chunk_size_feed_forward", "output_attentions", "use_cache", "initializer_range", "attention_dropout", "pretraining_tp", "resid_pdrop", "embd_pdrop"):
        fields.pop(key, None)
    if layout == "published":
        # As Gemma 4's folders have it; transformers writes what it makes of it.
        full = fields.pop("per_layer_config")[str(config.layer_types.index("full_attention"))]
        fields |= {"head_dim": GEMMA4["head_dim"], "num_key_value_heads": GEMMA4["num_key_value_heads"], "global_head_dim": full["head_dim"]}
        if config.attention_k_eq_v:
            fields["num_global_key_value_heads"] = full["num_key_value_heads"]
        return fields
    if layout == "pattern":
        # As Nemotron-H was published.
        letters = {"linear_attention": "M", "moe": "E", "full_attention": "*", "mlp": "-"}
        kinds = fields.pop("layers_block_type", None) or fields.pop("layer_types")
        fields |= {"hybrid_override_pattern": "".join(letters[kind] for kind in kinds), "num_hidden_layers": len(kinds)}
    if layout == "minicpm":
        embedding, residual, logits = (fields.pop(name) for name in ("embedding_multiplier", "residual_multiplier", "logits_scaling"))
        for name in ("attention_multiplier", "mlp_bias"):
            fields.pop(name)
        own = {"scale_emb": embedding, "scale_depth": round(residual * config.num_hidden_layers**0.5, 12), "dim_model_base": round(config.hidden_size / logits, 12)}
        # What it takes where a file is silent.
        fields |= {"model_type": "minicpm"} | {name: value for name, value in own.items() if value != 1.0}
    if layout in ("v5", "stacked", "transposed", "base", "pattern"):
        return fields
    fields["torch_dtype"] = fields.pop("dtype")
    rope = fields.pop("rope_parameters")
    if config.model_type == "gemma3_text":
        # Layer i is full where i + 1 is a multiple of the pattern; scaling is that of full layers alone.
        fields.pop("layer_types")
        fields["sliding_window_pattern"] = 2
        fields["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = dict(rope["full_attention"])
    fields["rope_theta"] = rope.pop("rope_theta")
    partial = rope.pop("partial_rotary_factor", None)
    if config.model_type == "gpt_neox":
        fields["rotary_emb_base"], fields["rotary_pct"] = fields.pop("rope_theta"), partial
    elif partial is not None:
        fields["partial_rotary_factor"] = partial
    if rope["rope_type"] != "default":
        if config.model_type == "phi3":
            rope.pop("original_max_position_embeddings", None)
            rope["type"] = "su"
            rope.pop("rope_type")
        fields["rope_scaling"] = rope
    else:
        fields["rope_scaling"] = None
    if config.model_type == "gemma":
        # The first files say so, and mean the tanh approximation.
        fields["hidden_act"] = "gelu"
    if config.model_type == "internlm3":
        fields["qkv_bias"] = fields.pop("attention_bias")
        fields["bias"] = fields.pop("mlp_bias")
    if config.model_type == "lfm2":
        fields.pop("layer_types")
    if config.model_type in ("qwen3_5_text", "qwen3_5_moe_text"):
        fields.pop("layer_types")
        fields["full_attention_interval"] = 2
    if config.model_type in ("qwen2", "gemma2"):
        fields.pop("layer_types", None)
    return fields


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def saved_state(model):
    """The tensors that save_pretrained writes: experts one by one."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return load_file(Path(folder) / "model.safetensors")


def write_weights(model, folder, layout, dtype, shards):
    state = saved_state(model) if folder.name in EXPERTS | TOWERS and layout != "stacked" else model.state_dict()
    if folder.name == "gpt_neox-on":
        # As Pythia was published.
        state = {"embed_out.weight" if k == "lm_head.weight" else k: v for k, v in state.items()}
    if layout == "base":
        # As GPT-2 was published: without the class's prefix, and with the causal mask.
        state = {k.removeprefix("transformer."): v for k, v in state.items()}
        state |= {"h.0.attn.bias": torch.ones(1, 1, 8, 8).tril()}
    if layout == "transposed":
        state = {k: v.transpose(1, 2) if ".experts." in k else v for k, v in state.items()}
    if folder.name in TOWERS:
        # Of what sees and hears only enough to be passed over.
        own = ("lm_head.", "model.text_model.", "model.language_model.", "language_model.")
        own += ("model.layers.", "model.embed_tokens.", "model.norm.")
        state = {k: v for k, v in state.items() if k.startswith(own) or v.numel() <= 8}
    state = {k: v.to(dtype).contiguous() for k, v in state.items() if not (k == "lm_head.weight" and model.config.tie_word_embeddings)}
    if shards == 1:
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = sorted(state)
    weight_map = {}
    for s in range(shards):
        part = names[s * len(names) // shards:(s + 1) * len(names) // shards]
        file = f"model-{s + 1:05}-of-{shards:05}.safetensors"
        save_file({n: state[n] for n in part}, folder / file, metadata={"format": "pt"})
        weight_map.update({n: file for n in part})
    size = sum(v.numel() * v.element_size() for v in state.values())
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": size}, "weight_map": weight_map})


def round_weights(model, dtype):
    with torch.no_grad():
        stored = [b for name, b in model.named_buffers() if name.endswith(("layer_scalar", "expert_bias", "e_score_correction_bias"))]
        for p in [*model.parameters(), *stored]:
            p.copy_(p.to(dtype).float())


def main():
    reproducible()
    wanted = sys.argv[1:] or [*FAMILIES, "rope"]
    for name, (fields, layout, dtype, shards) in FAMILIES.items():
        if name not in wanted:
            continue
        folder = emptied(ROOT / name)
        fields = dict(fields)
        config = AutoConfig.for_model(fields.pop("model_type"), **fields)
        for seed in range(seed_of(name), seed_of(name) + 100):
            model = build(config, seed)
            round_weights(model, dtype)
            if name not in EXPERTS or is_clear(model, PROMPTS + LONGER) and meets_all_experts(model, PROMPTS):
                break
        else:
            raise SystemExit(f"{name}: no seed routes clearly")
        moving = (getattr(config.get_text_config(), "rope_parameters", None) or {}).get("rope_type") in ("dynamic", "longrope")
        tensors, metadata = expected(model, PROMPTS, moving)
        save_file(tensors, folder / "expected.safetensors", metadata=metadata)
        write_weights(model, folder, layout, dtype, shards)
        write_json(folder / "config.json", config_json(config, layout, dtype))
        write_json(folder / "generation_config.json", {"eos_token_id": []})
        write_tokenizer(folder)
        print(name, metadata, sum(f.stat().st_size for f in folder.iterdir()))

    if "rope" in wanted:
        make_rope()


def make_rope():
    folder = emptied(ROOT / "rope")
    for kind, (changes, rope) in ROPES.items():
        fields = {**ROPE, **changes}
        config = AutoConfig.for_model(fields.pop("model_type"), **fields, rope_parameters=dict(rope))
        model = build(config, 99)
        round_weights(model, torch.bfloat16)
        moving = kind.split("-")[0] in ("dynamic", "longrope")
        tensors, metadata = expected(model, ROPE_PROMPTS, moving)
        # Positions enter through attention alone: the last block and the ids and greedy tokens suffice.
        tensors = {k: v for k, v in tensors.items() if not k.endswith(("logits", "bf16", "raw", "normed"))}
        tensors = {k: v[-1].contiguous() if k.endswith("hidden") else v for k, v in tensors.items()}
        save_file(tensors, folder / f"expected.{kind}.safetensors", metadata=metadata)
        write_json(folder / ("config.json" if kind == "default" else f"config.{kind}.json"), config_json(config, "v5", torch.bfloat16))
    write_weights(model, folder, "v5", torch.bfloat16, 1)
    write_json(folder / "generation_config.json", {"eos_token_id": []})
    write_tokenizer(folder)
    print("rope", sum(f.stat().st_size for f in folder.iterdir()))


if __name__ == "__main__":
    main()
