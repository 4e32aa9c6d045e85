//! Connections that have not shown who they are. There is room for few of them, and always for one
//! more: the oldest one of the peer that has most of them makes way.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Maximum number of such connections per listener.
const MOST: usize = 256;
/// Maximum number of connections per listener that showed who they are; further ones stay strangers.
const KNOWN: usize = 512;

/// Connections by the order of their arrival: their peer, and how they are told to leave.
type Waiting = BTreeMap<u64, (IpAddr, Arc<Notify>)>;

/// The strangers at one listener.
#[derive(Debug)]
pub(super) struct Strangers {
    here: Arc<Mutex<Waiting>>,
    known: Arc<Semaphore>,
    next: u64,
}

impl Strangers {
    pub(super) fn new() -> Self {
        Strangers { here: Arc::default(), known: Arc::new(Semaphore::new(KNOWN)), next: 0 }
    }

    /// Lets a connection in. If there is no room, another one is sent away.
    pub(super) fn admit(&mut self, ip: IpAddr) -> Stranger {
        let leave = Arc::new(Notify::new());
        let mut here = lock(&self.here);
        if here.len() >= MOST
            && let Some(oldest) = in_the_way(&here)
            && let Some((_, leave)) = here.remove(&oldest)
        {
            leave.notify_one();
        }
        let id = self.next;
        self.next += 1;
        here.insert(id, (ip, leave.clone()));
        drop(here);
        let (here, room) = (self.here.clone(), self.known.clone());
        Stranger(Arc::new(Inner { id, here, leave, room, place: Mutex::default() }))
    }
}

/// The oldest connection of the peer that has most of them.
fn in_the_way(here: &Waiting) -> Option<u64> {
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    here.values().for_each(|(ip, _)| *counts.entry(*ip).or_default() += 1);
    let (busiest, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    here.iter().find(|(_, (ip, _))| *ip == busiest).map(|(id, _)| *id)
}

/// A connection that has not shown who it is. Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct Stranger(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: u64,
    here: Arc<Mutex<Waiting>>,
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
            lock(&self.0.here).remove(&self.0.id);
        }
    }

    /// Returns when the connection has to make way for another one.
    pub(super) async fn sent_away(&self) {
        self.0.leave.notified().await;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        lock(&self.here).remove(&self.id);
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

    #[test]
    fn b_20_there_is_always_room_for_one_more_and_the_busiest_peer_makes_it() {
        let (slow, other) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut door = Strangers::new();
        let known = door.admit(slow);
        known.is_known();
        let single = door.admit(other);
        let mut slow_ones: Vec<Stranger> = (1..MOST).map(|_| door.admit(slow)).collect();
        assert!(slow_ones.iter().all(|one| !has_to_go(one)), "there was room for all of them");
        let late = door.admit(slow);
        assert!(has_to_go(&slow_ones.remove(0)), "the oldest one of the busiest peer goes");
        let stay = [&known, &single, &late].into_iter().chain(&slow_ones);
        assert_eq!(stay.filter(|one| has_to_go(one)).count(), 0);
        drop(slow_ones);
        let after = door.admit(slow);
        assert!(!has_to_go(&after) && !has_to_go(&late), "who left makes room");
    }
}
