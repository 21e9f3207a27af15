//! People among themselves: the ceiling of any judge, and whether the judge may take the place of one of them.
//!
//! A rater is a place in `ComparedItem::human`, the same person in every row. Rows may lack ratings. Where one does, intraclass
//! correlations are those of a mixed model; Krippendorff's alpha, the ceiling and the alternative annotator test take what is there.

use std::cell::LazyCell;

use super::collector::{Collector, Items};
use super::numbers::{alphas, alphas_of_texts, intraclass};
use super::{ComparedItem, Labels, Rating, Reported};
use crate::agreement::{
    AgreementWeights, CountedSubjects, HumanCeiling, IntraclassForm, ItemCeiling, Measurement, MixedRatings, closeness,
    share_of_equals,
};
use crate::estimate::{NOT_NEGATIVE, SHARE};
use crate::{Error, Estimate};

/// What says whether the judge may take the place of a rater.
pub(super) const ALTERNATIVE: [&str; 2] = ["alternative_winning_rate", "alternative_advantage"];

/// The judge and each rater against the other raters, by one measure: the mean share of rows with the label of most of them, or the mean
/// distance from their mean.
pub(super) const AGAINST_REST: [&str; 3] = ["against_rest_judge", "against_rest_human", "against_rest_difference"];

/// What several raters define.
pub(super) const OF_RATERS: [&str; 9] = [
    "human_krippendorff_alpha_nominal",
    "human_krippendorff_alpha_ordinal",
    "human_krippendorff_alpha_interval",
    "human_icc_1",
    "human_icc_a1",
    "human_icc_c1",
    "human_fleiss_kappa",
    "human_gwet_ac1",
    "human_gwet_ac2",
];

/// Nothing is reported of rows with one rater each.
pub(super) fn compare(
    found: &mut Collector<'_>,
    rows: &[&ComparedItem],
    numeric: bool,
    labels: Result<&Labels, &String>,
) {
    let k = rows.iter().map(|row| row.human.len()).max().unwrap_or(0);
    if k < 2 {
        return;
    }
    let rating = |row: &&ComparedItem, rater: usize| row.human.get(rater).cloned().flatten();
    let all: Vec<Vec<Option<Rating>>> =
        rows.iter().map(|row| (0..k).map(|rater| rating(row, rater)).collect()).collect();
    if numeric {
        let of_row = |row: &&ComparedItem| (0..k).map(|rater| rating(row, rater)?.number()).collect();
        let ratings: Vec<Vec<Option<f64>>> = rows.iter().map(of_row).collect();
        let judge: Vec<Option<f64>> = rows.iter().map(|row| row.predicted.number()).collect();
        alternative(found, k, &judge, &ratings, closeness, |rating| rating.abs());
        against_rest(found, &judge, &ratings, HumanCeiling::of_ratings, NOT_NEGATIVE);
        alphas(found, "human_", &ratings, [labels.err().map(String::as_str), None, None]);
        let complete: Option<Vec<Vec<f64>>> = ratings.iter().map(|row| row.iter().copied().collect()).collect();
        match complete {
            Some(ratings) => intraclass(found, "human_", &ratings),
            None => with_gaps(found, &ratings),
        }
    } else {
        let mut names: Vec<String> =
            rows.iter().flat_map(|row| row.ratings().chain([&row.predicted])).map(Rating::label).collect();
        names.sort();
        names.dedup();
        let place = |rating: Rating| names.binary_search(&rating.label()).ok();
        let of_row = |row: &&ComparedItem| (0..k).map(|rater| place(rating(row, rater)?)).collect();
        let votes: Vec<Vec<Option<usize>>> = rows.iter().map(of_row).collect();
        let judge: Vec<Option<usize>> = rows.iter().map(|row| place(row.predicted.clone())).collect();
        alternative(found, k, &judge, &votes, share_of_equals, |_| 0.0);
        against_rest(found, &judge, &votes, HumanCeiling::of_labels, SHARE);
        alphas_of_texts(found, "human_", &all, labels);
    }
    among_people(found, &all, labels);
}

/// Intraclass correlations of rows that lack ratings. The likelihood takes rows as independent.
fn with_gaps(found: &mut Collector<'_>, ratings: &[Vec<Option<f64>>]) {
    let forms = [IntraclassForm::OneWay, IntraclassForm::Agreement, IntraclassForm::Consistency];
    let model = MixedRatings::new(ratings);
    for (name, form) in OF_RATERS[3..6].iter().zip(forms) {
        if !found.starts(name) || found.refuses(name) {
            continue;
        }
        let fitted = model.as_ref().map_err(Error::clone).and_then(|model| model.intraclass(form, found.level()));
        let known = fitted.map(|fitted| match found.has_clusters() {
            true => Reported::alone(
                fitted.estimate,
                "REML; no interval: its likelihood takes rows as independent".to_owned(),
            ),
            false => Reported {
                interval: Some(fitted.interval),
                ..Reported::alone(fitted.estimate, "REML, profile likelihood".to_owned())
            },
        });
        found.add(name, known);
    }
}

/// Agreement of people's labels beyond chance, numbers or texts.
fn among_people(found: &mut Collector<'_>, ratings: &[Vec<Option<Rating>>], labels: Result<&Labels, &String>) {
    const NAMES: [&str; 3] = ["human_fleiss_kappa", "human_gwet_ac1", "human_gwet_ac2"];
    let placed = labels.map_err(String::clone).and_then(|labels| {
        let of_row = |row: &Vec<Option<Rating>>| {
            row.iter().map(|rating| rating.as_ref().map(|rating| labels.place(rating)).transpose()).collect()
        };
        Ok((labels, ratings.iter().map(of_row).collect::<Result<Vec<Vec<Option<usize>>>, String>>()?))
    });
    let (labels, votes) = match placed {
        Ok(placed) => placed,
        Err(reason) => return found.all_undefined(&NAMES, &reason),
    };
    let counted = match CountedSubjects::new(&labels.indices(), &votes) {
        Ok(counted) => counted,
        Err(error) => return found.all_undefined(&NAMES, &error.to_string()),
    };
    let [fleiss, ac1, ac2] = NAMES;
    found.closed(fleiss, |rows| counted.table(rows)?.fleiss_kappa(), votes.len());
    let places = |row: &Vec<Option<usize>>| row.iter().map(|vote| vote.map(|place| place as f64)).collect();
    let places: Vec<Vec<Option<f64>>> = votes.iter().map(places).collect();
    found.retest(fleiss, |test| test.alpha(&places, Measurement::Nominal));
    found.closed(ac1, |rows| counted.table(rows)?.gwet(&AgreementWeights::Identity), votes.len());
    match labels.values() {
        Some(values) => {
            let weights = AgreementWeights::QuadraticOf(values.to_vec());
            found.closed(ac2, |rows| counted.table(rows)?.gwet(&weights), votes.len());
        }
        None => found.undefined(ac2, "the labels are not numbers, nor named in their order"),
    }
}

/// May the judge take the place of a rater? Of three raters or more, as its authors ask.
fn alternative<T: Copy + Sync>(
    found: &mut Collector<'_>,
    k: usize,
    judge: &[Option<T>],
    ratings: &[Vec<Option<T>>],
    score: fn(&T, &[&T]) -> f64,
    size: fn(&T) -> f64,
) {
    if k < 3 {
        return found.all_undefined(&ALTERNATIVE, "the alternative annotator test asks for three raters or more");
    }
    let [winning_rate, advantage] = ALTERNATIVE;
    let settings = found.alternative;
    // Once for both.
    let scored = LazyCell::new(|| settings.scored(judge, ratings, score, size));
    if found.has_clusters() {
        found.undefined(winning_rate, "rows come in clusters, and this test takes them as independent");
    } else if found.starts(winning_rate) {
        let tested = scored.as_ref().map_err(Error::clone).and_then(|scored| settings.of_scored(scored));
        let known = tested.and_then(|tested| {
            let share = tested.winning_rate();
            let more = match tested.skipped.len() {
                0 => String::new(),
                few => format!("; {few} more have fewer than {} rows", settings.min_items),
            };
            let (n, won) = (share.n, share.count);
            let method = format!("of {n} raters, {won} by Student t at epsilon {}{more}", settings.epsilon);
            Ok(Reported::alone(share.estimate()?, method))
        });
        found.add(winning_rate, known);
    }
    if found.starts(advantage) {
        match scored.as_ref().map(|scored| scored.advantages()) {
            Ok(of_all) => found.resample(advantage, None, |rows| of_all.advantage(rows), ratings.len()),
            Err(error) => found.add(advantage, Err(error.clone())),
        }
    }
}

/// A form of the ceiling: a judge's column and a row of ratings for each of its entries.
type Ceiling<T> = fn(&[Option<T>], &[Vec<Option<T>>]) -> Result<HumanCeiling, Error>;

/// How far the judge is from what people reach among themselves, by scores in `range`, which starts at 0.
fn against_rest<T: Copy + Sync>(
    found: &mut Collector<'_>,
    judge: &[Option<T>],
    ratings: &[Vec<Option<T>>],
    ceiling: Ceiling<T>,
    range: [f64; 2],
) {
    if !AGAINST_REST.iter().any(|name| found.starts(name)) {
        return;
    }
    let all = match ceiling(judge, ratings) {
        Ok(all) => all,
        Err(error) => return AGAINST_REST.iter().for_each(|name| found.add(name, Err(error.clone()))),
    };
    type Part = (Estimate, fn(&ItemCeiling) -> f64, [f64; 2]);
    let parts: [Part; 3] = [
        (all.judge, |item| item.judge, range),
        (all.people, |item| item.people, range),
        (all.difference, |item| item.judge - item.people, [-range[1], range[1]]),
    ];
    found.on_rows(&all.items.iter().map(|item| item.item).collect::<Vec<_>>(), |found| {
        for (name, (whole, of_item, range)) in AGAINST_REST.into_iter().zip(parts) {
            let items: Vec<f64> = all.items.iter().map(of_item).collect();
            let is_difference = range[0] < 0.0;
            let items =
                if is_difference { Items::differences(&items, range, None) } else { Items::within(&items, range) };
            found.mean(name, &items, || Ok(whole.within(range)));
        }
    });
}
