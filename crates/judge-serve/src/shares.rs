//! What a service has so much of, and that no client gets more of than its share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Who asks, by the address of the connection: of IPv6 the network of 64 bits, in which one machine has as many addresses as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Client(u64);

impl Client {
    pub(super) fn of(address: IpAddr) -> Self {
        // No IPv6 network in use begins like what an IPv4 address becomes here.
        let of_v4 = |bits: u32| Self(0xffff << 32 | u64::from(bits));
        match address.to_canonical() {
            IpAddr::V4(address) => of_v4(address.to_bits()),
            IpAddr::V6(address) => Self((address.to_bits() >> 64) as u64),
        }
    }

    /// As a source of a [`JudgeQueue`](judge_core::runner::JudgeQueue).
    pub(super) fn number(self) -> u64 {
        self.0
    }
}

/// The part of a whole that one client may have at once, in per cent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Percent(pub(super) u8);

impl Percent {
    /// Of so many; at least 1 of a whole that is not 0.
    pub(super) fn of(self, whole: usize) -> usize {
        let part = (whole as u128 * u128::from(self.0)).div_ceil(100);
        usize::try_from(part).unwrap_or(whole)
    }
}

/// Why there are no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// Everybody together has all of them.
    OfAll(usize),
    /// This client has its share.
    OfShare(usize),
}

impl Lack {
    /// Of what there are no more, for the client.
    pub(super) fn of(self, what: &str) -> String {
        match self {
            Self::OfAll(most) => format!("all {most} {what} are taken"),
            Self::OfShare(most) => format!("this client has all {most} {what} that one client may have"),
        }
    }
}

/// A number of things of which each client gets its share: had at once or not at all, or waited for, first in the client's own line, within
/// its share, and then in everybody's.
pub(super) struct Lines {
    all: Arc<Semaphore>,
    most: usize,
    of_one: usize,
    clients: Mutex<HashMap<Client, Weak<Semaphore>>>,
}

/// Some of them, until this is dropped.
pub(super) struct Held {
    all: OwnedSemaphorePermit,
    own: OwnedSemaphorePermit,
}

impl Held {
    /// Takes more of the same client to these.
    pub(super) fn add(&mut self, more: Self) {
        self.all.merge(more.all);
        self.own.merge(more.own);
    }
}

impl Lines {
    pub(super) fn new(most: usize, share: Percent) -> Self {
        let of_one = share.of(most);
        Self { all: Arc::new(Semaphore::new(most)), most, of_one, clients: Mutex::default() }
    }

    /// Waits for so many, or for as many as a client may have at all.
    pub(super) async fn take(&self, client: Client, number: usize) -> Result<Held, AcquireError> {
        let number = u32::try_from(number.min(self.of_one)).unwrap_or(u32::MAX);
        let own = self.line(client).acquire_many_owned(number).await?;
        let all = Arc::clone(&self.all).acquire_many_owned(number).await?;
        Ok(Held { all, own })
    }

    /// So many, if there are as many now.
    pub(super) fn try_take(&self, client: Client, number: usize) -> Result<Held, Lack> {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        // Taken before the client's share is known: the service has one thread, so nobody else finds them gone if there is no share.
        let all = Arc::clone(&self.all).try_acquire_many_owned(number).map_err(|_| Lack::OfAll(self.most))?;
        let own = self.line(client).try_acquire_many_owned(number).map_err(|_| Lack::OfShare(self.of_one))?;
        Ok(Held { all, own })
    }

    /// How many are held.
    pub(super) fn held(&self) -> usize {
        self.most - self.all.available_permits()
    }

    fn line(&self, client: Client) -> Arc<Semaphore> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = clients.get(&client).and_then(Weak::upgrade) {
            return line;
        }
        clients.retain(|_, line| line.strong_count() > 0);
        let line = Arc::new(Semaphore::new(self.of_one));
        clients.insert(client, Arc::downgrade(&line));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str) -> Client {
        Client::of(address.parse().expect("an address"))
    }

    #[test]
    fn one_client_gets_its_share_and_no_more() {
        let lines = Lines::new(5, Percent(50));
        let (a, b) = (client("10.0.0.1"), client("10.0.0.2"));
        let mut taken: Vec<Held> = (0..3).map(|_| lines.try_take(a, 1).expect("a place")).collect();
        assert_eq!(lines.try_take(a, 1).err(), Some(Lack::OfShare(3)));
        taken.extend((0..2).map(|_| lines.try_take(b, 1).expect("a place")));
        assert_eq!(lines.try_take(b, 1).err(), Some(Lack::OfAll(5)));
        taken.truncate(1);
        assert_eq!(lines.held(), 1);
        assert_eq!(lines.try_take(a, 3).err(), Some(Lack::OfShare(3)));
        taken[0].add(lines.try_take(a, 2).expect("the rest of its share"));
        assert_eq!(lines.held(), 3);
        taken.clear();
        assert_eq!(lines.held(), 0);
        drop(lines.try_take(client("10.0.0.3"), 1).expect("a place"));
        assert_eq!(lines.clients.lock().expect("one thread").len(), 1, "clients that are gone are forgotten");
        assert!(Lines::new(1, Percent(1)).try_take(a, 1).is_ok());
    }

    #[test]
    fn a_client_is_an_address_or_a_network() {
        assert_eq!(client("::ffff:10.0.0.1"), client("10.0.0.1"));
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:2"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_ne!(client("::1"), client("127.0.0.1"));
    }

    #[test]
    fn lines_are_of_clients() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let lines = Arc::new(Lines::new(4, Percent(50)));
            let (a, b) = (client("10.0.0.1"), client("10.0.0.2"));
            // More than a share is a share.
            let held = lines.take(a, 100).await.expect("its share");
            assert_eq!(lines.held(), 2);
            let next = tokio::spawn({
                let lines = Arc::clone(&lines);
                async move { lines.take(a, 1).await.is_ok() }
            });
            tokio::task::yield_now().await;
            assert!(!next.is_finished());
            let other = lines.take(b, 2).await.expect("nobody is before it");
            drop(held);
            assert!(next.await.expect("no panic"));
            drop(other);
            assert_eq!(lines.held(), 0);
        });
    }
}
