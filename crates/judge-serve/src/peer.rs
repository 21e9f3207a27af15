//! The other end of a connection, and how requests know of it.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::Version;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::connection::ReadSide;
use super::shares::Client;

/// The status of a request whose client went away; not sent to anybody.
pub(super) const GONE: u16 = 499;

/// The client of a connection. Each request has it among its extensions.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) client: Client,
    pub(super) side: Arc<ReadSide>,
}

impl Peer {
    /// Returns once the client has gone, while its request, which was read, is being answered.
    ///
    /// A client that has gone and one that only sends no more look alike, until they are sent something: so the second one gets a
    /// `100 Continue` before its answer, which every client of HTTP/1.1 passes over. Those of HTTP/1.0 need not, and get their answer in any
    /// case.
    pub(super) async fn gone(&self, version: Version) {
        let stream: &TcpStream = self.side.reads.as_ref();
        match stream.peek(&mut [0]).await {
            Ok(0) if version == Version::HTTP_11 && !self.side.is_stalled.load(Ordering::Relaxed) => {
                if stream.try_write(b"HTTP/1.1 100 Continue\r\n\r\n").is_err_and(|error| is_over(&error)) {
                    return;
                }
            }
            // It has sent the next request already, or cannot be asked.
            Ok(_) => {}
            Err(_) => return,
        }
        if stream.ready(Interest::ERROR).await.is_err() {
            pending::<()>().await;
        }
    }
}

fn is_over(error: &io::Error) -> bool {
    error.kind() != io::ErrorKind::WouldBlock
}
