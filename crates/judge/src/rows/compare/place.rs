//! What the place that is shown first adds to a judge's log-odds, learned from its verdicts on pairs that nobody needs to have graded.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use judge_core::ModelInfo;
use judge_data::{OrderReading, Rows, RunRecord, Settings};
use judge_metrics::preference::{PairReading, place_offset, place_pull};

use judge_cli::judge_record::{other_judge, other_model, run_record};
use judge_cli::terminal::console::{counted, tell, usage};

/// A place offset, and the judge that it is of.
pub(super) struct Place {
    path: PathBuf,
    /// In nats.
    pub(super) offset: f64,
    record: RunRecord,
}

impl Place {
    /// Of finished rows of `judge compare`; rows without probabilities teach nothing.
    pub(super) fn learned(path: &Path) -> Result<Self> {
        let record = run_record("--place", path, "which judge gave these verdicts")?;
        if record.setting("place_offset").is_some() {
            let file = path.display();
            return Err(usage(format!(
                "--place: {file} is corrected already; name verdicts that were read without --place"
            )));
        }
        let (mut pulls, mut rows, mut both) = (Vec::new(), 0_usize, 0_usize);
        for row in Rows::open(path)? {
            let orders = OrderReading::of_row(&row?)?;
            rows += 1;
            let read = orders.iter().map(|order| order.probabilities).collect::<Option<Vec<_>>>();
            let readings = read.unwrap_or_default().into_iter();
            let readings: Vec<PairReading> = readings
                .map(|p| PairReading::from_probabilities(p.first, p.second, p.tie))
                .collect::<Result<_, _>>()?;
            both += usize::from(readings.len() == 2);
            pulls.extend(place_pull(&readings));
        }
        let (file, n) = (path.display(), pulls.len());
        if n == 0 {
            bail!(
                "--place: none of the {rows} rows of {file} has probabilities, as `judge compare --verdict logits` leaves them"
            );
        }
        let offset = place_offset(&pulls).with_context(|| format!("the place offset of {file}"))?;
        let orders =
            if both == n { "both orders" } else { "one order, as if neither place had the better response more often" };
        tell(format_args!("place offset {offset:.3} nats, learned on {} in {orders}", counted(n, "pair")));
        Ok(Self { path: path.to_path_buf(), offset, record })
    }

    /// That these settings are of the same judge.
    pub(super) fn check_judge(&self, settings: &Settings) -> Result<()> {
        let Some(difference) = other_judge(&self.record.settings, settings) else { return Ok(()) };
        let file = self.path.display();
        bail!("--place: {file} has verdicts of another judge: {difference}; judge pairs as here first")
    }

    /// That the model is the same.
    pub(super) fn check_model(&self, model: &ModelInfo) -> Result<()> {
        match other_model(self.record.model.as_ref(), model) {
            None => Ok(()),
            Some(name) => {
                let file = self.path.display();
                bail!(
                    "--place: {file} has verdicts of {name}, here it is {}; the place of another model adds another amount",
                    model.name
                )
            }
        }
    }
}
