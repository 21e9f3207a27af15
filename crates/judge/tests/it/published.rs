//! Where the published files are that some tests read.

use std::path::PathBuf;

/// The folder that `JUDGE_TEST_DATA` names; `None`, and it is said, if the variable is not set.
/// A folder that is named but missing fails the test.
pub fn data() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("JUDGE_TEST_DATA").map(PathBuf::from) else {
        eprintln!("skipped: JUDGE_TEST_DATA is not set");
        return None;
    };
    assert!(folder.is_dir(), "JUDGE_TEST_DATA is {}, which is no folder", folder.display());
    Some(folder)
}
