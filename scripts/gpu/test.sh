#!/usr/bin/env bash
# scripts/gpu/test.sh FOLDER: GPU code on a machine without a GPU. In this order:
#   1. every kernel against f64 on a software adapter (lavapipe), and products on a driver that runs nothing;
#   2. all families against transformers on the software adapter, in f32;
#   3. all families in all dtypes on the driver that runs nothing: kernels are compiled by NVRTC, products are asked for, calls are counted.
# It installs lavapipe with apt-get where it is missing, and fetches NVIDIA's compiler and headers as Python packages into FOLDER.
# From nothing it takes about half an hour on two processors, nearly all of it compiling.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder="${1:?a folder for the compiler and the headers is needed}"
mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"

if ! ls /usr/share/vulkan/icd.d/lvp_icd*.json >/dev/null 2>&1; then
    apt-get update -q
    apt-get install -y -q --no-install-recommends mesa-vulkan-drivers libvulkan1
fi
if [ ! -d "$folder/nvidia/cu13/include" ]; then
    python3 -m pip install -q --no-deps --target "$folder" nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.96 \
        nvidia-cuda-nvcc==13.0.88 nvidia-cuda-cccl==13.0.85 nvidia-cuda-crt==13.0.88
fi
export CUDA_PATH="$folder/nvidia/cu13" CARGO_INCREMENTAL=0

# One set of features, so that nothing is built twice.
features=judge-gpu/cuda,judge-gpu/wgpu,judge-models/cuda,judge-models/wgpu,judge-models/emulated-unit
run() { cargo test --locked -p judge-gpu -p judge-models --features "$features" "$@"; }
run --test products_on_cuda --test kernels
JUDGE_TEST_DEVICE=wgpu:0 JUDGE_TEST_DTYPE=f32 run --test parity -- --nocapture --test-threads 1
LD_LIBRARY_PATH="$CUDA_PATH/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" run --test fake_gpu -- --nocapture
