//! Histograms, with buckets as Prometheus counts them.

use serde::{Deserialize, Serialize};

/// Upper bounds of the buckets in milliseconds: from ten milliseconds to a day.
pub const MILLISECONDS: [u64; 18] = [
    10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    1_800_000, 3_600_000, 14_400_000, 86_400_000,
];

/// Counts per bucket of [`MILLISECONDS`], and above the last bound.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Histogram {
    counts: Vec<u64>,
    sum: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: vec![0; MILLISECONDS.len() + 1], sum: 0 }
    }
}

impl Histogram {
    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        let bucket = MILLISECONDS.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(value);
    }

    /// Adds all counts of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(ours, theirs)| *ours += theirs);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns, for each bound, the number of values up to it.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut so_far = 0;
        MILLISECONDS.iter().zip(&self.counts).map(move |(bound, count)| {
            so_far += count;
            (*bound, so_far)
        })
    }

    /// Returns the value below which `share` of all values lie, as Prometheus's
    /// `histogram_quantile` does: values are assumed to be spread evenly within a bucket. `None` if
    /// there are none.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let rank = share * total as f64;
        let (mut below, mut lower) = (0, 0);
        for (bound, upto) in self.cumulative() {
            if upto as f64 >= rank && upto > below {
                let within = (rank - below as f64) / (upto - below) as f64;
                return Some(lower as f64 + (bound - lower) as f64 * within);
            }
            (below, lower) = (upto, bound);
        }
        // Nothing is known above the last bound.
        Some(lower as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let mut all = Histogram::default();
        assert_eq!(all.quantile(0.95), None);
        (0..95).for_each(|_| all.add(7));
        (0..5).for_each(|_| all.add(700));
        assert_eq!(all.quantile(0.95), Some(10.0));
        assert_eq!(all.quantile(0.975), Some(750.0));
        let mut slow = Histogram::default();
        slow.add(u64::MAX);
        assert_eq!(slow.quantile(0.5), Some(86_400_000.0));
        all.merge(&slow);
        assert_eq!(all.count(), 101);
    }

    #[test]
    fn a_number_on_the_bound_belongs_below_it() {
        let mut all = Histogram::default();
        all.add(10);
        assert_eq!(all.cumulative().next(), Some((10, 1)));
    }
}
