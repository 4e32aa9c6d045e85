//! The graph of routes: all agents are reachable, the work can end, and every cycle is declared.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Report, UNDECLARED_CYCLE, listed};
use stafette_config::{Diagnostic, child};
use stafette_core::workflow::Loop;
use stafette_core::{Party, Workflow};

/// The maximum number of steps in the search for cycles.
const MAX_STEPS: usize = 50_000;
/// The maximum number of reported cycles: further ones mostly share their routes.
const MAX_CYCLES: usize = 3;

pub(super) fn check(report: &mut Report<'_>) {
    loops(report);
    if report.names_are_wrong() {
        return;
    }
    let graph = Graph::of(report.workflow);
    let workflow = report.workflow;
    let first = match (&workflow.workflow.entry, &workflow.council) {
        // The first speaker has the work first.
        (entry, Some(council)) if *entry == stafette_core::workflow::council::party() => {
            council.members.first().map(|name| name.as_str())
        }
        (entry, _) => Some(entry.as_str()),
    };
    let Some(entry) = first.and_then(|name| graph.index(name)) else { return };
    reach(report, &graph, entry);
    ends(report, &graph, entry);
    cycles(report, &graph, entry);
    rounds(report, &graph, entry);
}

/// Agents by number, in the order of their names, and the routes between them.
struct Graph<'a> {
    names: Vec<&'a str>,
    next: Vec<BTreeSet<usize>>,
    /// The first route between two agents.
    route: BTreeMap<(usize, usize), usize>,
    /// True for agents at which the work may leave the agents.
    leaves: Vec<bool>,
}

impl<'a> Graph<'a> {
    fn of(workflow: &'a Workflow) -> Self {
        let names: Vec<&str> = workflow.agents.keys().map(|name| name.as_str()).collect();
        let mut graph = Graph {
            next: vec![BTreeSet::new(); names.len()],
            route: BTreeMap::new(),
            leaves: vec![false; names.len()],
            names,
        };
        for (number, route) in workflow.routes.iter().enumerate() {
            let Some(from) = graph.index(route.from.as_str()) else { continue };
            match graph.index(route.to.as_str()) {
                Some(to) if to != from => {
                    graph.next[from].insert(to);
                    graph.route.entry((from, to)).or_insert(number);
                }
                Some(_) => {}
                None => graph.leaves[from] = true,
            }
        }
        graph
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.names.binary_search(&name).ok()
    }

    /// Returns the distance of every agent in handoffs, within `allowed`.
    fn distances(&self, from: usize, allowed: impl Fn(usize) -> bool) -> Vec<Option<u64>> {
        let mut distance = vec![None; self.names.len()];
        distance[from] = Some(0);
        let mut queue = VecDeque::from([(from, 0)]);
        while let Some((here, so_far)) = queue.pop_front() {
            for &there in self.next[here].iter().filter(|there| allowed(**there)) {
                if distance[there].is_none() {
                    distance[there] = Some(so_far + 1);
                    queue.push_back((there, so_far + 1));
                }
            }
        }
        distance
    }

    /// Returns the groups of agents that can all reach each other, each in the order of the work.
    fn components(&self, entry: usize) -> Vec<Vec<usize>> {
        let away = self.distances(entry, |_| true);
        let all: Vec<_> = (0..self.names.len()).map(|one| self.distances(one, |_| true)).collect();
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_by_key(|one| (away[*one].unwrap_or(u64::MAX), *one));
        let mut taken = vec![false; self.names.len()];
        let mut components = Vec::new();
        for &one in &order {
            if taken[one] {
                continue;
            }
            let mutual =
                |other: &&usize| all[one][**other].is_some() && all[**other][one].is_some();
            let component: Vec<usize> = order.iter().filter(mutual).copied().collect();
            component.iter().for_each(|member| taken[*member] = true);
            components.push(component);
        }
        components
    }

    fn cycle_text(&self, cycle: &[usize]) -> String {
        let names: Vec<&str> =
            cycle.iter().chain(cycle.first()).map(|one| self.names[*one]).collect();
        names.join(" → ")
    }
}

/// Checks that every agent can receive work: over routes from the entry, as an alternative, as a
/// provider, or from the reserved parties.
fn reach(report: &mut Report<'_>, graph: &Graph<'_>, entry: usize) {
    let workflow = report.workflow;
    let index = |party: &Party| graph.index(party.as_str());
    let mut queue: Vec<usize> = vec![entry];
    queue.extend(workflow.recovery.rules.iter().filter_map(|rule| index(rule.target.as_ref()?)));
    let in_phases = workflow.phases.iter().flat_map(|step| &step.agents);
    queue.extend(in_phases.filter_map(|name| graph.index(name.as_str())));
    if let Some(council) = &workflow.council {
        queue.extend(council.members.iter().filter_map(|name| graph.index(name.as_str())));
        queue.extend(council.then.as_ref().and_then(index));
    }
    for route in &workflow.routes {
        if index(&route.from).is_none() {
            queue.extend(index(&route.to));
        }
    }
    let mut reached = vec![false; graph.names.len()];
    while let Some(one) = queue.pop() {
        if std::mem::replace(&mut reached[one], true) {
            continue;
        }
        queue.extend(&graph.next[one]);
        let name = Party::from(graph.names[one]);
        for route in workflow.routes.iter().filter(|route| route.from == name) {
            queue.extend(route.alternatives.iter().filter_map(index));
        }
        if let Some((_, agent)) = workflow.agent(&name) {
            queue.extend(
                agent.needs.iter().filter_map(|need| index(&workflow.provider(&need.source))),
            );
        }
    }
    for (_, name) in graph.names.iter().enumerate().filter(|(one, _)| !reached[*one]) {
        let entry = graph.names[entry];
        report.add_named(
            Diagnostic::error(
                "unreachable",
                &child("/agents", name),
                format!("no work ever gets to `{name}`"),
            )
            .help(format!("add a route to it from `{entry}`, or from one that is reached")),
        );
    }
}

/// Checks that the work can end from every agent.
fn ends(report: &mut Report<'_>, graph: &Graph<'_>, entry: usize) {
    for component in graph.components(entry) {
        let stays = |one: &usize| graph.next[*one].iter().all(|next| component.contains(next));
        let leaves = component.iter().any(|one| graph.leaves[*one]);
        if component.len() < 2 || leaves || !component.iter().all(stays) {
            continue;
        }
        let names = component.iter().map(|one| graph.names[*one]);
        let first = graph.names[component[0]];
        let message = format!("the work never ends: {} only hand to each other", listed(names));
        report.add_named(
            Diagnostic::error("no-end", &child("/agents", first), message).help(format!(
                "say who finishes: add a route, say from `{first}`, to `orchestrator`"
            )),
        );
    }
}

/// Checks that declared loops are well-formed, and form a cycle.
fn loops(report: &mut Report<'_>) {
    let workflow = report.workflow;
    let graph = Graph::of(workflow);
    let mut seen: Vec<(&str, BTreeSet<usize>)> = Vec::new();
    for (number, declared) in workflow.loops.iter().enumerate() {
        let at = format!("/loops/{number}");
        let between = format!("{at}/between");
        if declared.max_rounds < 2 {
            let message = format!(
                "the loop `{}` never goes round: who begins it could not hand on even once",
                declared.name
            );
            report.add(
                Diagnostic::error("broken-loop", &format!("{at}/max_rounds"), message)
                    .help("max_rounds says how often the first agent sees the work: 2 or more"),
            );
        }
        if seen.iter().any(|(name, _)| *name == declared.name) {
            let message = format!("there is another loop named `{}`", declared.name);
            report.add(Diagnostic::error("listed-twice", &format!("{at}/name"), message));
        }
        report.distinct(declared.between.iter().map(|name| name.as_str()), &between);
        let mut known = true;
        for (index, name) in declared.between.iter().enumerate() {
            known &= report.knows(name.as_str(), &format!("{between}/{index}"));
        }
        let members = members(&graph, declared);
        // A step belongs to the first loop that contains both its ends, so that rounds of the other
        // would be counted wrong.
        let shares =
            |(_, other): &&(&str, BTreeSet<usize>)| other.intersection(&members).count() > 1;
        if let Some((other, _)) = seen.iter().find(shares) {
            let message = format!("the loops `{other}` and `{}` share a step", declared.name);
            report.add(
                Diagnostic::error("overlapping-loops", &between, message)
                    .help("declare one loop between all of them: two loops may meet in one agent"),
            );
        }
        seen.push((&declared.name, members.clone()));
        if known && members.len() < 2 {
            let message = format!("the loop `{}` needs at least two agents", declared.name);
            report.add(Diagnostic::error("broken-loop", &between, message));
        } else if !report.names_are_wrong() {
            let gap = members.iter().find_map(|one| {
                let reached = graph.distances(*one, |other| members.contains(&other));
                members.iter().find(|other| reached[**other].is_none()).map(|other| (*one, *other))
            });
            if let Some((from, to)) = gap {
                let message = format!(
                    "the loop `{}` never comes round: no route in it leads from `{}` to `{}`",
                    declared.name, graph.names[from], graph.names[to]
                );
                report.add(Diagnostic::error("broken-loop", &between, message));
            }
        }
    }
}

fn members(graph: &Graph<'_>, declared: &Loop) -> BTreeSet<usize> {
    declared.between.iter().filter_map(|name| graph.index(name.as_str())).collect()
}

/// Checks that every cycle of routes is within one declared loop.
fn cycles(report: &mut Report<'_>, graph: &Graph<'_>, entry: usize) {
    let declared: Vec<_> =
        report.workflow.loops.iter().map(|declared| members(graph, declared)).collect();
    let meant = |cycle: &[usize]| {
        declared.iter().any(|members| cycle.iter().all(|one| members.contains(one)))
    };
    for component in graph.components(entry) {
        if component.len() < 2 || meant(&component) {
            continue;
        }
        let mut search = Search { graph, component: &component, steps: 0, cycles: Vec::new() };
        for (start, first) in component.iter().enumerate() {
            search.follow(start, &mut vec![*first], &meant);
        }
        search.cycles.sort_by_key(Vec::len);
        if search.cycles.is_empty() && search.steps >= MAX_STEPS {
            let names = component.iter().map(|one| graph.names[*one]);
            let message = format!("too many cycles between {} to check", listed(names));
            report.add(
                Diagnostic::error(UNDECLARED_CYCLE, "/routes", message)
                    .help("declare one loop between them all"),
            );
        }
        for cycle in search.cycles.iter().take(MAX_CYCLES) {
            let back = (cycle[cycle.len() - 1], cycle[0]);
            let route = graph.route.get(&back).copied().unwrap_or_default();
            let names: Vec<String> =
                cycle.iter().map(|one| format!("\"{}\"", graph.names[*one])).collect();
            report.add(
                Diagnostic::error(
                    UNDECLARED_CYCLE,
                    &format!("/routes/{route}/to"),
                    format!("no loop declares the cycle {}", graph.cycle_text(cycle)),
                )
                .help(format!(
                    "if it is meant, add [[loops]] with between = [{}] and max_rounds",
                    names.join(", ")
                )),
            );
        }
    }
}

/// A search for all undeclared cycles within a component.
struct Search<'a> {
    graph: &'a Graph<'a>,
    component: &'a [usize],
    steps: usize,
    cycles: Vec<Vec<usize>>,
}

impl Search<'_> {
    /// Follows routes from the end of `path`; only members from `start` on, so that each cycle is
    /// found once, at its first member.
    fn follow(&mut self, start: usize, path: &mut Vec<usize>, meant: &impl Fn(&[usize]) -> bool) {
        let Some(&here) = path.last() else { return };
        for &next in &self.graph.next[here] {
            self.steps += 1;
            if self.steps >= MAX_STEPS {
                return;
            }
            if next == path[0] {
                if !meant(path) {
                    self.cycles.push(path.clone());
                }
            } else if self.component[start..].contains(&next) && !path.contains(&next) {
                path.push(next);
                self.follow(start, path, meant);
                path.pop();
            }
        }
    }
}

/// Checks that the limits allow the path to every agent, and all rounds of every loop.
fn rounds(report: &mut Report<'_>, graph: &Graph<'_>, entry: usize) {
    let limits = &report.workflow.limits;
    let away = graph.distances(entry, |_| true);
    let far = (0..graph.names.len()).filter_map(|one| Some((away[one]?, one))).max();
    for (name, limit, whose) in [
        ("handoffs_per_item", limits.handoffs_per_item, "an item"),
        ("handoffs_per_run", limits.handoffs_per_run, "a run"),
    ] {
        let path = format!("/limits/{name}");
        let limit = u64::from(limit);
        let help = |need: u64| format!("set `{name}` in `[limits]` to {need} or more");
        if let Some((need, one)) = far.filter(|(need, _)| *need > limit) {
            let message = format!(
                "it takes {need} handoffs to get to `{}`, but {whose} may have {limit}",
                graph.names[one]
            );
            let diagnostic = Diagnostic::error("limit-too-small", &path, message);
            report.add_or(diagnostic.help(help(need)), &child("/agents", graph.names[one]));
            continue;
        }
        for (number, declared) in report.workflow.loops.iter().enumerate() {
            let members = members(graph, declared);
            let Some(way) = members.iter().filter_map(|one| away[*one]).min() else { continue };
            let round = members.len() as u64;
            let need = way + round * u64::from(declared.max_rounds.saturating_sub(1));
            if need > limit {
                let message = format!(
                    "{} rounds of the loop `{}`, and the way to it, take {need} handoffs, \
                     but {whose} may have {limit}",
                    declared.max_rounds, declared.name
                );
                let diagnostic = Diagnostic::error("limit-too-small", &path, message);
                report.add_or(diagnostic.help(help(need)), &format!("/loops/{number}/max_rounds"));
            }
        }
    }
}
