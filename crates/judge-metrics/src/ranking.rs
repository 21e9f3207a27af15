//! Who wins: win rates and strengths from pairwise verdicts, and which verdicts to ask for.

mod adaptive;
mod bradley_terry;
mod comparison;
mod win_rate;

pub use adaptive::{AdaptivePairing, Goal};
pub use bradley_terry::{BradleyTerry, FittedBradleyTerry, TieModel};
pub use comparison::Comparison;
pub use win_rate::{TieCredit, WinRecord, win_records};
