//! A connection that waits only so long for its client to take what is sent, and that ends so that the client gets its answer.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Sleep, sleep};

/// How long, at most, what a client still sends is read and dropped after its answer.
const LINGERS: Duration = Duration::from_secs(2);

/// A stream whose writes fail when none of what is sent was taken for a while: a client that stops reading would keep its connection, and
/// what it was to get, for ever. Reading is bounded where requests are read.
///
/// A client that is answered while it is still sending would see a broken connection instead of the answer, if that connection were closed. So
/// what it sends is then read and dropped until it ends, for a while.
pub(super) struct Connection {
    side: Arc<ReadSide>,
    writes: OwnedWriteHalf,
    limit: Duration,
    /// Since when nothing was taken, as the time at which that is too long.
    stalled: Option<Pin<Box<Sleep>>>,
    /// When what is still sent is no longer read.
    lingers: Option<Pin<Box<Sleep>>>,
}

/// The side of a connection that is read, with what is known of the connection besides what it carries.
pub(super) struct ReadSide {
    pub(super) reads: OwnedReadHalf,
    /// A request is answered before all of it was read.
    pub(super) is_left_unread: AtomicBool,
    /// Some of an answer waits for the client to take it.
    pub(super) is_stalled: AtomicBool,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, limit: Duration) -> Self {
        let (reads, writes) = stream.into_split();
        let side = ReadSide { reads, is_left_unread: AtomicBool::default(), is_stalled: AtomicBool::default() };
        Self { side: Arc::new(side), writes, limit, stalled: None, lingers: None }
    }

    pub(super) fn read_side(&self) -> Arc<ReadSide> {
        Arc::clone(&self.side)
    }

    /// Sends an answer, far smaller than what the system holds for a connection, to a request that nobody reads.
    pub(super) async fn refuse(&mut self, answer: &[u8]) {
        self.side.is_left_unread.store(true, Ordering::Relaxed);
        // A client that has gone needs none.
        let _ = poll_fn(|context| Pin::new(&mut *self).poll_write(context, answer)).await;
    }

    /// Ends the connection.
    pub(super) async fn end(mut self) {
        let _ = poll_fn(|context| Pin::new(&mut self).poll_shutdown(context)).await;
    }

    /// What a write came to, or that it took too long.
    fn in_time<T>(&mut self, context: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.side.is_stalled.store(done.is_pending(), Ordering::Relaxed);
        if done.is_ready() {
            self.stalled = None;
            return done;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let stream: &TcpStream = self.side.reads.as_ref();
        loop {
            ready!(stream.poll_read_ready(context))?;
            match stream.try_read(buffer.initialize_unfilled()) {
                Ok(length) => {
                    buffer.advance(length);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.writes).poll_write(context, bytes);
        self.in_time(context, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.writes).poll_write_vectored(context, parts);
        self.in_time(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.writes.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writes).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingers.is_none() {
            ready!(Pin::new(&mut self.writes).poll_shutdown(context))?;
            if !self.side.is_left_unread.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
        }
        let mut dropped = [0; 1 << 14];
        loop {
            let lingers = self.lingers.get_or_insert_with(|| Box::pin(sleep(LINGERS)));
            if lingers.as_mut().poll(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let mut buffer = ReadBuf::new(&mut dropped);
            match ready!(self.as_mut().poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn a_client_that_reads_nothing_is_waited_for_no_longer_than_the_limit() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
            let address = listener.local_addr().expect("an address");
            let mut client = TcpStream::connect(address).await.expect("a connection");
            let (stream, _) = listener.accept().await.expect("a client");
            let mut patient = Connection::new(stream, Duration::from_millis(50));
            let bytes = vec![0; 1 << 16];
            // Far more than the system's buffers hold.
            let write = async |patient: &mut Connection| {
                let mut sent = 0;
                while sent < 1 << 26 {
                    sent += poll_fn(|context| Pin::new(&mut *patient).poll_write(context, &bytes)).await?;
                }
                Ok::<_, io::Error>(sent)
            };
            let mut room = vec![0; 1 << 16];
            let read = async {
                for _ in 0..1 << 26 {
                    let mut buffer = ReadBuf::new(&mut room);
                    poll_fn(|context| Pin::new(&mut client).poll_read(context, &mut buffer)).await.expect("bytes");
                }
            };
            let sent = tokio::select! {
                sent = write(&mut patient) => sent,
                () = read => panic!("it was never sent"),
            };
            assert!(sent.is_ok(), "a client that reads gets all of it: {sent:?}");
            let error = write(&mut patient).await.expect_err("nobody reads");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }
}
