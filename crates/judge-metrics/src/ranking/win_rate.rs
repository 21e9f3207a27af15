use crate::estimate::SHARE;
use crate::means::sample_mean;
use crate::{Error, Interval, Proportion};

/// Wins, losses and ties of one item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WinRecord {
    /// Pairs won.
    pub wins: usize,
    /// Pairs tied.
    pub ties: usize,
    /// Pairs lost.
    pub losses: usize,
}

/// How much of a win a tie counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TieCredit {
    /// Half a win: MT-bench's adjusted win rate, AlpacaEval's, arenas'.
    Half,
    /// Nothing: it is as good as lost.
    Loss,
    /// It takes no part.
    Excluded,
}

impl WinRecord {
    /// Share of pairs won, in [0, 1].
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where no pair takes part.
    ///
    /// ```
    /// use judge_metrics::ranking::{TieCredit, WinRecord};
    ///
    /// let record = WinRecord { wins: 12, ties: 6, losses: 6 };
    /// assert_eq!(record.win_rate(TieCredit::Half)?, 0.625);
    /// let interval = record.interval(TieCredit::Half, 0.95)?;
    /// assert!(interval.low < 0.5 && interval.high < 0.81);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn win_rate(&self, ties: TieCredit) -> Result<f64, Error> {
        if ties == TieCredit::Half {
            let n = self.wins + self.ties + self.losses;
            if n == 0 {
                return Err(Error::Undefined { statistic: "win rate", reason: "no pair takes part" });
            }
            return Ok((self.wins as f64 + self.ties as f64 / 2.0) / n as f64);
        }
        self.proportion(ties).estimate()
    }

    /// Its interval: Wilson's where a pair is either won or not. Where ties are worth half the count is not binomial, and
    /// the interval is Student's t of the pairs' scores 1, ½ and 0, cut to [0, 1]. Pairs are taken as independent.
    ///
    /// # Errors
    ///
    /// [`Error::LevelOutOfRange`]; [`Error::Undefined`] where no pair takes part. With [`TieCredit::Half`] also where all pairs are tied:
    /// [`Error::TooFewItems`] of one, [`Error::Undefined`] up to five, [`Error::NoVariation`] of six or more.
    pub fn interval(&self, ties: TieCredit, level: f64) -> Result<Interval, Error> {
        if ties == TieCredit::Half && self.ties > 0 {
            let scores = [(1.0, self.wins), (0.5, self.ties), (0.0, self.losses)];
            let scores: Vec<f64> = scores.into_iter().flat_map(|(score, count)| vec![score; count]).collect();
            return sample_mean(&scores)?.within(SHARE).interval(level);
        }
        self.proportion(ties).wilson(level)
    }

    fn proportion(&self, ties: TieCredit) -> Proportion {
        let tied = if ties == TieCredit::Excluded { 0 } else { self.ties };
        Proportion { count: self.wins, n: self.wins + tied + self.losses }
    }
}
