//! `judge probe`: small classifiers on the states of a model (INSPECTOR).

pub(crate) mod apply;
pub(crate) mod evaluate;
pub(crate) mod filter;
pub(crate) mod import;
pub(crate) mod train;

use anyhow::Result;
use clap::Subcommand;

/// What is done with probes.
#[derive(Subcommand)]
pub(crate) enum Probe {
    Train(Box<train::Cli>),
    Import(Box<import::Cli>),
    Apply(Box<apply::Cli>),
    Evaluate(Box<evaluate::Cli>),
    Filter(Box<filter::Cli>),
}

impl Probe {
    pub(crate) fn run(&self) -> Result<()> {
        match self {
            Self::Train(cli) => train::run(cli),
            Self::Import(cli) => import::run(cli),
            Self::Apply(cli) => apply::run(cli),
            Self::Evaluate(cli) => evaluate::run(cli),
            Self::Filter(cli) => filter::run(cli),
        }
    }
}
