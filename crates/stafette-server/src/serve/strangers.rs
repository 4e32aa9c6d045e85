//! Connections that have not shown who they are. There is always room for one more: the oldest one of
//! the peer that has most of them makes way. Nobody waits for what another one sends or does not send,
//! so that the one that is about to show who it is comes in, however many there are and however fast.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Number of such connections per listener from which on those make way that had their time.
const MANY: usize = 256;
/// Maximum number of such connections per listener: from then on one makes way whenever it came.
const MOST: usize = 1024;
/// Part of the files that this process may have open for the strangers at one listener, as a divisor:
/// there are three listeners, and the daemon has other things to open.
const PART: u64 = 8;

/// Maximum number of connections per listener of people who showed who they are; further ones stay
/// strangers.
const PEOPLE: usize = 512;
/// The same for agents, which take no place from people.
const AGENTS: usize = 256;

/// Time for which a connection may stay unless there are very many: its request may have been sent and
/// not yet been read, as with 500 clients that come at once.
const GRACE: Duration = Duration::from_secs(2);

/// Maximum number of connections that were sent away and are not closed yet. More of them would be read
/// before those that came later, and keep files open.
const LEAVING: usize = 64;

/// How often the runtime gets to read what has arrived before a connection is closed.
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
    people: Arc<Semaphore>,
    agents: Arc<Semaphore>,
    next: u64,
    most: usize,
    grace: Duration,
}

/// The strangers that are here, and the news that one that was sent away is gone.
#[derive(Debug, Default)]
struct Here {
    all: Mutex<All>,
    gone: Notify,
}

impl Here {
    /// Forgets a connection that is known, or gone.
    fn remove(&self, origin: Origin, id: u64) {
        let mut all = lock(&self.all);
        if all.remove(origin, id).is_none() && all.leaving.remove(&id) {
            self.gone.notify_one();
        }
    }
}

/// The connections that wait to be known, by where they come from and in the order in which they came.
#[derive(Debug, Default)]
struct All {
    waiting: HashMap<Origin, BTreeMap<u64, Waiting>>,
    count: usize,
    /// Those that were sent away and are not closed yet.
    leaving: HashSet<u64>,
}

/// A connection that waits to be known.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    leave: Arc<Notify>,
}

impl All {
    fn add(&mut self, origin: Origin, id: u64, waiting: Waiting) {
        self.count += 1;
        self.waiting.entry(origin).or_default().insert(id, waiting);
    }

    fn remove(&mut self, origin: Origin, id: u64) -> Option<Waiting> {
        let of_origin = self.waiting.get_mut(&origin)?;
        let removed = of_origin.remove(&id)?;
        if of_origin.is_empty() {
            self.waiting.remove(&origin);
        }
        self.count -= 1;
        Some(removed)
    }

    /// Returns the oldest connection of the origin that has most of them: the first to make way.
    fn first(&self) -> Option<(Origin, u64, Instant)> {
        let oldest = self.waiting.iter().filter_map(|(origin, all)| {
            let (id, one) = all.first_key_value()?;
            Some((all.len(), *origin, *id, one.since))
        });
        let first = oldest.max_by_key(|(count, _, id, _)| (*count, std::cmp::Reverse(*id)))?;
        let (_, origin, id, since) = first;
        Some((origin, id, since))
    }
}

impl Strangers {
    pub(super) fn new() -> Self {
        // Connections of strangers must leave files for those of others and for the store.
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = usize::try_from(files / PART).unwrap_or(MOST).clamp(1, MOST);
        Strangers {
            here: Arc::default(),
            people: Arc::new(Semaphore::new(PEOPLE)),
            agents: Arc::new(Semaphore::new(AGENTS)),
            next: 0,
            most,
            grace: GRACE,
        }
    }

    /// Lets a connection in, and sends others away for it if there are too many.
    pub(super) async fn admit(&mut self, origin: Origin) -> Stranger {
        // The runtime closes them at once: this waits for the machine, and for no peer.
        while lock(&self.here.all).leaving.len() >= LEAVING {
            self.here.gone.notified().await;
        }
        let now = Instant::now();
        let (id, leave) = (self.next, Arc::new(Notify::new()));
        self.next += 1;
        let mut all = lock(&self.here.all);
        while let Some((origin, id, since)) = all.first() {
            let had_its_time = all.count >= MANY && now.duration_since(since) >= self.grace;
            if all.count < self.most && !had_its_time {
                break;
            }
            if let Some(gone) = all.remove(origin, id) {
                all.leaving.insert(id);
                gone.leave.notify_one();
            }
        }
        all.add(origin, id, Waiting { since: now, leave: leave.clone() });
        drop(all);
        let (people, agents) = (self.people.clone(), self.agents.clone());
        let here = self.here.clone();
        Stranger(Arc::new(Inner {
            origin,
            id,
            here,
            leave,
            people,
            agents,
            place: Mutex::default(),
        }))
    }
}

/// A connection that has not shown who it is. Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct Stranger(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    origin: Origin,
    id: u64,
    here: Arc<Here>,
    leave: Arc<Notify>,
    people: Arc<Semaphore>,
    agents: Arc<Semaphore>,
    /// The place among those that are known.
    place: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Stranger {
    /// Notes that the connection has shown who it is: it is not sent away any more.
    pub(crate) fn is_known(&self, is_agent: bool) {
        let room = if is_agent { &self.0.agents } else { &self.0.people };
        let mut place = lock(&self.0.place);
        if place.is_none()
            && let Ok(permit) = room.clone().try_acquire_owned()
        {
            *place = Some(permit);
            self.gone();
        }
    }

    /// Notes that the connection is closed.
    pub(super) fn gone(&self) {
        self.0.here.remove(self.0.origin, self.0.id);
    }

    /// Returns when the connection has to make way for another one. One that shows who it is at the
    /// last moment stays: on a busy machine its request may have lain unread for all of its time.
    pub(super) async fn sent_away(&self) {
        loop {
            self.0.leave.notified().await;
            for _ in 0..LOOKS {
                tokio::task::yield_now().await;
            }
            if lock(&self.0.place).is_none() {
                return;
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.here.remove(self.origin, self.id);
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
        let mut look = || sent_away.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        // Each look is one at what has arrived.
        (0..=LOOKS).any(|_| look() == Poll::Ready(()))
    }

    fn door() -> Strangers {
        Strangers { most: MOST, ..Strangers::new() }
    }

    async fn admit(door: &mut Strangers, origin: Origin, count: usize) -> Vec<Stranger> {
        let mut admitted = Vec::new();
        for _ in 0..count {
            admitted.push(door.admit(origin).await);
        }
        admitted
    }

    /// More that come, whereupon those that are sent away close.
    async fn flood(crowd: &mut Vec<Stranger>, door: &mut Strangers, count: usize) {
        for _ in 0..2 * count / LEAVING {
            crowd.extend(admit(door, address(1), LEAVING / 2).await);
            crowd.retain(|one| !has_to_go(one));
        }
    }

    fn address(last: u8) -> Origin {
        Origin::Address([10, 0, 0, last].into())
    }

    #[tokio::test]
    async fn b_20_there_is_always_room_for_one_more_and_the_busiest_peer_makes_it() {
        let (slow, other) = (address(1), address(2));
        let mut door = Strangers { grace: Duration::ZERO, ..door() };
        let known = door.admit(slow).await;
        known.is_known(false);
        let single = door.admit(other).await;
        let mut slow_ones = admit(&mut door, slow, MANY - 1).await;
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
        let mut door = Strangers { grace: Duration::ZERO, ..door() };
        let mut crowd = Vec::new();
        for pid in 0..256 {
            crowd.push(door.admit(Origin::Process(Some(pid))).await);
        }
        let person = door.admit(Origin::Process(Some(1000))).await;
        assert!(has_to_go(&crowd[0]) && !has_to_go(&person));
    }

    #[tokio::test]
    async fn b_18_who_is_heard_only_when_it_has_to_go_stays() {
        let mut door = Strangers { grace: Duration::ZERO, ..door() };
        let crowd = admit(&mut door, address(1), MANY + 2).await;
        // Their requests have been sent, and the first is read now.
        crowd[0].is_known(false);
        assert_eq!([&crowd[0], &crowd[1], &crowd[2]].map(has_to_go), [false, true, false]);
    }

    #[tokio::test]
    async fn b_18_of_a_crowd_that_comes_at_once_nobody_is_sent_away_unheard() {
        let mut door = door();
        let crowd = admit(&mut door, address(1), MOST).await;
        assert_eq!(crowd.iter().filter(|one| has_to_go(one)).count(), 0);
    }

    #[tokio::test]
    async fn b_20_a_flood_without_end_keeps_no_more_than_its_places_and_nobody_waits() {
        let mut door = door();
        let mut crowd = Vec::new();
        flood(&mut crowd, &mut door, 3 * MOST).await;
        assert_eq!(crowd.len(), MOST);
        let owner = door.admit(address(1)).await;
        flood(&mut crowd, &mut door, MOST - LEAVING).await;
        assert!(!has_to_go(&owner), "as many as there are places have come after it");
        owner.is_known(false);
        flood(&mut crowd, &mut door, 3 * MOST).await;
        assert!(!has_to_go(&owner));
        assert_eq!((crowd.len(), lock(&door.here.all).count), (MOST, MOST));
        drop(crowd);
        let all = lock(&door.here.all);
        assert_eq!((all.count, all.waiting.len(), all.leaving.len()), (0, 0, 0));
    }

    #[tokio::test]
    async fn b_20_those_that_are_sent_away_are_closed_before_many_more_come() {
        let mut door = door();
        let mut crowd = admit(&mut door, address(1), MOST + LEAVING).await;
        let mut next = Box::pin(door.admit(address(1)));
        let mut look = || next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        assert!(!look(), "the runtime has closed none of them");
        // One is heard at the last moment, another one is closed.
        crowd[0].is_known(false);
        assert!(look());
        drop(next);
        crowd[1].gone();
        let _ = crowd.split_off(2);
        assert_eq!(lock(&door.here.all).leaving.len(), 0);
    }

    #[tokio::test]
    async fn b_20_agents_take_no_place_from_people() {
        let mut door = door();
        let agents = admit(&mut door, address(1), AGENTS + 1).await;
        agents.iter().for_each(|agent| agent.is_known(true));
        assert_eq!(lock(&door.here.all).count, 1, "one of them has no place and stays a stranger");
        let people = admit(&mut door, address(1), PEOPLE).await;
        people.iter().for_each(|person| person.is_known(false));
        assert_eq!(lock(&door.here.all).count, 1);
    }
}
