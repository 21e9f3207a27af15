//! A `pytorch_model.bin`: it is refused, or gives each tensor as often as asked, as long as its shape says, wherever its numbers lie.
#![no_main]

use judge_fuzz::folder;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| judge_models::fuzzing::stored(folder(&[("pytorch_model.bin", bytes)])));
