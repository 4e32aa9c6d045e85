//! Phases: each has its agents, its rule can be met, and `back_to` names an earlier phase.

use super::Report;
use stafette_config::Diagnostic;
use stafette_core::wire::phase::Phase;
use stafette_core::workflow::phases::Rule;

/// The maximum number of agents in a phase: they share the limit of one summary.
const MAX_PARTS: usize = 16;

pub(super) fn check(report: &mut Report<'_>) {
    let workflow = report.workflow;
    let mut parts = 0;
    for (number, step) in workflow.phases.iter().enumerate() {
        let at = format!("/phases/{number}");
        let agents = format!("{at}/agents");
        let mut wrong = |path: &str, message: String, help: &str| {
            report.add(Diagnostic::error("bad-phase", path, message).help(help));
        };
        let count = step.agents.len();
        parts += count;
        match (step.phase, count) {
            (_, 0) => {
                wrong(&agents, format!("nobody works in the {} phase", step.phase), "name an agent")
            }
            (Phase::Parallel, 1..=MAX_PARTS) | (_, 1) => {}
            (Phase::Parallel, _) => {
                wrong(
                    &agents,
                    format!("a phase has {MAX_PARTS} agents at most"),
                    "make it two phases",
                );
            }
            _ => wrong(
                &agents,
                format!("the {} phase has {count} agents", step.phase),
                "several at once are a phase of their own: phase = \"parallel\"",
            ),
        }
        if step.phase == Phase::Parallel && step.part == Phase::Parallel {
            let message = "a part cannot have parts of its own".to_owned();
            wrong(&format!("{at}/part"), message, "say research, write or validate");
        }
        if let Rule::AtLeast { needed, of } = step.rule
            && (of as usize != count || needed == 0 || needed > of)
        {
            let message = format!("`{needed} of {of}` does not fit {count} agents");
            wrong(&format!("{at}/rule"), message, "say how many of these agents have to pass");
        }
        if step.rounds == 0 {
            let message = "a phase that is never entered is none".to_owned();
            wrong(&format!("{at}/rounds"), message, "1 or more");
        }
        let earlier =
            |phase: Phase| workflow.phases[..number].iter().any(|step| step.phase == phase);
        if let Some(back) = step.back_to.filter(|back| !earlier(*back)) {
            let message = format!("there is no {back} phase before this one");
            wrong(&format!("{at}/back_to"), message, "a way back leads to an earlier phase");
        }
        report.distinct(step.agents.iter().map(|name| name.as_str()), &agents);
        for (index, name) in step.agents.iter().enumerate() {
            report.knows(name.as_str(), &format!("{agents}/{index}"));
        }
    }
    let limits = &workflow.limits;
    let most = limits.handoffs_per_item.min(limits.handoffs_per_run) as usize;
    if parts > most {
        let message = format!("the phases are {parts} handoffs, but only {most} are allowed");
        let diagnostic = Diagnostic::error("phase-limit", "/limits/handoffs_per_item", message)
            .help("raise `handoffs_per_item` and `handoffs_per_run` in `[limits]`");
        report.add_or(diagnostic, "/phases");
    }
}
