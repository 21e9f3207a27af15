//! Agreement of raters.

use judge_metrics::agreement::{
    AgreementWeights, AlternativeAnnotatorTest, ConfusionMatrix, IntraclassCorrelations, IntraclassForm, Measurement,
    MixedRatings, RatingTable, krippendorff_alpha,
};
use judge_metrics::{Error, Estimate};

use crate::draw::Draw;
use crate::simulations::{LEVEL, Simulation, holds, simulation};

pub(crate) fn raters(n: usize) -> Vec<Simulation> {
    type Form = fn(&IntraclassCorrelations) -> Result<Estimate, Error>;
    let icc = |form: Form, spread: f64, truth: f64| {
        move |draw: &mut Draw, n: usize| {
            let ratings = rated::<3>(draw, n, spread);
            Ok(holds(form(&IntraclassCorrelations::new(&ratings)?)?.interval(LEVEL)?, truth))
        }
    };
    vec![
        simulation("ICC(1), 3 raters", n, icc(IntraclassCorrelations::one_way, 0.0, 0.8)),
        simulation("ICC(A,1), 3 raters, Satterthwaite", n, icc(IntraclassCorrelations::agreement, 0.5, 4.0 / 5.25)),
        simulation("ICC(A,1), 3 raters, profile likelihood", n, profile::<3>),
        simulation("ICC(A,1), 2 raters, Satterthwaite", n, |draw, n| {
            let ratings = rated::<2>(draw, n, 0.5);
            Ok(holds(IntraclassCorrelations::new(&ratings)?.agreement()?.interval(LEVEL)?, 4.0 / 5.25))
        }),
        simulation("ICC(A,1), 2 raters, profile likelihood", n, profile::<2>),
        simulation("ICC(C,1), 3 raters", n, icc(IntraclassCorrelations::consistency, 0.5, 0.8)),
        simulation("ICC(C,k), 3 raters", n, icc(IntraclassCorrelations::mean_consistency, 0.5, 12.0 / 13.0)),
        simulation("Krippendorff's alpha of .55, nominal, 2 raters", n, |draw, n| {
            let (first, second) = three_labels(draw, n);
            let rating = |label: usize| Some(label as f64);
            let ratings: Vec<[Option<f64>; 2]> =
                first.into_iter().zip(second).map(|(a, b)| [rating(a), rating(b)]).collect();
            Ok(holds(krippendorff_alpha(&ratings, Measurement::Nominal)?.interval(LEVEL)?, 0.55))
        }),
        simulation("Krippendorff's alpha of .8, numbers, 3 raters, a fifth missing", n, |draw, n| {
            let ratings: Vec<[Option<f64>; 3]> = (0..n)
                .map(|_| {
                    let subject = 2.0 * draw.normal();
                    std::array::from_fn(|_| (!draw.chance(0.2)).then(|| subject + draw.normal()))
                })
                .collect();
            Ok(holds(krippendorff_alpha(&ratings, Measurement::Interval)?.interval(LEVEL)?, 0.8))
        }),
        simulation("Fleiss' kappa of .55, 3 raters", n, |draw, n| {
            // Each says the right one of three labels with probability p, else either other: two agree with p² + (1 − p)²/2.
            let right = (1.0 + 2.0 * 0.55_f64.sqrt()) / 3.0;
            let ratings: Vec<[Option<usize>; 3]> = (0..n)
                .map(|_| {
                    let label = draw.category(&[1.0 / 3.0; 3]);
                    std::array::from_fn(|_| Some((label + draw.category(&answers(right))) % 3))
                })
                .collect();
            Ok(holds(RatingTable::new(&[0, 1, 2], &ratings)?.fleiss_kappa()?.interval(LEVEL)?, 0.55))
        }),
        simulation("Cohen's kappa of .55, large sample", n, |draw, n| {
            let (first, second) = three_labels(draw, n);
            let kappa =
                ConfusionMatrix::new(vec![0, 1, 2], &first, &second)?.cohen_kappa(&AgreementWeights::Identity)?;
            Ok(holds(kappa.interval(LEVEL)?, 0.55))
        }),
        simulation("Gwet's AC1 of .55, Student t", n, |draw, n| {
            let (first, second) = three_labels(draw, n);
            let ratings: Vec<[Option<usize>; 2]> =
                first.into_iter().zip(second).map(|(a, b)| [Some(a), Some(b)]).collect();
            let found = RatingTable::new(&[0, 1, 2], &ratings)?.gwet(&AgreementWeights::Identity)?;
            Ok(holds(found.interval(LEVEL)?, 0.55))
        }),
        simulation("Gwet's AC1 of .87, one label common, Student t", n, |draw, n| {
            // Nine of ten are yes; the other rater says the same nine times in ten.
            let ratings: Vec<[Option<bool>; 2]> = (0..n)
                .map(|_| {
                    let yes = draw.chance(0.9);
                    [Some(yes), Some(yes == draw.chance(0.9))]
                })
                .collect();
            let yes: f64 = f64::midpoint(0.9, 0.9 * 0.9 + 0.1 * 0.1);
            let chance = 2.0 * yes * (1.0 - yes);
            let found = RatingTable::new(&[false, true], &ratings)?.gwet(&AgreementWeights::Identity)?;
            Ok(holds(found.interval(LEVEL)?, (0.9 - chance) / (1.0 - chance)))
        }),
        simulation("alternative annotator: a person's advantage over a judge, Student t", n, move |draw, n| {
            let label = |draw: &mut Draw, right: f64| draw.category(&answers(right));
            let annotations: Vec<[Option<usize>; 3]> =
                (0..n).map(|_| std::array::from_fn(|_| Some(label(draw, PERSON)))).collect();
            let judge: Vec<Option<usize>> = (0..n).map(|_| Some(label(draw, JUDGE))).collect();
            let settings = AlternativeAnnotatorTest { min_items: 2, ..AlternativeAnnotatorTest::default() };
            let found = settings.of_labels(&judge, &annotations)?;
            Ok(holds(found.annotators[0].difference.interval(LEVEL)?, advantage()))
        }),
    ]
}

/// Subjects of variance 4 rated by raters with variance 1 of their own each time; the raters' levels have `spread`.
fn rated<const K: usize>(draw: &mut Draw, n: usize, spread: f64) -> Vec<[f64; K]> {
    let levels: [f64; K] = std::array::from_fn(|_| spread * draw.normal());
    let subject = |draw: &mut Draw| {
        let subject = 2.0 * draw.normal();
        levels.map(|level| subject + level + draw.normal())
    };
    (0..n).map(|_| subject(draw)).collect()
}

/// Of agreement, as reports have it: down to the closed form's estimate where that is lower.
fn profile<const K: usize>(draw: &mut Draw, n: usize) -> Result<bool, Error> {
    let ratings = rated::<K>(draw, n, 0.5);
    let given: Vec<Vec<Option<f64>>> = ratings.iter().map(|row| row.iter().copied().map(Some).collect()).collect();
    let interval = MixedRatings::new(&given)?.intraclass(IntraclassForm::Agreement, LEVEL)?.interval;
    Ok(holds(interval, 4.0 / 5.25))
}

/// Three labels as likely; the other rater says the same in 70 of 100, else either of the others.
pub(crate) fn three_labels(draw: &mut Draw, n: usize) -> (Vec<usize>, Vec<usize>) {
    (0..n)
        .map(|_| {
            let label = draw.category(&[1.0 / 3.0; 3]);
            let other = if draw.chance(0.7) { label } else { (label + 1 + usize::from(draw.chance(0.5))) % 3 };
            (label, other)
        })
        .unzip()
}

/// How often a person and the judge give the right one of three labels.
const PERSON: f64 = 0.8;
const JUDGE: f64 = 0.7;

/// Chances of the right label, which is the first, and of either other.
fn answers(right: f64) -> [f64; 3] {
    [right, (1.0 - right) / 2.0, (1.0 - right) / 2.0]
}

/// The chance that a person agrees with the two others more than the judge does, less that of the opposite: over all that four can say.
fn advantage() -> f64 {
    let (person, judge) = (answers(PERSON), answers(JUDGE));
    let mut advantage = 0.0;
    for (a, by_person) in person.iter().enumerate() {
        for (j, by_judge) in judge.iter().enumerate() {
            for (b, second) in person.iter().enumerate() {
                for (c, third) in person.iter().enumerate() {
                    let agrees = |label: usize| i32::from(label == b) + i32::from(label == c);
                    let sign = (agrees(a) - agrees(j)).signum();
                    advantage += f64::from(sign) * by_person * by_judge * second * third;
                }
            }
        }
    }
    advantage
}
