//! How long to wait before a request is sent again: the client's own rule.
//!
//! Pure functions. `model` takes the longer of this wait and of the one that the service asks for. There
//! is no random state: a wait follows from the numbers of the request and of the attempt, so a run
//! waits the same when it is repeated.

use std::time::Duration;

/// The wait after attempt number `attempt` (from 1) of request number `request` has failed:
///
/// ```text
/// full = min(first * 2^(attempt - 1), most)
/// wait = full * (0.5 + 0.5 * u),  u in [0, 1) from mix(request, attempt)
/// ```
///
/// The share `u` keeps requests that failed together from coming back together.
pub(super) fn wait(first: Duration, most: Duration, request: usize, attempt: usize) -> Duration {
    let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX).min(31);
    let full = first.saturating_mul(1 << doublings).min(most);
    let share = mix((request as u64) << 8 ^ attempt as u64) >> 11; // 53 bits
    full.mul_f64(0.5 + 0.5 * (share as f64 / (1_u64 << 53) as f64))
}

/// A bijection on 64 bits whose results look random: the step and the finaliser of SplitMix64.
pub(super) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_up_to_a_bound_and_differ_by_request() {
        for attempt in 1..40 {
            let full = SECOND.saturating_mul(1 << (attempt - 1).min(10)).min(60 * SECOND);
            let found = wait(SECOND, 60 * SECOND, 7, attempt);
            assert!(found >= full / 2 && found <= full, "{attempt}: {found:?}");
            assert_eq!(found, wait(SECOND, 60 * SECOND, 7, attempt));
        }
        let mut waits: Vec<Duration> = (0..100).map(|request| wait(SECOND, 60 * SECOND, request, 3)).collect();
        waits.sort();
        waits.dedup();
        assert!(waits.len() > 90 && waits[0] < SECOND * 22 / 10 && waits[waits.len() - 1] > SECOND * 38 / 10);
        assert_eq!(wait(Duration::ZERO, SECOND, 1, 9), Duration::ZERO);
    }
}
