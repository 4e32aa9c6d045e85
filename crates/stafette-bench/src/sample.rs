//! Many measurements of one thing.

use std::time::Duration;

use serde::Serialize;

/// Durations of the same operation, in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    taken: Vec<Duration>,
}

impl Sample {
    pub(crate) fn add(&mut self, duration: Duration) {
        self.taken.push(duration);
    }

    /// Returns the median, in microseconds.
    pub(crate) fn median(&self) -> f64 {
        self.quantile(50)
    }

    /// Returns the given percentile, in microseconds.
    pub(crate) fn quantile(&self, percent: usize) -> f64 {
        let mut sorted = self.taken.clone();
        sorted.sort_unstable();
        let place = sorted.len().saturating_sub(1) * percent / 100;
        sorted.get(place).map_or(0.0, |duration| duration.as_secs_f64() * 1e6)
    }

    /// Returns how much longer each was than the one of `others` that was taken with it, in
    /// microseconds. Negative values are noise, and are reported as such.
    pub(crate) fn beyond(&self, others: &Sample) -> Vec<f64> {
        let pairs = self.taken.iter().zip(&others.taken);
        pairs.map(|(this, other)| (this.as_secs_f64() - other.as_secs_f64()) * 1e6).collect()
    }
}

/// A median with its confidence interval.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Interval {
    /// The median of the measured values.
    pub middle: f64,
    /// The lower bound: the true median is below it once in forty times.
    pub low: f64,
    /// The upper bound, with the same probability.
    pub high: f64,
}

impl Interval {
    /// Returns the median with its interval, from ranks alone, for any distribution.
    pub(crate) fn of(mut measured: Vec<f64>) -> Self {
        measured.sort_unstable_by(f64::total_cmp);
        let Some(last) = measured.len().checked_sub(1) else { return Interval::default() };
        // The rank of a median has a standard deviation of half the square root of their number;
        // twice that gives 95 %.
        let spread = measured.len().isqrt();
        let at = |rank: usize| measured[rank.min(last)];
        let middle = last / 2;
        Interval {
            middle: at(middle),
            low: at(middle.saturating_sub(spread)),
            high: at(middle + spread),
        }
    }
}

/// Returns the rate per second.
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

    #[test]
    fn what_was_added_is_told_with_how_sure_that_is() {
        let sample = |micros: &[u64]| {
            let mut sample = Sample::default();
            micros.iter().for_each(|micros| sample.add(Duration::from_micros(*micros)));
            sample
        };
        let added = sample(&[12, 99, 31]).beyond(&sample(&[10, 20, 32]));
        assert_eq!(
            added.iter().map(|micros| micros.round()).collect::<Vec<_>>(),
            [2.0, 79.0, -1.0]
        );
        let Interval { middle, low, high } = Interval::of((0..=99).map(f64::from).collect());
        assert_eq!((low, middle, high), (39.0, 49.0, 59.0));
        assert_eq!(Interval::of(vec![3.0]), Interval { middle: 3.0, low: 3.0, high: 3.0 });
        assert_eq!(Interval::of(vec![]), Interval::default());
    }
}
