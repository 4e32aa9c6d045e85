//! The powers of a workflow: everything in it that acts, reads, is reached or reaches out, for the
//! person who has to trust it.
//!
//! Every type of the workflow is taken apart field by field, without `..`: whoever adds a field has
//! to decide here how it is shown, or the program does not compile.

#[cfg(test)]
mod tests;

use stafette_core::command;
use stafette_core::power::{Danger, Kind, Power, is_loopback, plain, word};
use stafette_core::workflow::alerts::{AlertRules, Threshold};
use stafette_core::workflow::changes::ChangeRules;
use stafette_core::workflow::council::CouncilRules;
use stafette_core::workflow::generations::GenerationRules;
use stafette_core::workflow::hooks::Hook;
use stafette_core::workflow::knowledge::{CalendarHome, Knowledge, Mind, Neo4j, People, Week};
use stafette_core::workflow::locks::LockRules;
use stafette_core::workflow::notify::{Notify, Ntfy, Quiet, Webhook};
use stafette_core::workflow::own::Own;
use stafette_core::workflow::phases::PhaseStep;
use stafette_core::workflow::server::Server;
use stafette_core::workflow::store::Store;
use stafette_core::workflow::telemetry::Telemetry;
use stafette_core::workflow::triggers::Trigger;
use stafette_core::workflow::weights::Weights;
use stafette_core::workflow::{
    Agent, AgentBudget, Budget, Coordination, Denied, Header, Limits, Loop, Need, PermissionLevel,
    Recovery, RecoveryRule, Retries, Route, Runner, Sandbox, Workflow,
};

/// What a run may spend before a person is asked for more.
fn at_most(Budget { money, tokens, handoffs, time }: &Budget) -> String {
    format!("at most {money}, {tokens} tokens, {handoffs} handoffs, {time}")
}

/// The commands of profiles, which are not part of the workflow.
pub type ProfileCommand<'a> = dyn Fn(&str, &Agent) -> Option<Vec<String>> + 'a;

/// Lists every power of a workflow, by kind. `profile` knows the command of a profile.
pub fn powers(workflow: &Workflow, profile: &ProfileCommand<'_>) -> Vec<Power> {
    let has_worktrees = workflow.workflow.worktrees;
    let mut found = Found { powers: Vec::new(), profile, has_worktrees };
    found.workflow(workflow);
    let mut powers = found.powers;
    powers.sort_by_key(|power| power.kind);
    powers
}

struct Found<'a> {
    powers: Vec<Power>,
    profile: &'a ProfileCommand<'a>,
    /// True if agents work in folders of their own.
    has_worktrees: bool,
}

impl Found<'_> {
    fn add(&mut self, power: Power) {
        self.powers.push(power);
    }

    /// A command, if there is one.
    fn command(&mut self, place: impl Into<String>, words: &[String]) {
        if !words.is_empty() {
            self.add(Power::command(place, words.to_vec()));
        }
    }

    /// A command that runs in the project, where agents without worktrees work.
    fn command_among_agents(&mut self, place: impl Into<String>, words: &[String]) {
        self.command(place, words);
        let is_one = !self.has_worktrees && command::runs_more(words);
        if let Some(power) = self.powers.last_mut().filter(|_| is_one && !words.is_empty()) {
            power.dangers.push(Danger::RunsMore);
        }
    }

    /// A text that agents follow, if there is one.
    fn text(&mut self, place: impl Into<String>, text: &str) {
        if !text.is_empty() {
            self.add(Power::instruction(place, text));
        }
    }

    fn workflow(&mut self, workflow: &Workflow) {
        let Workflow {
            workflow: header,
            agents,
            routes,
            deny,
            loops,
            phases,
            limits,
            retries,
            budget,
            // Who is asked for an input: an agent that is shown, or a person.
            sources: _,
            recovery,
            coordination,
            server,
            store,
            locks,
            changes,
            own,
            // The texts of files: whoever can read profiles shows what is in them.
            profiles: _,
            hooks,
            triggers,
            notify,
            alerts,
            telemetry,
            knowledge,
            council,
            generations,
        } = workflow;
        self.header(header);
        for (name, agent) in agents {
            self.agent(name.as_str(), agent);
        }
        for (number, route) in (1..).zip(routes) {
            self.route(number, route);
        }
        for (number, denied) in (1..).zip(deny) {
            self.denied(number, denied);
        }
        for (number, step) in (1..).zip(phases) {
            self.phase(number, step);
        }
        for (number, hook) in (1..).zip(hooks) {
            self.hook(number, hook);
        }
        self.add(Power::new(Kind::Spending, "budget", format!("a run: {}", at_most(budget))));
        for trigger in triggers {
            self.trigger(trigger, budget);
        }
        if let Some(Coordination { folder, keep: _ }) = coordination {
            self.add(Power::path("coordination.folder", folder));
        }
        self.server(server);
        let Store { url_env } = store;
        if let Some(name) = url_env {
            // The variable holds an address, which may hold a password.
            let power = Power::secret("store.url_env", name);
            self.add(Power { dangers: vec![Danger::Connects], ..power });
        }
        self.changes(changes);
        own.iter().for_each(|own| self.own(own));
        notify.iter().for_each(|notify| self.notify(notify));
        self.telemetry(telemetry);
        knowledge.iter().for_each(|knowledge| self.knowledge(knowledge));
        if let Some(generations) = generations {
            self.generations(generations);
        }
        self.recovery(recovery);
        powerless(loops, limits, retries, locks, alerts, council.as_ref());
    }

    fn header(&mut self, header: &Header) {
        let Header {
            name: _,
            entry: _,
            schema_version: _,
            frame_word: _,
            trust_bare_frames,
            // Folders of our own, and a branch for the result.
            worktrees: _,
        } = header;
        if *trust_bare_frames {
            let power = Power::new(Kind::Rule, "workflow.trust_bare_frames", "true".into());
            self.add(Power { dangers: vec![Danger::Printed], ..power });
        }
    }

    fn agent(&mut self, name: &str, agent: &Agent) {
        let Agent {
            role,
            prompt,
            runner,
            profile,
            command,
            script,
            url,
            bearer,
            prompt_via: _,
            result: _,
            env,
            ready_timeout: _,
            stall: _,
            sandbox,
            permissions,
            needs,
            estimate: _,
            budget: AgentBudget { money, tokens, handoffs, time },
            // The tools of its own turn.
            mcp: _,
        } = agent;
        let place = |key: &str| format!("agents.{name}.{key}");
        match runner {
            Runner::Exec | Runner::Pty | Runner::Acp => {
                let known = || (self.profile)(profile.as_ref()?, agent);
                match known().filter(|_| command.is_empty()) {
                    Some(words) => self.command(place("profile"), &words),
                    None => self.command(place("command"), command),
                }
            }
            Runner::Scripted => {
                let script = script.clone().unwrap_or_default();
                let words = ["stafette", "play"].map(str::to_owned).into_iter().chain([script]);
                self.command(place("script"), &words.collect::<Vec<_>>());
            }
            Runner::A2a | Runner::External => {}
        }
        let remote = url.as_deref().unwrap_or_default();
        url.iter().for_each(|url| self.add(Power::address(place("url"), url)));
        bearer.iter().for_each(|name| self.add(Power::sent(place("bearer"), name, remote)));
        env.iter().for_each(|name| self.add(Power::secret(place("env"), name)));
        if matches!(runner, Runner::Exec | Runner::Pty | Runner::Acp | Runner::Scripted) {
            let text = match sandbox {
                Sandbox::Off => "off: its processes have all rights of their user",
                Sandbox::Auto => "auto: as much as the system can enforce",
                Sandbox::Strict => "strict: complete, or it does not start",
            };
            self.add(Power::new(Kind::Sandbox, place("sandbox"), text.to_owned()));
            if *permissions == PermissionLevel::All {
                let text = "all: it acts without asking, within its sandbox";
                self.add(Power::new(Kind::Sandbox, place("permissions"), text.to_owned()));
            }
        }
        let limits = [
            money.map(|money| money.to_string()),
            tokens.map(|tokens| format!("{tokens} tokens")),
            handoffs.map(|handoffs| format!("{handoffs} handoffs")),
            time.map(|time| time.to_string()),
        ];
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        if !limits.is_empty() {
            let text = format!("of that at most {}", limits.join(", "));
            self.add(Power::new(Kind::Spending, place("budget"), text));
        }
        self.text(place("role"), role);
        self.text(place("prompt"), prompt);
        for Need { key, source: _, expected_type: _, description } in needs {
            self.text(place(&format!("needs.{}", plain(key))), description);
        }
    }

    fn route(&mut self, number: usize, route: &Route) {
        let Route { from, to, reason, requires: _, alternatives: _ } = route;
        self.text(
            format!("routes[{number}] {} → {}", plain(from.as_str()), plain(to.as_str())),
            reason,
        );
    }

    fn denied(&mut self, number: usize, denied: &Denied) {
        let Denied { from, to, why } = denied;
        self.text(format!("deny[{number}] {} → {}", plain(from.as_str()), plain(to.as_str())), why);
    }

    fn phase(&mut self, number: usize, step: &PhaseStep) {
        let PhaseStep {
            phase: _,
            agents: _,
            instructions,
            constraints,
            part: _,
            rule: _,
            back_to: _,
            rounds: _,
        } = step;
        self.text(format!("phases[{number}].instructions"), instructions);
        for constraint in constraints {
            self.text(format!("phases[{number}].constraints"), constraint);
        }
    }

    fn hook(&mut self, number: usize, hook: &Hook) {
        let Hook { on, command, timeout: _, agents: _, on_error: _, env } = hook;
        let place = format!("hooks[{number}] on {}", plain(on));
        self.command_among_agents(place.clone(), command);
        env.iter().for_each(|name| self.add(Power::secret(place.clone(), name)));
    }

    fn recovery(&mut self, recovery: &Recovery) {
        let Recovery { critical: _, rules } = recovery;
        for (number, rule) in (1..).zip(rules) {
            let RecoveryRule { to: _, on: _, action: _, target: _, default } = rule;
            // An agent gets these in place of what was asked for.
            for (name, value) in default {
                let place = format!("recovery.rules[{number}].default.{}", plain(name));
                self.text(place, &value.to_string());
            }
        }
    }

    fn generations(&mut self, generations: &GenerationRules) {
        let GenerationRules { context, pause: _, max_runs, max_cost, check_in_every } = generations;
        self.add(Power::path("generations.context", context));
        let asked = match check_in_every {
            0 => "nobody is asked between them".to_owned(),
            every => format!("a person is asked after every {every}"),
        };
        let text = format!("up to {max_runs} runs after each other, {max_cost} together; {asked}");
        self.add(Power::new(Kind::Spending, "generations", text));
    }

    fn trigger(&mut self, trigger: &Trigger, budget: &Budget) {
        let Trigger { name, cron, timezone, catch_up, webhook, secret_env, request } = trigger;
        let place = format!("triggers.{}", plain(name));
        if let Some(cron) = cron {
            let zone = timezone.as_ref().map(|zone| format!(" in {}", plain(zone)));
            let missed = if *catch_up { ", also for missed times" } else { "" };
            let text = format!("by the clock: {}{}{missed}", word(cron), zone.unwrap_or_default());
            self.add(Power::new(Kind::Trigger, place.clone(), text));
        }
        if *webhook {
            let text = format!("by POST /v1/triggers/{}", plain(name));
            self.add(Power::new(Kind::Trigger, place.clone(), text));
        }
        let power = Power::new(
            Kind::Spending,
            place.clone(),
            format!("each time it fires, a run: {}", at_most(budget)),
        );
        self.add(Power { dangers: vec![Danger::Endless], ..power });
        // Signatures are checked with it; it goes nowhere.
        secret_env.iter().for_each(|name| self.add(Power::secret(place.clone(), name)));
        self.text(format!("{place}.request"), request);
    }

    fn server(&mut self, server: &Server) {
        let Server { bind, tls_cert, tls_key, hosts, push } = server;
        if let Some(address) = bind {
            let dangers = if is_loopback(address) { vec![] } else { vec![Danger::Reachable] };
            let power = Power::new(Kind::Listener, "server.bind", plain(address));
            self.add(Power { dangers, ..power });
        }
        for host in hosts {
            let dangers = if is_loopback(host) { vec![] } else { vec![Danger::Name] };
            let power = Power::new(Kind::Listener, "server.hosts", plain(host));
            self.add(Power { dangers, ..power });
        }
        tls_cert.iter().for_each(|path| self.add(Power::path("server.tls_cert", path)));
        tls_key.iter().for_each(|path| self.add(Power::path("server.tls_key", path)));
        push.iter().for_each(|url| self.add(Power::address("server.push", url)));
    }

    fn changes(&mut self, changes: &ChangeRules) {
        let ChangeRules {
            validate,
            env,
            timeout: _,
            // A commit holds what was approved.
            commit: _,
            ask_always: _,
            own: _,
            protected: _,
            // Made from the commands, which are shown.
            named: _,
        } = changes;
        self.command_among_agents("changes.validate", validate);
        env.iter().for_each(|name| self.add(Power::secret("changes.env", name)));
    }

    fn own(&mut self, own: &Own) {
        let Own {
            build,
            build_timeout: _,
            program,
            prove,
            prove_timeout: _,
            start,
            env,
            settle: _,
        } = own;
        self.command("self.build", build);
        self.command("self.prove", prove);
        self.command("self.start", start);
        env.iter().for_each(|name| self.add(Power::secret("self.env", name)));
        self.add(Power::path("self.program", program));
    }

    fn notify(&mut self, notify: &Notify) {
        let Notify { on: _, desktop: _, ntfy, webhook, quiet, batch: _, per_hour: _, link } =
            notify;
        if let Some(Ntfy { url, topic, token_env }) = ntfy {
            let whole = format!("{}/{topic}", url.trim_end_matches('/'));
            self.add(Power::address("notify.ntfy", &whole));
            let sent = token_env.iter().map(|name| Power::sent("notify.ntfy.token_env", name, url));
            self.powers.extend(sent);
        }
        if let Some(Webhook { url, secret_env }) = webhook {
            self.add(Power::address("notify.webhook", url));
            // Messages are signed with it; it is not sent.
            self.add(Power::secret("notify.webhook.secret_env", secret_env));
        }
        if let Some(Quiet { from: _, to: _, timezone: _, except: _ }) = quiet {}
        link.iter().for_each(|url| self.add(Power::address("notify.link", url)));
    }

    fn telemetry(&mut self, telemetry: &Telemetry) {
        let Telemetry { otlp, protocol: _, headers } = telemetry;
        let Some(receiver) = otlp else { return };
        let receiver = match receiver.as_str() {
            "env" => "$OTEL_EXPORTER_OTLP_ENDPOINT",
            receiver => receiver,
        };
        self.add(Power::address("telemetry.otlp", receiver));
        for (header, name) in headers {
            let place = format!("telemetry.headers.{}", plain(header));
            self.add(Power::sent(place, name, receiver));
        }
    }

    fn knowledge(&mut self, knowledge: &Knowledge) {
        let Knowledge {
            graph: _,
            neo4j,
            constitution,
            goals,
            beside: _,
            calendar,
            week:
                Week { timezone: _, hours: _, days: _, buffer: _, shortest: _, longest: _, step: _ },
            people: People { when_away: _, quiet: _ },
            roi:
                Weights {
                    benefit: _,
                    goals: _,
                    cost: _,
                    hours: _,
                    risk: _,
                    hour_price: _,
                    goal_price: _,
                },
            mind: Mind { samples: _, share_samples: _, outlier_samples: _, runs: _ },
        } = knowledge;
        if let Some(Neo4j { uri, user_env, password_env, database: _ }) = neo4j {
            self.add(Power::address("knowledge.neo4j.uri", uri));
            self.login("knowledge.neo4j", user_env.as_deref(), password_env.as_deref(), uri);
        }
        constitution.iter().for_each(|path| self.add(Power::path("knowledge.constitution", path)));
        goals.iter().for_each(|path| self.add(Power::path("knowledge.goals", path)));
        let Some(calendar) = calendar else { return };
        let CalendarHome { folder, url, name: _, user_env, password_env, look: _, ahead: _ } =
            calendar;
        match url {
            Some(url) => {
                self.add(Power::address("knowledge.calendar.url", url));
                self.login("knowledge.calendar", user_env.as_deref(), password_env.as_deref(), url);
            }
            None => {
                let folder = folder.as_deref().unwrap_or("calendar");
                self.add(Power::path("knowledge.calendar.folder", folder));
            }
        }
    }

    /// The variables with a user's name and password at a server.
    fn login(&mut self, place: &str, user: Option<&str>, password: Option<&str>, url: &str) {
        for (key, name) in [("user_env", user), ("password_env", password)] {
            if let Some(name) = name {
                self.add(Power::sent(format!("{place}.{key}"), name, url));
            }
        }
    }
}

/// Types in which nothing acts, reads, is reached or reaches out: counts, times, and who works with
/// whom. They are taken apart all the same.
fn powerless(
    loops: &[Loop],
    limits: &Limits,
    retries: &Retries,
    locks: &LockRules,
    alerts: &AlertRules,
    council: Option<&CouncilRules>,
) {
    for Loop { name: _, between: _, max_rounds: _ } in loops {}
    let Limits {
        handoffs_per_item: _,
        handoffs_per_run: _,
        turns_per_handoff: _,
        refusals: _,
        cooldown: _,
        accept_timeout: _,
        ready_timeout: _,
        lease: _,
        finish_timeout: _,
        answer_timeout: _,
    } = limits;
    let Retries { max: _, backoff: _, max_backoff: _, jitter: _ } = retries;
    let LockRules { on_conflict: _, lease: _, wait: _ } = locks;
    let AlertRules { failed, escalated, circular_blocked, duration_ms_p95 } = alerts;
    for Threshold { above: _, within: _ } in [failed, escalated, circular_blocked, duration_ms_p95]
    {
    }
    let Some(CouncilRules {
        members: _,
        mode: _,
        quorum: _,
        blind_first_vote: _,
        weights: _,
        turns_per_agent: _,
        exhausted: _,
        then: _,
    }) = council
    else {
        return;
    };
}
