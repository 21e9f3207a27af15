//! A process of a test with a driver that runs nothing and a cuBLASLt that multiplies on the host, in the place of NVIDIA's.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the file of calls, in the process that has the libraries.
const CALLS: &str = "FAKE_CUDA_CALLS";

/// Compiles the libraries and runs the ignored test `inside` of this program with them, which must pass: what it said, and the calls, a line
/// each. `None`, said so, without a C compiler.
pub(crate) fn run_inside() -> Option<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../judge-gpu/tests/fake");
    // NVIDIA's own library has this name where NVRTC looks for it too, and NVRTC ends where it finds another: so without a version.
    for (from, to) in [("driver.c", "libcuda.so"), ("cublaslt.c", "libcublasLt.so")] {
        let files = [folder.path().join(to), source.join(from)];
        match Command::new("cc").args(["-shared", "-fPIC", "-O2", "-w", "-o"]).args(files).status() {
            Ok(status) => assert!(status.success(), "cc does not take {from}"),
            Err(error) => {
                eprintln!("skipped: the C compiler cc is needed: {error}");
                return None;
            }
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
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
    Some((said, std::fs::read_to_string(folder.path().join("calls")).unwrap_or_default()))
}

/// The file of calls; `None` outside of such a process.
pub(crate) fn calls() -> Option<PathBuf> {
    std::env::var_os(CALLS).map(PathBuf::from)
}
