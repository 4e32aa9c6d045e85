//! Many measurements of one thing.

use std::time::Duration;

/// Durations of the same thing, in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    taken: Vec<Duration>,
}

impl Sample {
    pub(crate) fn add(&mut self, duration: Duration) {
        self.taken.push(duration);
    }

    /// In microseconds; half of them were shorter.
    pub(crate) fn median(&self) -> f64 {
        self.quantile(50)
    }

    /// In microseconds; `percent` of them were shorter.
    pub(crate) fn quantile(&self, percent: usize) -> f64 {
        let mut sorted = self.taken.clone();
        sorted.sort_unstable();
        let place = sorted.len().saturating_sub(1) * percent / 100;
        sorted.get(place).map_or(0.0, |duration| duration.as_secs_f64() * 1e6)
    }
}

/// How many a second that is.
pub(crate) fn rate(count: u64, within: Duration) -> f64 {
    count as f64 / within.as_secs_f64().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_and_an_empty_sample_has_none() {
        let mut sample = Sample::default();
        assert_eq!(sample.median(), 0.0);
        for micros in [9, 1, 5, 3, 7] {
            sample.add(Duration::from_micros(micros));
        }
        assert!((sample.median() - 5.0).abs() < 1e-9);
        assert!((sample.quantile(100) - 9.0).abs() < 1e-9);
    }
}
