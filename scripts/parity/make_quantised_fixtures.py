# torch==2.15.0 transformers==5.23.0 safetensors==0.8.0 tokenizers==0.23.3 bitsandbytes==0.50.2 compressed-tensors==0.12.2 gptqmodel==7.7.0 autoawq==0.2.9
"""Makes crates/judge-models/tests/fixtures/quantised: one small random model in every quantised form that is read, and what others make of it.

    pip install --no-deps --no-build-isolation bitsandbytes==0.50.2 compressed-tensors==0.12.2 gptqmodel==7.7.0 autoawq==0.2.9 loguru==0.7.3 logbar==0.1.0 pypcre==0.6.4
    python scripts/parity/make_quantised_fixtures.py [NAME ...]

Names of folders make these alone. Each is a model's folder. What its weights are is computed by the library that wrote the form, or that reads it: transformers
(fp8, mxfp4), compressed-tensors (the last release that knows g_idx), GPTQModel, AutoAWQ and bitsandbytes. Only for fbgemm_fp8, which has no code for a processor without
a GPU, it is torch's conversion of E4M3 times the scale.

expected.safetensors of a folder holds, for prompt i:
    i.ids      token ids [seq]
    i.hidden   hidden states of the last position [n_layers + 1, d_model], the last one normed: transformers in f32 on the dequantised weights
and its metadata "sha256", JSON: by the weights' names "F32 BF16", the sums of the dequantised weight's bytes in both. Experts that are stored as one tensor have
names as if they were stored one by one.
"""

import functools
import hashlib
import importlib
import importlib.util
import json
import math
import sys
import types

import numpy as np
import torch
from make_family_fixtures import D_VOCAB, config_json, emptied, reproducible, write_json, write_tokenizer
from make_family_fixtures import ROOT as FAMILIES
from make_family_fixtures import build as build_family
from safetensors.torch import save_file
from transformers import AutoConfig
from transformers.integrations.finegrained_fp8 import _dequantize_fp8_weight
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

ROOT = FAMILIES.parent / "quantised"
IDS = [[4, 5, 6, 7, 8, 9, 10], [50, 20, 30, 4]]
E4M3 = torch.float8_e4m3fn
FIELDS = dict(
    model_type="llama", vocab_size=D_VOCAB, hidden_size=64, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=16,
    max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=None, attention_bias=True, tie_word_embeddings=True,
)


@functools.cache
def home(root):
    return importlib.util.find_spec(root).submodule_search_locations[0]


def without_packages(name, *packages):
    """A module, where the own first files of packages want more than is installed: they are passed over."""
    for package in packages:
        root, *rest = package.split(".")
        empty = types.ModuleType(package)
        empty.__path__ = ["/".join([home(root), *rest])]
        sys.modules.setdefault(package, empty)
    return importlib.import_module(name)


def to_e4m3(w, scale):
    return (w / scale).clamp(-448, 448).to(E4M3)


def spread(scale, block, shape):
    """A scale for each element, of scales for blocks."""
    return scale.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[: shape[0], : shape[1]]


def block_scales(w, block):
    rows, columns = (math.ceil(size / by) for size, by in zip(w.shape, block))
    padded = torch.zeros(rows * block[0], columns * block[1])
    padded[: w.shape[0], : w.shape[1]] = w
    return padded.view(rows, block[0], columns, block[1]).abs().amax((1, 3)) / 448


# Each form: from a weight's name and values, and a generator, to stored tensors by the end of their names, and the dequantised weight.

def fp8_block(name, w, rng):
    block = [48, 24]
    scale = block_scales(w, block)
    q = to_e4m3(w, spread(scale, block, w.shape))
    return {"weight": q, "weight_scale_inv": scale}, _dequantize_fp8_weight(q, scale, block, torch.float32)


def fp8_ue8m0(name, w, rng):
    block = [16, 32]
    scale = torch.exp2(torch.ceil(torch.log2(block_scales(w, block))))
    q = to_e4m3(w, spread(scale, block, w.shape))
    powers = scale.to(torch.float8_e8m0fnu)
    stored = powers.view(torch.uint8) if "layers.1" in name else powers
    return {"weight": q, "weight_scale_inv": stored}, _dequantize_fp8_weight(q, powers, block, torch.float32)


def fp8_tensor(name, w, rng):
    scale = w.abs().max() / 448
    if "layers.1" in name:
        scale = scale.to(torch.bfloat16)
    q = to_e4m3(w, scale.float())
    stored = {"weight": q, "weight_scale_inv": scale, "activation_scale": torch.tensor(0.25)}
    return stored, _dequantize_fp8_weight(q, scale, None, torch.float32)


def fbgemm(name, w, rng):
    scale = w.abs().amax(1, keepdim=True) / 448
    q = to_e4m3(w, scale)
    return {"weight": q, "weight_scale": scale, "input_scale_ub": torch.tensor([1200.0])}, q.float() * scale


def compressed(name, w, rng):
    from compressed_tensors.compressors import pack_to_int32, unpack_from_int32
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle.forward import dequantize, quantize

    scheme = COMPRESSED_SCHEMES[scheme_of(name)]
    args = QuantizationArgs(**scheme)
    groups = {"tensor": w.reshape(1, -1), "channel": w, "group": w.view(w.shape[0], -1, args.group_size or 1)}[args.strategy]
    order = None
    if args.strategy == "group" and args.actorder == "group":
        order = torch.randperm(w.shape[1], generator=rng)
        groups = w[:, order].view(w.shape[0], -1, args.group_size)
    low, high = groups.amin(-1).clamp(max=0), groups.amax(-1).clamp(min=0)
    steps = 448 if args.type == "float" else 2 ** (args.num_bits - 1) - 1
    zero = None
    if args.symmetric:
        scale = torch.maximum(-low, high) / steps
    else:
        scale = (high - low) / (2**args.num_bits - 1)
        zero = (-(2 ** (args.num_bits - 1)) - low / scale).round().to(torch.int8)
    scale = scale.reshape({"tensor": (1,), "channel": (-1, 1), "group": scale.shape}[args.strategy])
    zero = None if zero is None else zero.reshape(scale.shape)
    scale = scale.to(torch.bfloat16)
    g_idx = None
    if order is not None:
        g_idx = torch.empty(w.shape[1], dtype=torch.int32)
        g_idx[order] = torch.arange(w.shape[1], dtype=torch.int32) // args.group_size
    q = quantize(w.to(torch.bfloat16), scale, zero, args, dtype=E4M3 if args.type == "float" else torch.int8, g_idx=g_idx)
    exact = dequantize(q, scale.float(), zero, args=args, g_idx=g_idx)
    own = dequantize(q, scale, zero, args=args, g_idx=g_idx)
    assert torch.equal(own, exact.to(torch.bfloat16)), "the library's own rounding is another"
    if not PACKED[scheme_of(name)]:
        stored = {"weight": q, "weight_scale": scale, "input_scale": torch.tensor([0.5])}
        if zero is not None:
            stored["weight_zero_point"] = zero
        return stored, exact
    packed = pack_to_int32(q, args.num_bits)
    assert torch.equal(unpack_from_int32(packed, args.num_bits, w.shape), q)
    stored = {"weight_packed": packed, "weight_scale": scale, "weight_shape": torch.tensor(w.shape)}
    if zero is not None:
        stored["weight_zero_point"] = pack_to_int32(zero, args.num_bits, packed_dim=0)
    if g_idx is not None:
        stored["weight_g_idx"] = g_idx
    return stored, exact


COMPRESSED_SCHEMES = {
    "float": dict(num_bits=8, type="float", strategy="channel", symmetric=True),
    "int": dict(num_bits=8, type="int", strategy="channel", symmetric=False),
    "float-tensor": dict(num_bits=8, type="float", strategy="tensor", symmetric=True),
    "ordered": dict(num_bits=4, type="int", strategy="group", group_size=16, symmetric=True, actorder="group"),
    "zeros": dict(num_bits=4, type="int", strategy="group", group_size=32, symmetric=False),
    "eight": dict(num_bits=8, type="int", strategy="channel", symmetric=True),
}
PACKED = {"float": False, "int": False, "float-tensor": False, "ordered": True, "zeros": True, "eight": True}
COMPRESSED_FOLDERS = {"compressed-float": ["float"], "compressed-bytes": ["int", "float-tensor"], "compressed-packed": ["ordered", "zeros", "eight"]}
now = None


def scheme_of(name):
    """Which scheme of the folder that is made now a weight has."""
    schemes = COMPRESSED_FOLDERS[now]
    if now == "compressed-packed":
        return "eight" if "layers.1" in name else "ordered" if "self_attn" in name else "zeros"
    return schemes[1] if len(schemes) > 1 and "layers.1" in name else schemes[0]


def compressed_config(name, form):
    groups = {f"group_{i}": {"targets": ["Linear"], "weights": COMPRESSED_SCHEMES[scheme]} for i, scheme in enumerate(COMPRESSED_FOLDERS[name])}
    return {"quant_method": "compressed-tensors", "format": form, "quantization_status": "compressed", "config_groups": groups, "ignore": ["lm_head"]}


def pack_words(values, bits):
    """Integers packed along the first dimension, low bits first."""
    per_word = 32 // bits
    values = values.numpy().astype(np.uint32).reshape(values.shape[0] // per_word, per_word, -1)
    words = np.zeros((values.shape[0], values.shape[2]), np.uint32)
    for place in range(per_word):
        words |= values[:, place] << np.uint32(bits * place)
    return torch.from_numpy(words.view(np.int32))


def integer_groups(w, bits, g_idx):
    """Codes [in, out], zero points and scales in f16 [groups, out]."""
    columns = w.T
    count = int(g_idx.max()) + 1
    low = torch.stack([columns[g_idx == g].amin(0) for g in range(count)]).clamp(max=-1e-3)
    high = torch.stack([columns[g_idx == g].amax(0) for g in range(count)]).clamp(min=1e-3)
    scale = ((high - low) / (2**bits - 1)).half()
    # From 1 on: what takes 1 off a 0 is not the same in all programs.
    zero = (-low / scale.float()).round().clamp(1, 2**bits - 1).int()
    q = (columns / scale.float()[g_idx] + zero[g_idx]).round().clamp(0, 2**bits - 1).int()
    return q, zero, scale


def gptq(bits, version, group_size, desc_act):
    def form(name, w, rng):
        model_dequant = without_packages("gptqmodel.utils.model_dequant", "gptqmodel", "gptqmodel.quantization")
        width = w.shape[1]
        size = width if group_size == -1 else group_size
        g_idx = torch.arange(width) // size
        if desc_act:
            g_idx = g_idx[torch.randperm(width, generator=rng)]
        q, zero, scale = integer_groups(w, bits, g_idx)
        one = {4: 0x11111111, 8: 0x01010101}[bits] if version == "gptq" else 0
        qzeros = pack_words(zero.T, bits).T.contiguous()
        stored = {"qweight": pack_words(q, bits), "qzeros": qzeros - one, "scales": scale, "g_idx": g_idx.int()}
        file = ROOT / "module.safetensors"
        save_file({f"m.{end}": tensor.contiguous() for end, tensor in stored.items()}, file)
        config = {"bits": bits, "checkpoint_format": version}
        found = model_dequant.convert_gptq_file(file, torch.float32, config, "cpu")["m.weight"]
        file.unlink()
        if not desc_act and "layers.1" in name:
            del stored["g_idx"]
        return stored, found
    return form


def awq(name, w, rng):
    packing = without_packages("awq.utils.packing_utils", "awq", "awq.utils")
    size = 32
    q, zero, scale = integer_groups(w, 4, torch.arange(w.shape[1]) // size)
    order = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])

    def pack(values):
        """Eight columns a word, in AWQ's order."""
        return pack_words(values.view(values.shape[0], -1, 8)[:, :, order].reshape(values.shape).T, 4).T.contiguous()

    qweight, qzeros = pack(q), pack(zero)
    found = packing.dequantize_gemm(qweight, qzeros, scale.float(), 4, size).T.contiguous()
    return {"qweight": qweight, "qzeros": qzeros, "scales": scale}, found


def bnb4(kind, is_nested):
    def form(name, w, rng):
        import bitsandbytes.functional as bnb

        nested = is_nested(name)
        q, state = bnb.quantize_4bit(w, blocksize=64, quant_type=kind, compress_statistics=nested)
        stored = {"weight": q} | {f"weight.{key}": value for key, value in state.as_dict(packed=True).items()}
        return stored, bnb.dequantize_4bit(q, state)
    return form


def bnb8(name, w, rng):
    import bitsandbytes.functional as bnb

    q, scb, _ = bnb.int8_vectorwise_quant(w.half())
    return {"weight": q, "SCB": scb, "weight_format": torch.tensor(0, dtype=torch.uint8)}, bnb.int8_vectorwise_dequant(q, scb)


E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])


def mxfp4(name, w, rng):
    """All experts of a block, [experts, in, out]."""
    groups = w.transpose(1, 2).reshape(w.shape[0], w.shape[2], -1, 32)
    power = groups.abs().amax(-1, keepdim=True).log2().floor() - 2
    codes = (groups.div(power.exp2())[..., None] - E2M1).abs().argmin(-1).to(torch.uint8)
    blocks, scales = codes[..., 0::2] | codes[..., 1::2] << 4, (power[..., 0] + 127).to(torch.uint8)
    return {"_blocks": blocks, "_scales": scales}, convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)


def experts_of(name, w):
    """The matrices of each expert, by the names that they have in families that store them one by one."""
    module = name.removesuffix(".gate_up_proj").removesuffix(".down_proj")
    for index, matrix in enumerate(w.transpose(1, 2)):
        parts = {"gate_proj": matrix[0::2], "up_proj": matrix[1::2]} if "gate_up" in name else {"down_proj": matrix}
        for part, values in parts.items():
            yield f"{module}.{index}.{part}.weight", values


def gptq_config(bits, version, group_size, desc_act):
    return {"quant_method": "gptq", "bits": bits, "group_size": group_size, "desc_act": desc_act, "sym": False, "lm_head": False, "checkpoint_format": version}


FP8 = dict(quant_method="fp8", activation_scheme="dynamic", modules_to_not_convert=["lm_head"])
ONE = dict(num_hidden_layers=1)
GPT_OSS = dict(model_type="gpt_oss", num_local_experts=3, num_experts_per_tok=2, sliding_window=5, rope_parameters=dict(rope_type="default", rope_theta=10000.0))
# Rows are whole blocks of 64: bitsandbytes 0.50.2's own expansion on the CPU is wrong for narrower ones (its codes give the weight back, its result does not).
WIDE = dict(num_attention_heads=4, intermediate_size=64, num_hidden_layers=1)
BNB4 = dict(quant_method="bitsandbytes", load_in_4bit=True, load_in_8bit=False, bnb_4bit_use_double_quant=True, bnb_4bit_quant_storage="uint8")
# name: (form, quantization_config, fields of the model that differ)
FOLDERS = {
    "fp8-block": (fp8_block, {**FP8, "weight_block_size": [48, 24]}, {}),
    "fp8-ue8m0": (fp8_ue8m0, {**FP8, "weight_block_size": [16, 32], "scale_fmt": "ue8m0"}, {}),
    "fp8-tensor": (fp8_tensor, {**FP8, "activation_scheme": "static", "weight_block_size": None}, {}),
    "fbgemm": (fbgemm, dict(quant_method="fbgemm_fp8", activation_scale_ub=1200.0), ONE),
    "compressed-float": (compressed, compressed_config("compressed-float", "float-quantized"), ONE),
    "compressed-bytes": (compressed, compressed_config("compressed-bytes", "mixed-precision"), {}),
    "compressed-packed": (compressed, compressed_config("compressed-packed", "pack-quantized"), {}),
    "gptq-v1": (gptq(4, "gptq", 16, True), gptq_config(4, "gptq", 16, True), {}),
    "gptq-v2": (gptq(4, "gptq_v2", 32, False), gptq_config(4, "gptq_v2", 32, False), {}),
    "gptq-8": (gptq(8, "gptq", -1, False), gptq_config(8, "gptq", -1, False), ONE),
    "awq": (awq, dict(quant_method="awq", bits=4, group_size=32, zero_point=True, version="gemm"), ONE),
    "bnb-nf4": (bnb4("nf4", lambda name: "mlp" in name), {**BNB4, "bnb_4bit_quant_type": "nf4"}, {**WIDE, "intermediate_size": 320}),
    "bnb-fp4": (bnb4("fp4", lambda name: False), {**BNB4, "bnb_4bit_quant_type": "fp4", "bnb_4bit_use_double_quant": False}, WIDE),
    "bnb-int8": (bnb8, dict(quant_method="bitsandbytes", load_in_8bit=True, llm_int8_threshold=6.0), ONE),
    "mxfp4": (mxfp4, dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]), GPT_OSS),
}


def digests(w):
    wide = w.float().contiguous()
    half = wide.to(torch.bfloat16).view(torch.int16)
    return " ".join(hashlib.sha256(values.numpy().tobytes()).hexdigest() for values in (wide, half))


def make(name, form, quantization_config, fields, seed):
    global now
    now = name
    folder = emptied(ROOT / name)
    fields = {**FIELDS, **fields}
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    model = build_family(config, seed)
    rng = torch.Generator().manual_seed(seed)
    stored, found = {}, {}
    with torch.no_grad():
        for key, p in model.named_parameters():
            stacked = form is mxfp4
            if key.endswith((".gate_up_proj", ".down_proj") if stacked else "_proj.weight"):
                tensors, dequantised = form(key, p.detach().clone(), rng)
                assert dequantised.dtype == torch.float32 and dequantised.shape == p.shape, key
                assert (dequantised - p).abs().max() < 0.5 * p.abs().max(), key
                stored |= {key.removesuffix("weight") + end: tensor.contiguous() for end, tensor in tensors.items()}
                found |= {part: digests(values) for part, values in (experts_of(key, dequantised) if stacked else [(key, dequantised)])}
                p.copy_(dequantised)
            else:
                p.copy_(p.to(torch.bfloat16).float())
                stored[key] = p.to(torch.bfloat16).contiguous()
        expected = {}
        for i, ids in enumerate(IDS):
            out = model(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
            expected[f"{i}.ids"] = torch.tensor(ids, dtype=torch.int32)
            expected[f"{i}.hidden"] = torch.cat(out.hidden_states)[:, -1].contiguous()
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    save_file(expected, folder / "expected.safetensors", metadata={"sha256": json.dumps(found)})
    write_json(folder / "config.json", config_json(config, "v5", torch.bfloat16) | {"quantization_config": quantization_config})
    write_tokenizer(folder)
    print(name, sum(f.stat().st_size for f in folder.iterdir()))


def main():
    reproducible()
    ROOT.mkdir(parents=True, exist_ok=True)
    names = sys.argv[1:] or list(FOLDERS)
    for seed, (name, (form, quantization_config, fields)) in enumerate(FOLDERS.items()):
        if name in names:
            make(name, form, quantization_config, fields, 500 + seed)


if __name__ == "__main__":
    main()
