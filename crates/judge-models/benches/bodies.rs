//! Each fast body of a block beside the composed operations that it replaces:
//! `cargo bench -p judge-models --features bench --bench bodies`.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use judge_models::bodies::bodies;

fn compare(criterion: &mut Criterion) {
    for body in bodies() {
        let mut group = criterion.benchmark_group(body.name);
        let (mut fast, mut composed) = (body.fast, body.composed);
        group.bench_function(BenchmarkId::new("fast", body.rows), |bencher| bencher.iter(&mut fast));
        group.bench_function(BenchmarkId::new("composed", body.rows), |bencher| bencher.iter(&mut composed));
        group.finish();
    }
}

criterion_group!(benches, compare);
criterion_main!(benches);
