//! The workloads that `scripts/bench/metrics.py` runs with SciPy too.
//!
//! `cargo bench -p judge-metrics --bench against_scipy`

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use judge_metrics::correlation::{KendallTest, kendall_tau_b, pearson, spearman};
use judge_metrics::resampling::{Bootstrap, RankedPair};

/// A judge's scores with a fraction and people's means of three whole grades, drawn by a linear congruential generator, or without
/// grades, so that nothing is tied; the script draws the same.
fn columns(n: usize, grades: bool) -> (Vec<f64>, Vec<f64>) {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 31)
    };
    (0..n)
        .map(|_| {
            let thirds = next() * 13.0;
            let human = if grades { thirds.floor() } else { thirds } / 3.0 + 1.0;
            (human + 3.0 * next(), human)
        })
        .unzip()
}

fn correlations(criterion: &mut Criterion) {
    for (n, grades) in [100, 10_000, 1_000_000].into_iter().flat_map(|n| [(n, true), (n, false)]) {
        let (judge, human) = columns(n, grades);
        let mut group = criterion.benchmark_group(if grades { n.to_string() } else { format!("{n} without ties") });
        if n == 1_000_000 {
            group.sample_size(10);
        }
        group.bench_function("pearson", |b| b.iter(|| pearson(black_box(&judge), black_box(&human))));
        group.bench_function("spearman", |b| b.iter(|| spearman(black_box(&judge), black_box(&human))));
        group.bench_function("kendall", |b| {
            b.iter(|| kendall_tau_b(black_box(&judge), black_box(&human), KendallTest::Auto));
        });
    }
}

fn resamples(criterion: &mut Criterion) {
    let (judge, human) = columns(2_000, true);
    let mut group = criterion.benchmark_group("bootstrap");
    group.sample_size(10);
    group.bench_function("spearman, 10000 resamples of 2000", |b| {
        b.iter(|| {
            let ranked = RankedPair::new(black_box(&judge), black_box(&human))?;
            Bootstrap::default().interval(ranked.len(), |rows| ranked.spearman(rows))
        });
    });
}

criterion_group!(benches, correlations, resamples);
criterion_main!(benches);
