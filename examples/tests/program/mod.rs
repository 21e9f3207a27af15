//! The examples' programs, for tests that run them as a user does.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A command that starts an example.
pub fn example(name: &str) -> Command {
    // target/PROFILE/deps/this-test -> target/PROFILE/examples/NAME
    let test = std::env::current_exe().expect("path of this test");
    let profile = test.parent().and_then(Path::parent).expect("target folder");
    let program = profile.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        program.is_file(),
        "{} is not built; run `cargo test -p judge-examples`, which builds examples",
        program.display()
    );
    Command::new(program)
}

/// Runs an example in a folder to its end.
pub fn run(name: &str, folder: &Path, args: &[&str]) -> Output {
    example(name).args(args).current_dir(folder).stdin(Stdio::null()).output().expect("the example starts")
}
