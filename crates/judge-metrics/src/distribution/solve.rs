//! Inverses of distribution functions by safeguarded Newton steps.

/// w with F(w) = `target`, for F increasing from 0 and log-concave; `at` gives F and its derivative, and `start` lies near the
/// middle. The root of `target` 0 is −∞.
///
/// Newton's method on ln F: it never passes the root from the left, where the tangent of a concave function lies above it, and
/// leaps there from the right. Where it leaps so far that F is 0, halving leads back.
pub(super) fn solve(start: f64, target: f64, at: impl Fn(f64) -> (f64, f64)) -> f64 {
    // Newton takes a dozen steps, halving some 60: a guard against rounding that never settles.
    const MAX_STEPS: u32 = 200;
    if target <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut w = start;
    for _ in 0..MAX_STEPS {
        let (value, slope) = at(w);
        if value < target {
            low = w;
        } else {
            high = w;
        }
        // Where F is 0 this is NaN, but then `low` is finite, and `high` has been since the start.
        let newton = w + (target / value).ln() * value / slope;
        let bracketed = low.is_finite() && high.is_finite();
        let next = if bracketed && !(low..=high).contains(&newton) { f64::midpoint(low, high) } else { newton };
        let settled = (next - w).abs() <= f64::EPSILON * w.abs().max(1.0);
        w = next;
        if settled {
            break;
        }
    }
    w
}
