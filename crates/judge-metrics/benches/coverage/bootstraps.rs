//! Bootstrap intervals of 1,000 resamples.

use judge_metrics::agreement::{Measurement, RatedUnits};
use judge_metrics::resampling::{Bootstrap, BootstrapMethod, RankedPair};

use crate::correlation::rank_truths;
use crate::draw::Draw;
use crate::simulations::{LEVEL, Simulation, holds, simulation};

pub(crate) fn bootstraps(n: usize) -> Vec<Simulation> {
    const RHO: f64 = 0.6;
    let (rank, _) = rank_truths(RHO);
    let settings = |method| Bootstrap { resamples: 1_000, level: LEVEL, seed: 0, method };
    let of_rank = move |method: BootstrapMethod| {
        move |draw: &mut Draw, n: usize| {
            let (x, y) = draw.correlated(n, RHO);
            let pair = RankedPair::new(&x, &y)?;
            Ok(holds(settings(method).interval(n, |rows| pair.spearman(rows))?.interval, rank))
        }
    };
    // A skewed population: the mean of a log-normal one.
    let of_mean = move |method: BootstrapMethod| {
        move |draw: &mut Draw, n: usize| {
            let x: Vec<f64> = (0..n).map(|_| (draw.normal() / 2.0).exp()).collect();
            let mean = |rows: &[usize]| Ok(rows.iter().map(|&row| x[row]).sum::<f64>() / rows.len() as f64);
            Ok(holds(settings(method).interval(n, mean)?.interval, 0.125_f64.exp()))
        }
    };
    let mut all = vec![
        simulation("Spearman, percentile bootstrap", n, of_rank(BootstrapMethod::Percentile)),
        simulation("Spearman, BCa bootstrap", n, of_rank(BootstrapMethod::BiasCorrectedAccelerated)),
        simulation("skewed mean, percentile bootstrap", n, of_mean(BootstrapMethod::Percentile)),
        simulation("skewed mean, BCa bootstrap", n, of_mean(BootstrapMethod::BiasCorrectedAccelerated)),
        simulation("Krippendorff's alpha of .6 (interval), bootstrap of units", n, move |draw, n| {
            // Of two columns of one mean and variance it is their correlation.
            let (x, y) = draw.correlated(n, RHO);
            let units = RatedUnits::new(&x.iter().zip(&y).map(|(&x, &y)| [Some(x), Some(y)]).collect::<Vec<_>>())?;
            let alpha = |rows: &[usize]| units.alpha(rows, Measurement::Interval);
            Ok(holds(settings(BootstrapMethod::Percentile).interval(n, alpha)?.interval, RHO))
        })
        .of_at_most(400),
    ];
    // Fewer than six questions have no bootstrap interval.
    if n >= 24 {
        all.push(simulation("mean of n/4 questions of 4 answers, clustered bootstrap", n, move |draw, n| {
            let questions: Vec<usize> = (0..n).map(|row| row / 4).collect();
            let of_question: Vec<f64> = (0..n.div_ceil(4)).map(|_| draw.normal()).collect();
            let x: Vec<f64> = questions.iter().map(|&question| of_question[question] + draw.normal()).collect();
            let mean = |rows: &[usize]| Ok(rows.iter().map(|&row| x[row]).sum::<f64>() / rows.len() as f64);
            Ok(holds(settings(BootstrapMethod::Percentile).clustered(&questions, mean)?.interval, 0.0))
        }));
    }
    all
}
