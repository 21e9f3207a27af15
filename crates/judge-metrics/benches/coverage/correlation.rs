//! Correlations of normal populations.

use std::f64::consts::PI;

use judge_metrics::correlation::{
    DependentCorrelations, KendallTest, kendall_tau_b, partial_pearson, pearson, somers_d, spearman,
};

use crate::draw::Draw;
use crate::simulations::{LEVEL, Simulation, holds, simulation};

/// Spearman's and Kendall's correlation of a normal population whose Pearson correlation is ρ.
pub(crate) fn rank_truths(rho: f64) -> (f64, f64) {
    (6.0 / PI * (rho / 2.0).asin(), 2.0 / PI * rho.asin())
}

pub(crate) fn correlations(n: usize) -> Vec<Simulation> {
    const RHO: f64 = 0.6;
    let (rank, tau) = rank_truths(RHO);
    vec![
        simulation("Pearson, Fisher", n, |draw, n| {
            let (x, y) = draw.correlated(n, RHO);
            Ok(holds(pearson(&x, &y)?.interval(LEVEL)?, RHO))
        }),
        simulation("Spearman, Bonett-Wright", n, move |draw, n| {
            let (x, y) = draw.correlated(n, RHO);
            Ok(holds(spearman(&x, &y)?.interval(LEVEL)?, rank))
        }),
        simulation("Kendall, Fieller", n, move |draw, n| {
            let (x, y) = draw.correlated(n, RHO);
            Ok(holds(kendall_tau_b(&x, &y, KendallTest::Asymptotic)?.interval(LEVEL)?, tau))
        }),
        simulation("Somers' D, Goodman-Kruskal", n, move |draw, n| {
            let (x, y) = draw.correlated(n, RHO);
            Ok(holds(somers_d(&x, &y)?.interval(LEVEL)?, tau))
        }),
        simulation("difference of dependent correlations, Zou", n, |draw, n| {
            let (people, first, second) = two_judges(draw, n);
            let both = DependentCorrelations::of_columns(&people, &first, &second)?;
            Ok(holds(both.zou_interval(LEVEL)?, 0.2))
        }),
        simulation("partial Pearson correlation, two covariates, Fisher", n, |draw, n| {
            let (mut x, mut y) = draw.correlated(n, RHO);
            let covariates: [Vec<f64>; 2] = std::array::from_fn(|_| (0..n).map(|_| draw.normal()).collect());
            for row in 0..n {
                x[row] += covariates[0][row] - covariates[1][row];
                y[row] += 0.5 * covariates[0][row];
            }
            let partial = partial_pearson(&x, &y, &[&covariates[0], &covariates[1]])?;
            Ok(holds(partial.interval(LEVEL)?, RHO))
        }),
        simulation("difference of dependent correlations on Fisher's scale, Meng", n, |draw, n| {
            let (people, first, second) = two_judges(draw, n);
            let both = DependentCorrelations::of_columns(&people, &first, &second)?;
            Ok(holds(both.meng_interval(LEVEL)?, 0.7_f64.atanh() - 0.5_f64.atanh()))
        }),
    ]
}

/// Two judges of .7 and .5 with people, who share nothing but them.
fn two_judges(draw: &mut Draw, n: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let people: Vec<f64> = (0..n).map(|_| draw.normal()).collect();
    let mut judge =
        |rho: f64| -> Vec<f64> { people.iter().map(|x| rho * x + (1.0 - rho * rho).sqrt() * draw.normal()).collect() };
    let (first, second) = (judge(0.7), judge(0.5));
    (people, first, second)
}
