//! What a service bounds.

use std::time::Duration;

use clap::Args;
use clap::builder::TypedValueParser as _;
use judge_cli::args::numbers::within;

use super::shares::Percent;

/// The most that a limit may be: what a count of places can hold.
const MOST: u64 = 1 << 28;

/// The longest time that a limit may be, in seconds.
const DAY: u64 = 86_400;

/// The bounds. What is said of each is its help.
#[derive(Args, Clone, Debug)]
pub(super) struct Limits {
    /// At most this many requests wait or are judged at once; others get 429
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = within::<usize>(1, MOST), help_heading = "Limits")]
    pub(super) queue: usize,
    /// Their bodies have at most this many bytes together; others get 429
    #[arg(long, default_value_t = 1 << 26, value_name = "BYTES", value_parser = within::<usize>(1, MOST), help_heading = "Limits")]
    pub(super) queue_bytes: usize,
    /// One client, which is an address, has at most this many per cent of connections, requests and bytes that wait, and of the model; behind
    /// a proxy, 100
    #[arg(long, default_value = "50", value_name = "PERCENT", value_parser = within::<u8>(1, 100).map(Percent), help_heading = "Limits")]
    pub(super) client_share: Percent,
    /// At most this many connections are open at once; others wait
    #[arg(long, default_value_t = 512, value_name = "N", value_parser = within::<usize>(1, MOST), help_heading = "Limits")]
    pub(super) connections: usize,
    /// A body has at most this many bytes; a longer one gets 413
    #[arg(long, default_value_t = 1 << 20, value_name = "BYTES", value_parser = within::<usize>(1, MOST), help_heading = "Limits")]
    pub(super) max_body: usize,
    /// The state of a request has at most this many bytes, counted once for each question, or for each criterion of a checklist; a longer
    /// one gets 413
    #[arg(long, default_value_t = 1 << 23, value_name = "BYTES", value_parser = within::<usize>(1, MOST), help_heading = "Limits")]
    pub(super) max_prompt_bytes: usize,
    /// An answer takes at most this long once the request was read; then it is 504
    #[arg(long, default_value = "60", value_name = "SECONDS", value_parser = within::<u64>(1, DAY).map(Duration::from_secs), help_heading = "Limits")]
    pub(super) timeout: Duration,
    /// A client may take this long to send the head of a request, as long again for its body, and to take some of an answer
    #[arg(long, default_value = "15", value_name = "SECONDS", value_parser = within::<u64>(1, DAY).map(Duration::from_secs), help_heading = "Limits")]
    pub(super) read_timeout: Duration,
}
