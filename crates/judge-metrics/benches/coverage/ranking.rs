//! Rankings from games, and win rates.

use judge_metrics::Error;
use judge_metrics::bias::length_controlled::LengthControlled;
use judge_metrics::preference::Preference;
use judge_metrics::ranking::{BradleyTerry, Comparison, Game, TieCredit, WinRecord};

use crate::draw::Draw;
use crate::simulations::{LEVEL, Simulation, holds, simulation};

const STRENGTHS: [f64; 4] = [0.6, 0.2, -0.2, -0.6];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const PAIRS: [(usize, usize); 6] = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
/// What one unit of the covariate adds.
const STYLE: f64 = 0.5;

pub(crate) fn rankings(n: usize) -> Vec<Simulation> {
    vec![
        simulation("difference of Bradley-Terry strengths, n games a pair", n, |draw, n| {
            let mut games = Vec::new();
            for (i, j) in PAIRS {
                for _ in 0..n {
                    let won = draw.chance(1.0 / (1.0 + (STRENGTHS[j] - STRENGTHS[i]).exp()));
                    let preference = if won { Preference::First } else { Preference::Second };
                    games.push(Comparison { items: [NAMES[i], NAMES[j]], preference });
                }
            }
            let fitted = BradleyTerry::default().fit(&games)?;
            Ok(holds(fitted.difference("a", "d")?.interval(LEVEL)?, 1.2))
        }),
        simulation("difference of Bradley-Terry strengths, a covariate, n questions of 6 games", n, |draw, n| {
            games(draw, n, |games| {
                Ok(holds(BradleyTerry::default().fit_games(games)?.difference("a", "d")?.interval(LEVEL)?, 1.2))
            })
        }),
        simulation("Bradley-Terry coefficient of a covariate, n questions of 6 games", n, |draw, n| {
            games(draw, n, |games| {
                Ok(holds(BradleyTerry::default().fit_games(games)?.coefficients()?[0].interval(LEVEL)?, STYLE))
            })
        }),
        simulation("win rate of .6 with ties, Student t", n, |draw, n| {
            let mut counts = [0; 3];
            (0..n).for_each(|_| counts[draw.category(&[0.5, 0.2, 0.3])] += 1);
            let record = WinRecord { wins: counts[0], ties: counts[1], losses: counts[2] };
            Ok(holds(record.interval(TieCredit::Half, LEVEL)?, 0.6))
        }),
        simulation("length-controlled win rate of .6, delta method", n, |draw, n| {
            let differences: Vec<f64> = (0..n).map(|_| draw.normal()).collect();
            let preferences: Vec<f64> = differences
                .iter()
                .map(|difference| f64::from(u8::from(draw.chance(logistic(1.5_f64.ln() + difference.tanh())))))
                .collect();
            let lengths: Vec<[f64; 2]> = differences.iter().map(|difference| [10.0 + difference, 10.0]).collect();
            let found = LengthControlled::default().fit(&preferences, &lengths, None)?;
            Ok(holds(found.win_rate.interval(LEVEL)?, 0.6))
        }),
    ]
}

fn logistic(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

/// One game of each pair on each of n questions. On half of the questions one draw decides all six games, so that they depend on each other
/// while each is won as often as it should be.
fn games(draw: &mut Draw, n: usize, holds: impl Fn(&[Game<'_>]) -> Result<bool, Error>) -> Result<bool, Error> {
    let questions: Vec<String> = (0..n).map(|question| question.to_string()).collect();
    let mut played = Vec::with_capacity(6 * n);
    for question in &questions {
        let common = draw.chance(0.5).then(|| draw.uniform());
        for (i, j) in PAIRS {
            let style = draw.normal();
            let chance = logistic(STRENGTHS[i] - STRENGTHS[j] + STYLE * style);
            let won = common.unwrap_or_else(|| draw.uniform()) < chance;
            played.push(([NAMES[i], NAMES[j]], f64::from(u8::from(won)), [style], question.as_str()));
        }
    }
    let games: Vec<Game<'_>> = played
        .iter()
        .map(|(items, preference, covariates, question)| Game {
            items: *items,
            preference: *preference,
            weight: 1.0,
            covariates,
            cluster: Some(question),
        })
        .collect();
    holds(&games)
}
