//! Any bytes are read or refused as a saved probe, and what is read is written back as it was.
#![no_main]

use judge_probe::SavedProbe;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(saved) = SavedProbe::from_bytes(bytes) {
        let again = SavedProbe::from_bytes(&saved.to_bytes().unwrap()).unwrap();
        assert_eq!(again, saved);
    }
});
