# numpy==2.4.6 safetensors==0.8.0 gguf==0.19.0
"""Makes crates/judge-models/tests/fixtures/gguf_blocks.safetensors: blocks of every GGUF type with codes that is read, and the numbers that they stand for.

    pip install numpy==2.4.6 safetensors==0.8.0
    pip install --no-deps gguf==0.19.0
    python scripts/parity/make_gguf_block_fixtures.py

For each type two rows of random bytes whose scales (and minima or summands) are finite f16 of a sensible size, some of them 0 and negative, as `TYPE.bytes` u8, and what the
package gguf of llama.cpp expands them to, as `TYPE.values` f32 [2, 512].
"""

from importlib.metadata import version
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import save_file

PATH = Path(__file__).resolve().parents[2] / "crates/judge-models/tests/fixtures/gguf_blocks.safetensors"
# Where the f16 numbers of a block are.
HALVES = {
    Type.Q8_0: [0], Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208],
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
        tensors[f"{kind.name}.bytes"] = blocks.reshape(-1)
        expanded = gguf.dequantize(blocks.reshape(ROWS, -1), kind)
        assert expanded.shape == (ROWS, WIDTH) and expanded.dtype == np.float32 and np.isfinite(expanded).all()
        tensors[f"{kind.name}.values"] = expanded
    save_file(tensors, PATH)
    print(PATH.name, PATH.stat().st_size)


if __name__ == "__main__":
    main()
