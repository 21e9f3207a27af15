//! Decoders on a driver that runs nothing, with a cuBLASLt that multiplies on the host: the whole path of NVIDIA GPUs but the GPU. Models are
//! loaded, every kernel is compiled by the real NVRTC, every product is asked for with operands that cuBLASLt takes. What comes out means
//! nothing, since kernels are not run.
//!
//! The libraries are those of `judge-gpu`'s tests. Without a C compiler, NVRTC (`libnvrtc`) or CUDA's headers (`CUDA_PATH`) the test says that
//! it is skipped. Python's packages nvidia-cuda-nvrtc, -runtime, -nvcc, -cccl and -crt have the two, without a GPU.

#![cfg(feature = "cuda")]
#![allow(clippy::print_stdout, clippy::print_stderr)] // counts, and what was skipped

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

use judge_core::request::Pooling;
use judge_core::{Backbone, Layer, Prompt, Request, TextModel, Want};
use judge_models::{CudaProblem, Device, Dtype, Error, LoadOptions, Model};

/// Names the file of calls, in the process that has the libraries.
const CALLS: &str = "FAKE_CUDA_CALLS";

/// The fixture of a dense decoder, and kernels of one of its blocks, products included.
const DENSE: [(&str, usize); 2] = [("llama-off", 14), ("qwen3-off", 14)];

#[test]
fn blocks_are_a_few_kernels_and_products_that_cublaslt_takes() {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../judge-gpu/tests/fake");
    for (from, to) in [("driver.c", "libcuda.so"), ("cublaslt.c", "libcublasLt.so")] {
        let cc = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-w", "-o"])
            .args([folder.path().join(to), source.join(from)])
            .status();
        match cc {
            Ok(status) => assert!(status.success(), "cc does not take {from}"),
            Err(error) => return eprintln!("skipped: the C compiler cc is needed: {error}"),
        }
    }
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let all = [folder.path().into()].into_iter().chain(std::env::split_paths(&path));
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "inside", "--ignored", "--nocapture"])
        .env("LD_LIBRARY_PATH", std::env::join_paths(all.filter(|path| !path.as_os_str().is_empty())).unwrap())
        .env("LD_PRELOAD", folder.path().join("libcuda.so"))
        .env(CALLS, folder.path().join("calls"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    print!("{said}");
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "started as a process of its own by the test above, with other libraries"]
fn inside() {
    let Some(calls) = std::env::var_os(CALLS).map(PathBuf::from) else { return };
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/families");
    let load = |folder: &Path, dtype| {
        Model::load(
            folder,
            &LoadOptions { devices: vec![Device::Cuda(0)], dtype: Some(dtype), ..LoadOptions::default() },
        )
    };
    if let Err(Error::Cuda { problem: problem @ (CudaProblem::NoCompiler | CudaProblem::NoHeaders { .. }), .. }) =
        load(&fixtures.join(DENSE[0].0), Dtype::F32)
    {
        return eprintln!("skipped: {problem}");
    }
    // Kernels and products of readings of the state at a layer.
    let count = |model: &Model, layer: usize| {
        std::fs::write(&calls, "").unwrap();
        let prompt = Prompt::Raw("ba de fi go ku la me ni po ru sa te vi zo".to_owned());
        let want = Want { pooled: vec![(Layer(layer), Pooling::Last)], ..Want::default() };
        model.run(&[Request { prompt, want }], &mut |_, _| ControlFlow::Continue(())).unwrap();
        let calls = std::fs::read_to_string(&calls).unwrap();
        let lines: Vec<String> = calls
            .lines()
            .filter(|line| line.starts_with("kernel") || line.starts_with("product"))
            .map(str::to_owned)
            .collect();
        lines
    };
    for (family, kernels) in DENSE {
        let model = load(&fixtures.join(family), Dtype::Bf16).unwrap();
        // With one block more that is not the last, whose rows all go on.
        let (one, two) = (count(&model, 1), count(&model, 2));
        let products = |lines: &[String]| lines.iter().filter(|line| line.starts_with("product")).count();
        println!(
            "{family}: {} kernels a block, {} of them products",
            two.len() - one.len(),
            products(&two) - products(&one)
        );
        assert!(two.len() - one.len() <= kernels, "{family}: {two:#?}");
    }
    // Every family goes all the way in every dtype.
    let mut families: Vec<PathBuf> = std::fs::read_dir(&fixtures).unwrap().map(|entry| entry.unwrap().path()).collect();
    families.sort();
    for family in families.iter().filter(|family| family.join("config.json").is_file()) {
        for dtype in [Dtype::F32, Dtype::Tf32, Dtype::Bf16] {
            match load(family, dtype) {
                Ok(model) => drop(count(&model, model.info().n_layers)),
                // Encoders are the processor's.
                Err(Error::Devices { .. }) => {}
                Err(error) => panic!("{}, {dtype}: {error}", family.display()),
            }
        }
    }
}
