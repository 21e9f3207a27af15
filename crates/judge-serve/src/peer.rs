//! The other end of a connection, and how requests know of it.

use std::future::pending;
use std::io;
use std::sync::Arc;

use axum::Router;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper::{Request, Version};
use hyper_util::service::TowerToHyperService;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use super::connection::Marks;
use super::shares::Client;

/// The status of a request whose client went away; not sent to anybody.
pub(super) const GONE: u16 = 499;

/// The client of a connection. Each request has it among its extensions.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) client: Client,
    stream: Arc<OwnedReadHalf>,
    marks: Arc<Marks>,
}

impl Peer {
    pub(super) fn new(client: Client, stream: Arc<OwnedReadHalf>, marks: Arc<Marks>) -> Self {
        Self { client, stream, marks }
    }

    /// Says that a request is answered before all of it was read.
    pub(super) fn leave_unread(&self) {
        self.marks.leave_unread();
    }

    /// Returns once the client has gone, while its request, which was read, is being answered.
    ///
    /// A client that has gone and one that only sends no more look alike, until they are sent something: so the second one gets a
    /// `100 Continue` before its answer, which every client of HTTP/1.1 passes over. Those of HTTP/1.0 need not, and get their answer in any
    /// case.
    pub(super) async fn gone(&self, version: Version) {
        let stream: &TcpStream = (*self.stream).as_ref();
        match stream.peek(&mut [0]).await {
            Ok(0) if version == Version::HTTP_11 && !self.marks.is_stalled() => {
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

/// The routes for the requests of one connection.
pub(super) struct OfPeer {
    pub(super) routes: TowerToHyperService<Router>,
    pub(super) peer: Peer,
}

impl Service<Request<Incoming>> for OfPeer {
    type Response = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.peer.clone());
        self.routes.call(request)
    }
}
