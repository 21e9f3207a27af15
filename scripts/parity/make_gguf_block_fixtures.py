# numpy==2.4.6 safetensors==0.8.0 gguf==0.19.0
"""Makes crates/judge-weights/tests/fixtures/gguf_blocks.safetensors: blocks of every GGUF type with codes that is read, and the numbers that they stand for.

    pip install numpy==2.4.6 safetensors==0.8.0 pyyaml tqdm
    pip install --no-deps gguf==0.19.0
    python scripts/parity/make_gguf_block_fixtures.py

For each type two rows of random bytes whose scales (and minima or summands) are finite f16 of a sensible size, some of them 0 and negative, as `TYPE.bytes` u8, and what the
package gguf of llama.cpp expands them to, as `TYPE.values` f32 [2, 512].

Also writes crates/judge-weights/src/gguf/grids.bin: the grids of the types that look numbers up (`ggml-common.h` of llama.cpp, MIT licence, as that package packs them).
"""

from importlib.metadata import version
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import quants
from safetensors.numpy import save_file

PATH = Path(__file__).resolve().parents[2] / "crates/judge-weights/tests/fixtures/gguf_blocks.safetensors"
GRIDS = Path(__file__).resolve().parents[2] / "crates/judge-weights/src/gguf/grids.bin"
# Where the f16 numbers of a block are. MXFP4 and NVFP4 have none, and that of IQ1_M is in four pieces.
HALVES = {
    Type.Q8_0: [0], Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208],
    Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.IQ4_NL: [0], Type.IQ4_XS: [0], Type.TQ1_0: [52], Type.TQ2_0: [64], Type.IQ2_XXS: [0], Type.IQ2_XS: [0], Type.IQ2_S: [0],
    Type.IQ3_XXS: [0], Type.IQ3_S: [0], Type.IQ1_S: [0], Type.IQ1_M: [], Type.MXFP4: [], Type.NVFP4: [],
}
ROWS, WIDTH = 2, 512


def main():
    for package, pinned in [("numpy", "2.4.6"), ("safetensors", "0.8.0"), ("gguf", "0.19.0")]:
        assert version(package) == pinned, f"{package} is {version(package)}, expected {pinned}"
    rng = np.random.default_rng(38)
    tensors = {}
    for kind, halves in HALVES.items():
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = rng.integers(0, 256, (ROWS * WIDTH // elements, size), dtype=np.uint8)
        for at in halves:
            values = rng.normal(0, 0.01, len(blocks)).astype("<f2")
            values[0] = 0
            blocks[:, at : at + 2] = values.view(np.uint8).reshape(-1, 2)
        if kind == Type.IQ1_M:
            # The highest four bits of each of the last four words, the lowest of the number first.
            bits = rng.normal(0, 0.01, len(blocks)).astype("<f2").view(np.uint16)
            for word in range(4):
                high = (bits >> (4 * word) & 15).astype(np.uint8)
                blocks[:, 49 + 2 * word] = blocks[:, 49 + 2 * word] & 15 | high << 4
        if kind == Type.MXFP4:
            blocks[:, 0] = [0, 1, 2, 126, 127, 128, 200, *rng.integers(100, 140, len(blocks) - 7)]
        if kind == Type.NVFP4:
            blocks[0, :4], blocks[1, :4] = [0, 127, 255, 1], [126, 8, 7, 128]
        tensors[f"{kind.name}.bytes"] = blocks.reshape(-1)
        expanded = gguf.dequantize(blocks.reshape(ROWS, -1), kind)
        assert expanded.shape == (ROWS, WIDTH) and expanded.dtype == np.float32 and np.isfinite(expanded).all()
        tensors[f"{kind.name}.values"] = expanded
    save_file(tensors, PATH)
    kinds = [quants.IQ2_XXS, quants.IQ2_XS, quants.IQ2_S, quants.IQ3_XXS, quants.IQ3_S, quants.IQ1_S]
    GRIDS.write_bytes(b"".join(bytes.fromhex(kind.grid_hex.decode()) for kind in kinds))
    print(PATH.name, PATH.stat().st_size)


if __name__ == "__main__":
    main()
