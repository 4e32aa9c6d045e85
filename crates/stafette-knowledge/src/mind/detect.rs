//! The detectors: each groups its observations, weighs them and reports what holds.

use std::collections::BTreeMap;

use super::statistics::{certainty, mean, median, median_ratio, normal, share_difference, wilson};
use super::{Change, Detector, Insight, Interval, Limits, Observation, StepEnd};
use crate::graph::NodeKey;
use crate::roi::Term;

/// The largest factor by which one insight changes a parameter, up or down.
const FURTHEST: f64 = 4.0;

/// An observed number and the node where it can be looked up.
type Sample<'a> = (f64, &'a NodeKey);

/// Returns everything that holds, the most certain first. The result is deterministic.
pub fn detect(observations: &[Observation], limits: &Limits) -> Vec<Insight> {
    let mut found = Vec::new();
    found.extend(estimates(observations, limits));
    found.extend(returns(observations, limits));
    found.extend(shares(observations, limits, Detector::FailingPath));
    found.extend(shares(observations, limits, Detector::Escalation));
    found.extend(slow_paths(observations, limits));
    found.extend(loops(observations, limits));
    found.extend(cost_outliers(observations, limits));
    found.extend(slips(observations, limits));
    found.sort_by(|a, b| {
        let by_name = || (a.detector, &a.subject).cmp(&(b.detector, &b.subject));
        b.confidence.total_cmp(&a.confidence).then_with(by_name)
    });
    found
}

/// Groups the observations of one detector; values that are not numbers are left out.
fn grouped<'a>(
    observations: &'a [Observation],
    pick: impl Fn(&'a Observation) -> Option<(String, f64, &'a NodeKey)>,
) -> BTreeMap<String, Vec<Sample<'a>>> {
    let mut groups: BTreeMap<String, Vec<Sample<'a>>> = BTreeMap::new();
    for (subject, value, evidence) in observations.iter().filter_map(pick) {
        if value.is_finite() {
            groups.entry(subject).or_default().push((value, evidence));
        }
    }
    groups
}

fn values(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(|(value, _)| *value).collect()
}

/// Returns the evidence, strongest first.
fn evidence(samples: &[Sample], upwards: bool, limits: &Limits) -> Vec<NodeKey> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(|a, b| {
        let order = if upwards { b.0.total_cmp(&a.0) } else { a.0.total_cmp(&b.0) };
        order.then_with(|| a.1.cmp(b.1))
    });
    sorted.into_iter().take(limits.evidence).map(|(_, key)| key.clone()).collect()
}

/// Computes the factor between expectation and reality: the mean of its logarithm, so that twice as
/// long and half as long are equally far from right.
fn factor(samples: &[Sample], limits: &Limits) -> Option<(f64, Interval, f64)> {
    if samples.len() < limits.samples {
        return None;
    }
    let (log, around, error) = mean(&values(samples), limits.level)?;
    let matters = log.abs() >= limits.factor.ln_1p();
    let clear = around.low > 0.0 || around.high < 0.0;
    let interval = Interval { low: around.low.exp(), high: around.high.exp() };
    (matters && clear).then(|| (log.exp(), interval, certainty(log, error)))
}

fn log_ratio(actual: f64, expected: f64) -> Option<f64> {
    (actual > 0.0 && expected > 0.0).then(|| (actual / expected).ln())
}

fn estimates(observations: &[Observation], limits: &Limits) -> Vec<Insight> {
    let groups = grouped(observations, |observation| match observation {
        Observation::Task { kind, estimated, actual, evidence } => {
            Some((kind.clone(), log_ratio(*actual, *estimated)?, evidence))
        }
        _ => None,
    });
    let insight = |(kind, samples): (String, Vec<Sample>)| {
        let (effect, interval, confidence) = factor(&samples, limits)?;
        let factor = effect.clamp(1.0 / FURTHEST, FURTHEST);
        Some(Insight {
            detector: Detector::Estimate,
            pattern: format!("work of the kind {kind} takes {effect:.2} times what is estimated"),
            samples: samples.len(),
            effect,
            interval,
            confidence,
            evidence: evidence(&samples, effect > 1.0, limits),
            change: Some(Change::Estimate { kind: kind.clone(), factor }),
            subject: kind,
        })
    };
    groups.into_iter().filter_map(insight).collect()
}

fn returns(observations: &[Observation], limits: &Limits) -> Option<Insight> {
    let groups = grouped(observations, |observation| match observation {
        Observation::Return { expected, actual, evidence } => {
            Some((String::new(), log_ratio(*actual, *expected)?, evidence))
        }
        _ => None,
    });
    let samples = groups.into_values().next()?;
    let (effect, interval, confidence) = factor(&samples, limits)?;
    let factor = effect.clamp(1.0 / FURTHEST, FURTHEST);
    Some(Insight {
        detector: Detector::Return,
        subject: "benefit".into(),
        pattern: format!("decisions bring {effect:.2} times what is expected of them"),
        samples: samples.len(),
        effect,
        interval,
        confidence,
        evidence: evidence(&samples, effect > 1.0, limits),
        change: Some(Change::Weight { term: Term::Benefit, factor }),
    })
}

/// Finds paths on which something happens more often than on all others together.
fn shares(observations: &[Observation], limits: &Limits, detector: Detector) -> Vec<Insight> {
    let (looked_for, word) = match detector {
        Detector::Escalation => (StepEnd::Escalated, "end with a person"),
        _ => (StepEnd::Failed, "fail"),
    };
    let groups = grouped(observations, |observation| match observation {
        Observation::Step { path, end, evidence, .. } => {
            Some((path.to_string(), f64::from(u8::from(*end == looked_for)), evidence))
        }
        _ => None,
    });
    let hits = |samples: &[Sample]| samples.iter().filter(|(value, _)| *value > 0.0).count();
    let all: usize = groups.values().map(Vec::len).sum();
    let all_hits: usize = groups.values().map(|samples| hits(samples)).sum();
    let insight = |(path, samples): (String, Vec<Sample>)| {
        let (hit, of) = (hits(&samples), samples.len());
        let rest = (all_hits - hit, all - of);
        if of < limits.share_samples {
            return None;
        }
        // With nothing to compare it with, the path's own share must be high.
        let (effect, interval) = match rest.1 {
            0 => (hit as f64 / of as f64, wilson(hit, of, limits.level)),
            _ => share_difference((hit, of), rest, limits.level),
        };
        if effect < limits.share || interval.low <= 0.0 {
            return None;
        }
        let error = (interval.high - interval.low) / (2.0 * normal(limits.level));
        let shown: Vec<Sample> =
            samples.iter().filter(|(value, _)| *value > 0.0).copied().collect();
        Some(Insight {
            detector,
            pattern: format!("{hit} of {of} handoffs {path} {word}"),
            samples: of,
            effect,
            interval,
            confidence: certainty(effect, error),
            evidence: evidence(&shown, true, limits),
            change: None,
            subject: path,
        })
    };
    groups.into_iter().filter_map(insight).collect()
}

fn slow_paths(observations: &[Observation], limits: &Limits) -> Vec<Insight> {
    let groups = grouped(observations, |observation| match observation {
        Observation::Step { path, seconds, evidence, .. } if *seconds > 0.0 => {
            Some((path.to_string(), *seconds, evidence))
        }
        _ => None,
    });
    let insight = |(path, samples): (&String, &Vec<Sample>)| {
        let others = groups.iter().filter(|(other, _)| *other != path);
        let others: Vec<f64> = others.flat_map(|(_, samples)| values(samples)).collect();
        if samples.len() < limits.samples || others.len() < limits.samples {
            return None;
        }
        let own = values(samples);
        let (effect, interval, confidence) =
            median_ratio(&own, &others, limits.level, limits.draws, limits.seed)?;
        if effect < limits.slower || interval.low <= 1.0 {
            return None;
        }
        Some(Insight {
            detector: Detector::SlowPath,
            subject: path.clone(),
            pattern: format!("handoffs {path} take {effect:.1} times as long as the others"),
            samples: samples.len(),
            effect,
            interval,
            confidence,
            evidence: evidence(samples, true, limits),
            change: None,
        })
    };
    groups.iter().filter_map(insight).collect()
}

fn loops(observations: &[Observation], limits: &Limits) -> Vec<Insight> {
    let groups = grouped(observations, |observation| match observation {
        Observation::Rounds { path, count, evidence } => {
            Some((path.to_string(), f64::from(*count), evidence))
        }
        _ => None,
    });
    let insight = |(path, samples): (String, Vec<Sample>)| {
        let round = |(count, _): &&Sample| *count >= f64::from(limits.rounds);
        let looped: Vec<Sample> = samples.iter().filter(round).copied().collect();
        let effect = looped.len() as f64 / samples.len() as f64;
        let interval = wilson(looped.len(), samples.len(), limits.level);
        if samples.len() < limits.share_samples || interval.low < limits.share {
            return None;
        }
        let error = (interval.high - interval.low) / (2.0 * normal(limits.level));
        Some(Insight {
            detector: Detector::Loop,
            pattern: format!(
                "{} of {} runs go {path} {} times or more",
                looped.len(),
                samples.len(),
                limits.rounds
            ),
            samples: samples.len(),
            effect,
            interval,
            confidence: certainty(effect, error),
            evidence: evidence(&looped, true, limits),
            change: None,
            subject: path,
        })
    };
    groups.into_iter().filter_map(insight).collect()
}

/// Finds handoffs beyond the outer fence of their path (Tukey: the third quartile plus three times
/// the distance of the quartiles) that cost several times its median.
fn cost_outliers(observations: &[Observation], limits: &Limits) -> Vec<Insight> {
    let groups = grouped(observations, |observation| match observation {
        Observation::Step { path, dollars, evidence, .. } if *dollars > 0.0 => {
            Some((path.to_string(), *dollars, evidence))
        }
        _ => None,
    });
    let insight = |(path, samples): (String, Vec<Sample>)| {
        if samples.len() < limits.outlier_samples {
            return None;
        }
        let mut costs = values(&samples);
        costs.sort_by(f64::total_cmp);
        let quartile = |share: f64| costs[((costs.len() - 1) as f64 * share).round() as usize];
        let (middle, fence) =
            (median(&costs), quartile(0.75) + 3.0 * (quartile(0.75) - quartile(0.25)));
        let far = |(cost, _): &&Sample| *cost > fence && *cost >= limits.dearer * middle;
        let outliers: Vec<Sample> = samples.iter().filter(far).copied().collect();
        let worst = outliers.iter().map(|(cost, _)| *cost).fold(0.0, f64::max);
        let usual: Vec<f64> = costs.iter().copied().filter(|cost| *cost <= fence).collect();
        let (_, around, _) =
            median_ratio(&usual, &[middle], limits.level, limits.draws, limits.seed)?;
        if outliers.is_empty() {
            return None;
        }
        // The interval of the ratio follows from the uncertainty of the median.
        let ratio = worst / middle;
        let interval = Interval { low: ratio / around.high, high: ratio / around.low };
        Some(Insight {
            detector: Detector::CostOutlier,
            pattern: format!("a handoff {path} cost {ratio:.1} times the usual ${middle:.2}"),
            samples: samples.len(),
            effect: ratio,
            interval,
            confidence: 1.0 - outliers.len() as f64 / samples.len() as f64,
            evidence: evidence(&outliers, true, limits),
            change: None,
            subject: path,
        })
    };
    groups.into_iter().filter_map(insight).collect()
}

fn slips(observations: &[Observation], limits: &Limits) -> Vec<Insight> {
    let groups = grouped(observations, |observation| match observation {
        Observation::Slip { kind, hours, evidence } => Some((kind.clone(), *hours, evidence)),
        _ => None,
    });
    let insight = |(kind, samples): (String, Vec<Sample>)| {
        if samples.len() < limits.samples {
            return None;
        }
        let (effect, interval, error) = mean(&values(&samples), limits.level)?;
        if effect < limits.slip || interval.low <= 0.0 {
            return None;
        }
        Some(Insight {
            detector: Detector::CalendarSlip,
            pattern: format!("blocks for {kind} end {effect:.1} hours late"),
            samples: samples.len(),
            effect,
            interval,
            confidence: certainty(effect, error),
            evidence: evidence(&samples, true, limits),
            change: None,
            subject: kind,
        })
    };
    groups.into_iter().filter_map(insight).collect()
}
