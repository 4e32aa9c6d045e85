//! Connections that have not shown who they are. There is room for few of them, and always for one
//! more: the oldest one of the peer that has most of them makes way, once it had time to speak.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Maximum number of such connections per listener.
const MOST: usize = 256;
/// Maximum number of connections per listener that showed who they are; further ones stay strangers.
const KNOWN: usize = 512;

/// Time for which a connection may stay in any case: its request may have been sent and not yet been
/// read, as with 500 clients that come at once.
const GRACE: Duration = Duration::from_secs(2);

/// How often the runtime gets to read what has arrived before a connection is sent away.
const LOOKS: u32 = 3;

/// Where a connection comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Origin {
    /// Another end on TCP.
    Address(IpAddr),
    /// A process on this machine, if the system tells which.
    Process(Option<i32>),
}

/// The strangers at one listener.
#[derive(Debug)]
pub(super) struct Strangers {
    here: Arc<Here>,
    known: Arc<Semaphore>,
    next: u64,
    grace: Duration,
}

/// The strangers that are here, and the news that one of them is not any more.
#[derive(Debug, Default)]
struct Here {
    waiting: Mutex<BTreeMap<u64, Waiting>>,
    left: Notify,
}

impl Here {
    fn remove(&self, id: u64) {
        if lock(&self.waiting).remove(&id).is_some() {
            self.left.notify_one();
        }
    }
}

/// A connection that waits to be known.
#[derive(Debug)]
struct Waiting {
    origin: Origin,
    since: Instant,
    leave: Arc<Notify>,
}

impl Strangers {
    pub(super) fn new() -> Self {
        let known = Arc::new(Semaphore::new(KNOWN));
        Strangers { here: Arc::default(), known, next: 0, grace: GRACE }
    }

    /// Lets a connection in. If there is no room, another one is sent away as soon as one of them had
    /// its time.
    pub(super) async fn admit(&mut self, origin: Origin) -> Stranger {
        let mut looked = None;
        while let Some((id, since)) = self.in_the_way() {
            let until = since + self.grace;
            if Instant::now() < until {
                tokio::select! {
                    () = self.here.left.notified() => {}
                    () = tokio::time::sleep_until(until) => {}
                }
            } else if looked != Some(id) {
                // A busy runtime has not yet read what has arrived: it does so before it comes back.
                for _ in 0..LOOKS {
                    tokio::task::yield_now().await;
                }
                looked = Some(id);
            } else if let Some(gone) = lock(&self.here.waiting).remove(&id) {
                gone.leave.notify_one();
            }
        }
        let (id, leave) = (self.next, Arc::new(Notify::new()));
        self.next += 1;
        let waiting = Waiting { origin, since: Instant::now(), leave: leave.clone() };
        lock(&self.here.waiting).insert(id, waiting);
        let (here, room) = (self.here.clone(), self.known.clone());
        Stranger(Arc::new(Inner { id, here, leave, room, place: Mutex::default() }))
    }

    /// Returns the connection that has to make way, and when it came; `None` if there is room.
    fn in_the_way(&self) -> Option<(u64, Instant)> {
        let waiting = lock(&self.here.waiting);
        if waiting.len() < MOST { None } else { in_the_way(&waiting) }
    }
}

/// The oldest connection of the peer that has most of them, and when it came.
fn in_the_way(waiting: &BTreeMap<u64, Waiting>) -> Option<(u64, Instant)> {
    let mut counts: HashMap<Origin, usize> = HashMap::new();
    waiting.values().for_each(|one| *counts.entry(one.origin).or_default() += 1);
    let most = counts.values().copied().max()?;
    let (id, oldest) = waiting.iter().find(|(_, one)| counts[&one.origin] == most)?;
    Some((*id, oldest.since))
}

/// A connection that has not shown who it is. Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct Stranger(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: u64,
    here: Arc<Here>,
    leave: Arc<Notify>,
    room: Arc<Semaphore>,
    /// The place among those that are known.
    place: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Stranger {
    /// Notes that the connection has shown who it is: it is not sent away any more.
    pub(crate) fn is_known(&self) {
        let mut place = lock(&self.0.place);
        if place.is_none()
            && let Ok(permit) = self.0.room.clone().try_acquire_owned()
        {
            *place = Some(permit);
            self.0.here.remove(self.0.id);
        }
    }

    /// Returns when the connection has to make way for another one. One that shows who it is at the
    /// last moment stays: on a busy machine its request may have lain unread for all of its time.
    pub(super) async fn sent_away(&self) {
        loop {
            self.0.leave.notified().await;
            if lock(&self.0.place).is_none() {
                return;
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.here.remove(self.id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn has_to_go(stranger: &Stranger) -> bool {
        let mut sent_away = Box::pin(stranger.sent_away());
        sent_away.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    async fn admit(door: &mut Strangers, origin: Origin, count: usize) -> Vec<Stranger> {
        let mut admitted = Vec::new();
        for _ in 0..count {
            admitted.push(door.admit(origin).await);
        }
        admitted
    }

    #[tokio::test]
    async fn b_20_there_is_always_room_for_one_more_and_the_busiest_peer_makes_it() {
        let (slow, other) = ([127, 0, 0, 1], [10, 0, 0, 2]);
        let (slow, other) = (Origin::Address(slow.into()), Origin::Address(other.into()));
        let mut door = Strangers { grace: Duration::ZERO, ..Strangers::new() };
        let known = door.admit(slow).await;
        known.is_known();
        let single = door.admit(other).await;
        let mut slow_ones = admit(&mut door, slow, MOST - 1).await;
        assert!(slow_ones.iter().all(|one| !has_to_go(one)), "there was room for all of them");
        let late = door.admit(slow).await;
        assert!(has_to_go(&slow_ones.remove(0)), "the oldest one of the busiest peer goes");
        let stay = [&known, &single, &late].into_iter().chain(&slow_ones);
        assert_eq!(stay.filter(|one| has_to_go(one)).count(), 0);
        drop(slow_ones);
        let after = door.admit(slow).await;
        assert!(!has_to_go(&after) && !has_to_go(&late), "who left makes room");
    }

    #[tokio::test]
    async fn b_20_of_processes_that_have_one_each_the_oldest_makes_way() {
        let mut door = Strangers { grace: Duration::ZERO, ..Strangers::new() };
        let mut crowd = Vec::new();
        for pid in 0..256 {
            crowd.push(door.admit(Origin::Process(Some(pid))).await);
        }
        let person = door.admit(Origin::Process(Some(1000))).await;
        assert!(has_to_go(&crowd[0]) && !has_to_go(&person));
    }

    #[tokio::test]
    async fn b_18_who_is_heard_only_when_it_has_to_go_stays() {
        let ip = Origin::Address([127, 0, 0, 1].into());
        let mut door = Strangers { grace: Duration::ZERO, ..Strangers::new() };
        let crowd = admit(&mut door, ip, MOST + 2).await;
        // Their requests have been sent, and the first is read now.
        crowd[0].is_known();
        assert_eq!([&crowd[0], &crowd[1], &crowd[2]].map(has_to_go), [false, true, false]);
    }

    #[tokio::test]
    async fn b_18_of_a_crowd_that_comes_at_once_nobody_is_sent_away_unheard() {
        let ip = Origin::Address([127, 0, 0, 1].into());
        let mut door = Strangers::new();
        let crowd = admit(&mut door, ip, MOST).await;
        let one_more = {
            let mut next = Box::pin(door.admit(ip));
            assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            crowd[7].is_known();
            next.await
        };
        assert_eq!(crowd.iter().chain([&one_more]).filter(|one| has_to_go(one)).count(), 0);
    }
}
