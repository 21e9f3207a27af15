//! Products of packed matrices on CPUs, and the arithmetic along rows beside them: for `judge-models`, without a promise of stability.
//!
//! Weights are packed once, in bf16 or f32 or as the codes that a quantised format keeps; activations are f32.
//!
//! **The one promise: a row's bits depend on the row, the matrix and the kernel.** Not on how many rows are multiplied together, nor on
//! how many threads work. No body chooses the order of a sum by the number of rows or threads. Bits differ between kernels and between
//! dtypes, and between nothing else.
//!
//! ```text
//! numbers, codes ─► pack ─► section, stored, piece            a matrix as it is kept: words, or codes that words are made of
//! rows ─► product ─┬► blocked, unit                           products with weights, over the small products of `tile` and `unit`
//!                  ├► coded                                   of codes
//!                  └► integers                                of codes of eight and four bits, in integers
//! softmax, vector, exp                                        along rows: weights of attention, activations, norms, rotations
//! ```
//!
//! | part | what it owns |
//! |---|---|
//! | `kernel`, `supported`, `processor` | the names of kernels, the proof that this processor has one, AMX |
//! | `registers`, `tile`, `unit` | what registers do; products of a few rows over them; the matrix unit, and its stand-in for tests |
//! | `lines`, `columns` | memory: aligned, and shared between threads |
//! | `functions` | the names of functions in which models differ |
//! | `widest` | plain loops, compiled for the widest registers |
//! | `rate` | measured speeds |
//!
//! A new kernel has its name in `kernel`, its detection in `supported`, what its registers do in `registers`, the entries of `tile`,
//! `coded` and `integers`, and `softmax` if it has a body of its own for weights of attention.
//!
//! Instructions that not every processor has are run only by holders of a [`Supported`](supported::Supported).
//! All `unsafe` code of the CPU's path is here, but for maps of files and for rows that attention writes.

#[cfg(target_arch = "x86_64")]
pub mod blocked;
#[cfg(test)]
mod cases;
pub mod coded;
pub mod codes;
pub mod columns;
pub mod exp;
pub mod functions;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod integers;
pub mod kernel;
pub mod lines;
pub mod numbers;
pub mod pack;
pub mod piece;
#[cfg(target_arch = "x86_64")]
mod processor;
pub mod product;
pub mod rate;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod registers;
pub mod section;
pub mod softmax;
pub mod stored;
pub mod supported;
pub mod tile;
#[cfg(target_arch = "x86_64")]
pub mod unit;
pub mod vector;
pub mod widest;
