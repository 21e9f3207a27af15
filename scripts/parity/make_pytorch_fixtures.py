"""Saves the weights of some fixtures with torch.save, and small files of what is read and what is not, for
crates/judge-models/tests/it/pytorch.rs and crates/judge-weights/src/pytorch/tests.rs.

    python scripts/parity/make_pytorch_fixtures.py

Made with torch 2.15.0 and safetensors 0.8.0.
"""

import collections
import io
import json
import os
import struct
import zipfile
from pathlib import Path

import torch
from safetensors.torch import load_file

assert torch.__version__.split("+")[0] == "2.15.0", torch.__version__

FIXTURES = Path(__file__).parents[2] / "crates/judge-models/tests/fixtures"
OUT = Path(__file__).parents[2] / "crates/judge-weights/tests/fixtures/pytorch"
OUT.mkdir(exist_ok=True)


def save(name, value, **settings):
    torch.save(value, OUT / name, **settings)


# A whole model whose tensors lie in their storages in every way: tied, as parts of one storage, transposed, as parameters.
state = collections.OrderedDict(load_file(FIXTURES / "families/llama-off/model.safetensors"))
state["lm_head.weight"] = state["model.embed_tokens.weight"]
for layer in range(3):
    attention = f"model.layers.{layer}.self_attn."
    both = torch.cat([state[attention + "k_proj.weight"], state[attention + "v_proj.weight"]])
    state[attention + "k_proj.weight"], state[attention + "v_proj.weight"] = both[:32], both[32:]
    mlp = f"model.layers.{layer}.mlp."
    state[mlp + "down_proj.weight"] = state[mlp + "down_proj.weight"].t().contiguous().t()
    beside = torch.cat([state[mlp + "gate_proj.weight"], state[mlp + "up_proj.weight"]], dim=1)
    state[mlp + "gate_proj.weight"], state[mlp + "up_proj.weight"] = beside[:, :32], beside[:, 32:]
state["model.norm.weight"] = torch.nn.Parameter(state["model.norm.weight"])
state._metadata = collections.OrderedDict({"": {"version": 1}, "model": {"version": 1}})
save("whole.bin", state)

# Shards with an index, in two protocols of pickles.
first, second = (load_file(FIXTURES / f"families/qwen3-on/model-0000{i}-of-00002.safetensors") for i in (1, 2))
save("pytorch_model-00001-of-00002.bin", first)
save("pytorch_model-00002-of-00002.bin", second, pickle_protocol=5)
index = {name: f"pytorch_model-0000{i}-of-00002.bin" for i, shard in ((1, first), (2, second)) for name in shard}
(OUT / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}) + "\n")

save("reward.bin", load_file(FIXTURES / "heads/llama/model.safetensors"))
save("encoder.bin", load_file(FIXTURES / "encoder_heads/roberta/model.safetensors"))
save("adapter.bin", load_file(FIXTURES / "adapters/plain/adapter_model.safetensors"))

# Every type, and every way to lie in a storage.
numbers = torch.arange(24)
types = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
odd = {str(dtype).removeprefix("torch."): numbers[:5].to(dtype) for dtype in types}
cube = numbers.float().reshape(2, 3, 4)
odd |= {
    "scalar": torch.tensor(2.5), "none": torch.zeros(0, 3), "cube": cube, "permuted": cube.permute(2, 0, 1), "steps": numbers.float()[1::3],
    "column": cube[0, :, 1:2], "row": cube[1, 1:2], "part": cube[1, 1:, 2:], "shared": cube[1], "one": cube[:, :1, :1].transpose(0, 2),
}
save("odd.bin", odd)
expected = {name: {"shape": list(t.shape), "dtype": str(t.dtype).removeprefix("torch."),
                   "bytes": t.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes().hex() if t.numel() else ""} for name, t in odd.items()}
(OUT / "odd.json").write_text(json.dumps(expected) + "\n")


# What is not read.
class Command:
    def __reduce__(self):
        return os.system, ("echo harm",)


a = torch.ones(2)
torch.manual_seed(0)
save("command.bin", {"a": a, "b": Command()})
save("module.bin", torch.nn.Linear(2, 2))
save("nested.bin", {"state_dict": {"a": a}, "epoch": 3})
save("old.bin", {"a": a}, _use_new_zipfile_serialization=False)
save("float8.bin", {"a": a.to(torch.float8_e4m3fn)})
save("sparse.bin", {"a": torch.eye(2).to_sparse()})
save("expanded.bin", {"a": a[:1].expand(100000)})
save("list.bin", [a])
save("negative.bin", {"a": torch._neg_view(a)})
save("integer.bin", {1: a})
packed = io.BytesIO()
torch.save({"a": a}, packed)
with zipfile.ZipFile(packed) as read, zipfile.ZipFile(OUT / "compressed.bin", "w", zipfile.ZIP_DEFLATED) as write:
    for entry in read.infolist():
        write.writestr(zipfile.ZipInfo(entry.filename), read.read(entry), zipfile.ZIP_DEFLATED)
with zipfile.ZipFile(packed) as read, zipfile.ZipFile(OUT / "big_endian.bin", "w") as write:
    for entry in read.infolist():
        content = b"big" if entry.filename.endswith("byteorder") else read.read(entry)
        write.writestr(zipfile.ZipInfo(entry.filename), content)


def wide(read):
    """The same archive with every size and place in 64 bits, as torch.save writes what is beyond 4 GiB."""
    written, listed, none = b"", b"", 0xFFFFFFFF
    entries = read.infolist()
    for entry in entries:
        name, content, at = entry.filename.encode(), read.read(entry), len(written)
        extra = struct.pack("<HHQQ", 1, 16, len(content), len(content))
        written += struct.pack("<4s5H3I2H", b"PK\x03\x04", 45, 0, 0, 0, 0, entry.CRC, none, none, len(name), len(extra)) + name + extra + content
        extra = struct.pack("<HHB", 7, 1, 0) + struct.pack("<HHQQQ", 1, 24, len(content), len(content), at)
        listed += struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 45, 45, 0, 0, 0, 0, entry.CRC, none, none, len(name), len(extra), 0, 0, 0, 0, none) + name + extra
    at = len(written)
    end = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, len(entries), len(entries), len(listed), at)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, at + len(listed), 1)
    return written + listed + end + locator + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, none, none, 0)


with zipfile.ZipFile(packed) as read:
    (OUT / "wide.bin").write_bytes(wide(read))
with zipfile.ZipFile(OUT / "wide.bin") as read:
    assert read.testzip() is None
assert torch.equal(torch.load(OUT / "wide.bin")["a"], a)
with zipfile.ZipFile(OUT / "empty.bin", "w") as write:
    write.writestr(zipfile.ZipInfo("archive/version"), "3")
for path in sorted(OUT.iterdir()):
    print(path.stat().st_size, path.name)
