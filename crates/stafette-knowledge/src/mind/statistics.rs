//! The statistics that the detectors need: intervals for a mean, a share and a median.

use super::Interval;

/// Returns the mean and its interval, by Student's t; `None` for fewer than two samples.
pub fn mean(samples: &[f64], level: f64) -> Option<(f64, Interval, f64)> {
    let n = samples.len() as f64;
    if samples.len() < 2 {
        return None;
    }
    let mean = samples.iter().sum::<f64>() / n;
    let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let error = (variance / n).sqrt();
    let half = student(level, n - 1.0) * error;
    Some((mean, Interval { low: mean - half, high: mean + half }, error))
}

/// Returns Wilson's interval for a share: it stays within 0 and 1 and is valid for few samples.
pub fn wilson(hits: usize, of: usize, level: f64) -> Interval {
    if of == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let (n, z) = (of as f64, normal(level));
    let share = hits as f64 / n;
    let scale = 1.0 + z * z / n;
    let middle = (share + z * z / (2.0 * n)) / scale;
    let half = z / scale * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    Interval { low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
}

/// Returns the difference of two shares with its interval, by Newcombe's method from two Wilson
/// intervals.
pub fn share_difference(a: (usize, usize), b: (usize, usize), level: f64) -> (f64, Interval) {
    let share = |(hits, of): (usize, usize)| if of == 0 { 0.0 } else { hits as f64 / of as f64 };
    let (p, q) = (share(a), share(b));
    let (wp, wq) = (wilson(a.0, a.1, level), wilson(b.0, b.1, level));
    let low = p - q - ((p - wp.low).powi(2) + (wq.high - q).powi(2)).sqrt();
    let high = p - q + ((wp.high - p).powi(2) + (q - wq.low).powi(2)).sqrt();
    (p - q, Interval { low, high })
}

/// Returns the median of numbers that are not empty.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// Returns the ratio of two medians, its interval and the share of draws above 1, by bootstrap from
/// both. The same seed gives the same draws.
pub fn median_ratio(
    a: &[f64],
    b: &[f64],
    level: f64,
    draws: usize,
    seed: u64,
) -> Option<(f64, Interval, f64)> {
    if a.is_empty() || b.is_empty() || median(b) <= 0.0 {
        return None;
    }
    let mut chance = Chance(seed);
    let mut again = |from: &[f64]| -> f64 {
        let drawn: Vec<f64> = from.iter().map(|_| from[chance.below(from.len())]).collect();
        median(&drawn)
    };
    let mut ratios: Vec<f64> = (0..draws.max(100))
        .map(|_| (again(a), again(b)))
        .filter(|(_, below)| *below > 0.0)
        .map(|(above, below)| above / below)
        .collect();
    if ratios.is_empty() {
        return None;
    }
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[((ratios.len() - 1) as f64 * share).round() as usize];
    let tail = (1.0 - level) / 2.0;
    let above = ratios.iter().filter(|ratio| **ratio > 1.0).count() as f64 / ratios.len() as f64;
    Some((median(a) / median(b), Interval { low: at(tail), high: at(1.0 - tail) }, above))
}

/// Returns the confidence that a value so many standard errors from zero is not zero.
pub fn certainty(value: f64, error: f64) -> f64 {
    if error <= 0.0 {
        return if value == 0.0 { 0.0 } else { 1.0 };
    }
    erf((value / error).abs() / std::f64::consts::SQRT_2)
}

/// Returns how many standard errors around the middle hold this share of a normal distribution.
pub(super) fn normal(level: f64) -> f64 {
    let level = level.clamp(0.5, 0.9999);
    let (mut low, mut high) = (0.0, 5.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if erf(middle / std::f64::consts::SQRT_2) < level { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Returns the corresponding number for Student's distribution, by the expansion of Cornish and
/// Fisher.
fn student(level: f64, freedom: f64) -> f64 {
    let z = normal(level);
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
    ];
    let mut power = 1.0;
    terms.iter().fold(z, |sum, term| {
        power *= freedom;
        sum + term / power
    })
}

/// Returns the error function, to seven digits (Abramowitz and Stegun 7.1.26).
fn erf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let coefficients =
        [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let sum = coefficients.iter().fold(0.0, |sum, coefficient| sum * t + coefficient);
    (1.0 - sum * t * (-x * x).exp()).copysign(x)
}

/// Random numbers from a seed (SplitMix64): the same on every machine, and not fit for secrets.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        let limit = u128::try_from(limit).unwrap_or(1);
        usize::try_from((u128::from(self.next()) * limit) >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, by: f64) -> bool {
        (a - b).abs() <= by
    }

    #[test]
    fn s1_10_intervals_agree_with_the_tables() {
        assert!(near(normal(0.95), 1.959_96, 1e-4));
        assert!(near(student(0.95, 4.0), 2.776, 0.01), "{}", student(0.95, 4.0));
        assert!(near(student(0.95, 30.0), 2.042, 1e-3));
        // 8 of 10: Wilson gives 0.490 to 0.943.
        let wilson = wilson(8, 10, 0.95);
        assert!(near(wilson.low, 0.4902, 1e-3) && near(wilson.high, 0.9433, 1e-3), "{wilson:?}");
        // Newcombe's own example: 56/70 against 48/80 is 0.2, from 0.0524 to 0.3339.
        let (difference, around) = share_difference((56, 70), (48, 80), 0.95);
        assert!(near(difference, 0.2, 1e-9));
        assert!(near(around.low, 0.0524, 1e-3) && near(around.high, 0.3339, 1e-3), "{around:?}");
    }

    #[test]
    fn s1_10_the_bootstrap_draws_the_same_for_the_same_seed() {
        let slow: Vec<f64> = (0..30).map(|n| 20.0 + f64::from(n)).collect();
        let fast: Vec<f64> = (0..30).map(|n| 10.0 + f64::from(n) / 2.0).collect();
        let one = median_ratio(&slow, &fast, 0.95, 500, 7).expect("a ratio");
        assert_eq!(Some(one), median_ratio(&slow, &fast, 0.95, 500, 7));
        assert!(near(one.0, 2.0, 0.01) && one.1.low > 1.5 && one.1.high < 2.6, "{one:?}");
    }
}
