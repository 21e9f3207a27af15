//! Who wins: win rates and strengths from pairwise verdicts, and which verdicts to ask for.

mod adaptive;
mod bradley_terry;
mod comparison;
mod fitted;
mod games;
mod win_rate;

pub use adaptive::{AdaptivePairing, Goal};
pub use bradley_terry::{BradleyTerry, TieModel};
pub use comparison::Comparison;
pub use fitted::FittedBradleyTerry;
pub use games::Game;
pub use win_rate::{TieCredit, WinRecord};
