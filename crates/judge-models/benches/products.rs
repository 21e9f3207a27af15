//! Products and attention beside the limits of the kernel's own instructions, measured in the same run, on rayon's threads:
//! `cargo bench -p judge-models --features bench --bench products [-- KERNEL]`.

use std::error::Error;
use std::io::{Write, stdout};

use judge_models::Kernel;
use judge_models::speeds::speeds;

/// How often everything is timed.
const TRIES: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo passes options of its own.
    let kernel = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let kernel = kernel.map(|kernel| kernel.parse::<Kernel>()).transpose()?;
    let speeds = speeds(kernel, TRIES)?;
    let mut out = stdout().lock();
    writeln!(out, "kernel {}, GFLOP/s", speeds.kernel)?;
    if let Some(registers) = speeds.registers {
        writeln!(out, "limit, on registers             {:>8.0}", registers / 1e9)?;
    }
    writeln!(out, "limit, operands in nearest cache {:>7.0}", speeds.near / 1e9)?;
    let limit = speeds.registers.unwrap_or(speeds.near);
    for (rows, [d_in, d_out], rate) in speeds.products {
        // Weights are two bytes each, and each is in two operations for a row.
        let weights = rate / rows as f64 / 1e9;
        write!(out, "{rows:>5} rows, {d_in:>5} to {d_out:>5}      {:>8.0}", rate / 1e9)?;
        writeln!(out, "   {:>3.0} % of the limit   {weights:>5.1} GB/s of weights", 100.0 * rate / limit)?;
    }
    for (positions, rate) in speeds.attention {
        writeln!(
            out,
            "attention, {positions:>5} positions      {:>8.0}   {:>3.0} % of the limit",
            rate / 1e9,
            100.0 * rate / limit
        )?;
    }
    Ok(())
}
