//! Who wins: win rates and strengths from pairwise verdicts.

mod bradley_terry;
mod win_rate;

pub use bradley_terry::{BradleyTerry, FittedBradleyTerry, TieModel};
pub use win_rate::{TieCredit, WinRecord, win_records};
