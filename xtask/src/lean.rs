//! How heavy the program is to build and to download, against the budgets in `lean.toml`.
//!
//! A budget is never raised: what becomes lighter is held there, what becomes heavier is an error.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::shell;

/// The file with the budgets.
const BUDGETS: &str = "xtask/lean.toml";

/// The share of a size by which a budget may be missed before that is an error.
const SIZE_SLACK: f64 = 0.01;

/// The same for processor time, which differs from run to run.
const TIME_SLACK: f64 = 0.15;

/// The budgets, and likewise the figures as they are.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figures {
    /// Packages in `Cargo.lock`.
    packages: f64,
    /// Size of the stripped program, in MB.
    megabytes: f64,
    /// Processor time of a build from nothing, in seconds, crates downloaded. 0 if not measured.
    processor_seconds: f64,
}

/// Builds the program as strangers do, and prints its figures beside the budgets. Returns true if
/// they are kept. With `cold`, from nothing, so that the processor time is measured as well.
pub(crate) fn run(root: &Path, cold: bool) -> bool {
    let shown = budgets(root).and_then(|budgets| {
        let figures = measure(root, cold)?;
        let rows = rows(figures, budgets);
        for row in &rows {
            eprintln!("{row}");
        }
        Ok(rows.iter().all(|row| row.is_kept()))
    });
    shown.unwrap_or_else(|trouble| {
        eprintln!("{trouble}");
        false
    })
}

/// A figure and its budget.
#[derive(Clone, Debug)]
struct Row {
    name: &'static str,
    figure: f64,
    budget: f64,
    slack: f64,
}

impl Row {
    fn new(name: &'static str, figure: f64, budget: f64, slack: f64) -> Self {
        Row { name, figure, budget, slack }
    }

    fn is_kept(&self) -> bool {
        self.figure <= self.budget * (1.0 + self.slack)
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Row { name, figure, budget, .. } = self;
        write!(f, "{name:<18} {figure:>8.1} of {budget:>8.1}")?;
        match self.is_kept() {
            false => write!(f, "  TOO MUCH: make it lighter; a budget is never raised"),
            true if figure * (1.0 + self.slack) < *budget => {
                write!(f, "  less than its budget: hold it in {BUDGETS}")
            }
            true => Ok(()),
        }
    }
}

fn rows(figures: Figures, budgets: Figures) -> Vec<Row> {
    let time = Row::new(
        "processor seconds",
        figures.processor_seconds,
        budgets.processor_seconds,
        TIME_SLACK,
    );
    let mut rows = vec![
        Row::new("packages", figures.packages, budgets.packages, 0.0),
        Row::new("megabytes", figures.megabytes, budgets.megabytes, SIZE_SLACK),
    ];
    rows.extend((figures.processor_seconds > 0.0).then_some(time));
    rows
}

fn budgets(root: &Path) -> Result<Figures, String> {
    let text = fs::read_to_string(root.join(BUDGETS));
    let text = text.map_err(|error| format!("{BUDGETS} cannot be read: {error}"))?;
    toml::from_str(&text).map_err(|error| format!("{BUDGETS}: {error}"))
}

fn measure(root: &Path, cold: bool) -> Result<Figures, String> {
    // A folder of its own: what is built otherwise must neither help nor be lost.
    let target = root.join("target/lean");
    if cold && target.exists() {
        fs::remove_dir_all(&target).map_err(|error| error.to_string())?;
    }
    let said = |error: shell::CommandError| error.to_string();
    shell::run(shell::cargo(root).arg("fetch").arg("--locked")).map_err(said)?;
    let before = processor_seconds();
    let mut build = shell::cargo(root);
    build.args(["build", "--release", "--locked", "-p", "stafette"]);
    shell::run(build.env("CARGO_TARGET_DIR", &target)).map_err(said)?;
    let spent = before.zip(processor_seconds()).map(|(before, after)| after - before);
    let program = target.join("release/stafette");
    let size = fs::metadata(&program).map_err(|error| error.to_string())?.len();
    Ok(Figures {
        packages: count(root)?,
        #[expect(clippy::cast_precision_loss, reason = "a program has less than 2^52 bytes")]
        megabytes: size as f64 / 1e6,
        processor_seconds: spent.filter(|_| cold).unwrap_or_default(),
    })
}

/// Returns the number of packages in `Cargo.lock`.
fn count(root: &Path) -> Result<f64, String> {
    let lock = fs::read_to_string(root.join("Cargo.lock"));
    let lock = lock.map_err(|error| format!("Cargo.lock cannot be read: {error}"))?;
    let count = lock.lines().filter(|line| *line == "[[package]]").count();
    Ok(f64::from(u32::try_from(count).unwrap_or(u32::MAX)))
}

/// Returns the processor time of all programs that this one has waited for. Only Linux tells.
fn processor_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may have spaces in it.
    let mut fields = stat.rsplit_once(") ")?.1.split_whitespace().skip(13);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_over_its_budget_is_an_error_and_one_below_it_is_to_be_held() {
        let row = |figure| Row::new("megabytes", figure, 50.0, SIZE_SLACK);
        assert!(!row(51.0).is_kept());
        assert!(row(51.0).to_string().contains("TOO MUCH"));
        assert_eq!(row(50.4).to_string(), "megabytes              50.4 of     50.0");
        assert!(row(49.0).is_kept());
        assert!(row(49.0).to_string().contains("hold it in xtask/lean.toml"));
    }

    #[test]
    fn the_packages_of_this_tree_are_within_their_budget() {
        let root = crate::root();
        let budget = budgets(&root).expect("budgets").packages;
        let row = Row::new("packages", count(&root).expect("a lock file"), budget, 0.0);
        assert!(row.is_kept(), "{row}");
    }

    #[test]
    fn processor_time_is_that_of_programs_which_have_ended() {
        let before = processor_seconds();
        let mut busy = std::process::Command::new("sh");
        busy.args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]);
        assert!(busy.status().expect("a shell").success());
        assert!(processor_seconds() > before || before.is_none());
    }
}
