//! Rate limit: one token bucket per name.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of names kept. Names with a full bucket are dropped first, which changes nothing
/// for them.
const MOST: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Bucket {
    level: f64,
    at: Instant,
}

/// A rate limit for each name.
#[derive(Debug)]
pub(crate) struct Pace {
    a_second: f64,
    at_once: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

impl Pace {
    pub(crate) fn new(a_second: f64, at_once: f64) -> Self {
        Pace { a_second, at_once, buckets: Mutex::default() }
    }

    /// Counts one more request of `name`, or returns how long to wait.
    pub(crate) fn take(&self, name: &str, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST && !buckets.contains_key(name) {
            buckets.retain(|_, bucket| self.level(bucket, now) < self.at_once);
            if buckets.len() >= MOST {
                let oldest = buckets.iter().min_by_key(|(_, bucket)| bucket.at);
                let oldest = oldest.map(|(name, _)| name.clone());
                oldest.and_then(|name| buckets.remove(&name));
            }
        }
        let full = Bucket { level: self.at_once, at: now };
        let bucket = buckets.entry(name.to_owned()).or_insert(full);
        let level = self.level(bucket, now);
        if level < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - level) / self.a_second));
        }
        *bucket = Bucket { level: level - 1.0, at: now };
        Ok(())
    }

    fn level(&self, bucket: &Bucket, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.level + passed * self.a_second).min(self.at_once)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_too_fast_waits_and_others_do_not() {
        let pace = Pace::new(2.0, 3.0);
        let now = Instant::now();
        assert!((0..3).all(|_| pace.take("ada", now).is_ok()));
        assert_eq!(pace.take("ada", now), Err(Duration::from_millis(500)));
        assert!(pace.take("bob", now).is_ok());
        assert!(pace.take("ada", now + Duration::from_millis(500)).is_ok());
    }

    #[test]
    fn names_do_not_pile_up() {
        let pace = Pace::new(1.0, 2.0);
        let now = Instant::now();
        for n in 0..3 * MOST {
            pace.take(&n.to_string(), now).expect("a fresh bucket");
        }
        assert!(pace.buckets.lock().expect("a map").len() <= MOST);
    }
}
