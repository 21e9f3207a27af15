//! The program `judge`; its library says what it is.

use std::process::ExitCode;

fn main() -> ExitCode {
    judge::main()
}
