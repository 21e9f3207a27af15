//! How far numbers are from those expected. One that is not finite is a failure, never a difference that `max` drops.

/// The largest difference.
#[track_caller]
pub(crate) fn largest_difference(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().chain(expected).all(|x| x.is_finite()), "not every number is finite: {found:?}");
    found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// The largest difference over the largest expected value.
#[track_caller]
pub(crate) fn relative_error(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().chain(expected).all(|x| x.is_finite()), "not every number is finite: {found:?}");
    let difference = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    difference / expected.iter().map(|x| x.abs()).fold(f32::MIN_POSITIVE, f32::max)
}
