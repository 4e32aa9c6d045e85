//! Problems in limits, agents, recovery and the header.

use super::super::*;
use super::{BASE, changed, complaints, with};
use stafette_core::Millis;

#[test]
fn s2_11_counts_leave_room_for_the_loops() {
    insta::assert_snapshot!(changed("max_rounds = 2", "max_rounds = 6"), @"
    error[limit-too-small]: 6 rounds of the loop `edit`, and the way to it, take 10 handoffs, but an item may have 3
      --> stafette.toml:33:14
       |
    33 | max_rounds = 6
       |              ^
       = help: set `handoffs_per_item` in `[limits]` to 10 or more
    ");
    insta::assert_snapshot!(with("[limits]\nhandoffs_per_item = 1\nhandoffs_per_run = 20\n"), @"
    error[limit-too-small]: it takes 2 handoffs to get to `printer`, but an item may have 1
      --> stafette.toml:36:21
       |
    36 | handoffs_per_item = 1
       |                     ^
       = help: set `handoffs_per_item` in `[limits]` to 2 or more
    ");
    insta::assert_snapshot!(with("[limits]\nhandoffs_per_item = 30\n"), @"
    warning[never-reached]: an item may have 30 handoffs, but a run only 10
      --> stafette.toml:36:21
       |
    36 | handoffs_per_item = 30
       |                     ^^
    ");
}

#[test]
fn s2_11_clocks_run_in_order() {
    insta::assert_snapshot!(
        with("[limits]\naccept_timeout = \"5m\"\nlease = \"3h\"\nfinish_timeout = \"4m\"\n"), @r#"
        error[clock-order]: `accept_timeout` (5m 00s) is longer than `finish_timeout` (4m 00s)
          --> stafette.toml:36:18
           |
        36 | accept_timeout = "5m"
           |                  ^^^^
        error[clock-order]: `lease` (3h 00m) is longer than `finish_timeout` (4m 00s)
          --> stafette.toml:37:9
           |
        37 | lease = "3h"
           |         ^^^^
        "#);
    insta::assert_snapshot!(with("[limits]\nlease = \"0s\"\n"), @r#"
    error[zero-limit]: `lease` is zero: no turn could ever be done
      --> stafette.toml:36:9
       |
    36 | lease = "0s"
       |         ^^^^
    "#);
    insta::assert_snapshot!(with("[retries]\nbackoff = \"2m\"\n"), @r#"
    error[clock-order]: the first wait (2m 00s) is longer than the longest (1m 00s)
      --> stafette.toml:36:11
       |
    36 | backoff = "2m"
       |           ^^^^
    "#);
    insta::assert_snapshot!(with("[retries]\nmax = 0\njitter = 1.5\n"), @"
    error[zero-limit]: every turn needs at least one attempt
      --> stafette.toml:36:7
       |
    36 | max = 0
       |       ^
    error[bad-jitter]: the jitter is a part of the wait, from 0 to 1, not 1.5
      --> stafette.toml:37:10
       |
    37 | jitter = 1.5
       |          ^^^
    ");
}

#[test]
fn s2_11_limits_fit_the_time_budget() {
    insta::assert_snapshot!(with("[budget]\ntime = \"4h\"\n"), @r#"
    error[time-budget]: one handoff can take 6h 00m (3 attempts of 2h 00m, and the waits between them), but a run has only 4h 00m
      --> stafette.toml:36:8
       |
    36 | time = "4h"
       |        ^^^^
       = help: lower `finish_timeout` or `retries.max`, or give the run more time
    warning[late-answer]: a person has 7d to answer, but a run ends after 4h 00m
      --> stafette.toml:36:8
       |
    36 | time = "4h"
       |        ^^^^
       = help: lower `answer_timeout` in `[limits]`: waits for people count as time
    "#);
    insta::assert_snapshot!(with("[limits]\nanswer_timeout = \"1h\"\n[budget]\ntime = \"20h\"\n"), @r#"
    warning[time-budget]: 10 handoffs can take 2d at worst, but a run has only 20h 00m
      --> stafette.toml:38:8
       |
    38 | time = "20h"
       |        ^^^^^
       = help: a run that meets every timeout is cut short by its budget
    "#);
    insta::assert_snapshot!(with("[limits]\nfinish_timeout = \"300d\"\n"), @r#"
    error[time-budget]: one handoff can take 900d (3 attempts of 300d, and the waits between them), but a run has only 30d
      --> stafette.toml:36:18
       |
    36 | finish_timeout = "300d"
       |                  ^^^^^^
       = help: lower `finish_timeout` or `retries.max`, or give the run more time
    "#);
}

#[test]
fn s2_11_waits_are_counted_with_their_doubling_and_jitter() {
    let worst = |rest: &str| worst_case(&file::parse(&format!("{BASE}{rest}")).unwrap());
    let limits = "[limits]\nfinish_timeout = 1000\ncooldown = 0\n";
    let retries = "[retries]\nmax = 5\nbackoff = 100\nmax_backoff = 250\njitter = 0.5\n";
    // Five attempts of 1000; waits of 100, 200, 250 and 250, each half as long again.
    assert_eq!(worst(&format!("{limits}{retries}")), Millis(5000 + 1200));
    // The cooldown applies if it is longer.
    let cooled = limits.replace("cooldown = 0", "cooldown = 350");
    assert_eq!(worst(&format!("{cooled}{retries}")), Millis(5000 + 350 + 350 + 375 + 375));
    assert!(worst("[retries]\nmax = 4294967295\n") > Millis::hours(1_000_000));
}

#[test]
fn s2_11_a_profile_must_be_one_that_is_known() {
    use stafette_config::render;
    let text = BASE.replacen("command = [\"cat\"]", "profile = \"cluade\"", 1);
    let told = |known: &[&str]| -> String {
        let (_, found) = examine_with(&text, known);
        found.iter().map(|diagnostic| render(diagnostic, "stafette.toml", &text)).collect()
    };
    assert_eq!(told(&["cluade"]), "");
    insta::assert_snapshot!(told(&["claude", "codex"]), @r#"
    error[unknown-profile]: there is no profile `cluade`
     --> stafette.toml:7:11
      |
    7 | profile = "cluade"
      |           ^^^^^^^^
      = help: did you mean `claude`?
    "#);
    assert!(told(&["shell"]).contains("help: there are `shell`"));
}

#[test]
fn s2_11_agents_can_be_started_and_paid() {
    insta::assert_snapshot!(changed("command = [\"cat\"]\n", ""), @r#"
    error[no-command]: `writer` has no command to run
     --> stafette.toml:5:1
      |
    5 | [agents.writer]
      | ^^^^^^^^^^^^^^^
      = help: say what runs it: profile = "claude", or command = ["PROGRAM", …]
    "#);
    assert_eq!(changed("command = [\"cat\"]\n", "profile = \"claude\"\n"), "");
    insta::assert_snapshot!(changed("script = \"printer.toml\"\n", ""), @r#"
    error[no-script]: `printer` has no script to follow
      --> stafette.toml:13:1
       |
    13 | [agents.printer]
       | ^^^^^^^^^^^^^^^^
       = help: say which: script = "scripts/NAME.toml"
    "#);
    insta::assert_snapshot!(
        changed("script = \"printer.toml\"\n", "script = \"printer.toml\"\ncommand = [\"lp\"]\n"), @r#"
        warning[unused]: only agents with runner = "exec" use this
          --> stafette.toml:16:1
           |
        16 | command = ["lp"]
           | ^^^^^^^
        "#);
    insta::assert_snapshot!(
        changed("script =", "estimate = { money = \"6usd\" }\nscript ="), @r#"
        error[over-budget]: `printer` is expected to use 0 tokens and $6.00, but a run has only 2000000 tokens and $5.00
          --> stafette.toml:15:12
           |
        15 | estimate = { money = "6usd" }
           |            ^^^^^^^^^^^^^^^^^^
        "#);
}

#[test]
fn s2_07_every_need_has_a_provider() {
    let need = |source: &str, rest: &str| {
        with(&format!("[[agents.printer.needs]]\nkey = \"paper\"\nsource = \"{source}\"\n{rest}"))
    };
    assert_eq!(need("user", ""), "");
    insta::assert_snapshot!(need("markt", ""), @r#"
    error[unknown-source]: nobody provides `markt`, which `printer` needs
      --> stafette.toml:37:10
       |
    37 | source = "markt"
       |          ^^^^^^^
       = help: did you mean `market`?
    "#);
    insta::assert_snapshot!(need("mill", ""), @r#"
    error[unknown-source]: nobody provides `mill`, which `printer` needs
      --> stafette.toml:37:10
       |
    37 | source = "mill"
       |          ^^^^^^
       = help: say in `[sources]` who provides it
    "#);
    insta::assert_snapshot!(need("mill", "[sources]\nmill = \"printer\"\n"), @r#"
    error[own-provider]: `printer` would have to provide `mill` to itself
      --> stafette.toml:37:10
       |
    37 | source = "mill"
       |          ^^^^^^
       = help: give the source to someone else in `[sources]`
    "#);
    insta::assert_snapshot!(
        need("user", "[[agents.printer.needs]]\nkey = \"paper\"\nsource = \"user\"\n"), @"
        error[listed-twice]: `paper` is listed twice
          --> stafette.toml:38:1
           |
        38 | [[agents.printer.needs]]
           | ^^^^^^^^^^^^^^^^^^^^^^^^
        ");
}

#[test]
fn s2_09_recovery_rules_have_what_they_need() {
    let rule = |text: &str| with(&format!("[[recovery.rules]]\n{text}\n"));
    insta::assert_snapshot!(rule("action = \"retry_different_target\""), @r#"
    error[no-target]: there is nobody else to try
      --> stafette.toml:36:10
       |
    36 | action = "retry_different_target"
       |          ^^^^^^^^^^^^^^^^^^^^^^^^
       = help: name a `target` here, or `alternatives` on the route
    "#);
    insta::assert_snapshot!(rule("action = \"fallback_default\""), @r#"
    error[no-default]: there is no default to fall back to
      --> stafette.toml:36:10
       |
    36 | action = "fallback_default"
       |          ^^^^^^^^^^^^^^^^^^
       = help: give one: default = { KEY = "value" }
    "#);
    insta::assert_snapshot!(
        rule("to = \"editor\"\naction = \"retry_different_target\"\ntarget = \"editor\""), @r#"
        error[same-target]: the target is the one that failed
          --> stafette.toml:38:10
           |
        38 | target = "editor"
           |          ^^^^^^^^
        "#);
    insta::assert_snapshot!(
        rule("action = \"escalate\"\ntarget = \"editor\"\ndefault = { x = 1 }"), @r#"
        warning[unused]: only `retry_different_target` has a target
          --> stafette.toml:37:1
           |
        37 | target = "editor"
           | ^^^^^^
        warning[unused]: only `fallback_default` has a default
          --> stafette.toml:38:1
           |
        38 | default = { x = 1 }
           | ^^^^^^^
        "#);
    insta::assert_snapshot!(
        rule("on = \"failed\"\naction = \"escalate\"\n[[recovery.rules]]\nto = \"editor\"\n\
              on = \"failed\"\naction = \"skip_and_continue\""), @"
              warning[shadowed-rule]: rule 1 decides before this one ever can
                --> stafette.toml:38:1
                 |
              38 | [[recovery.rules]]
                 | ^^^^^^^^^^^^^^^^^^
                 = help: the first rule that fits decides: put the narrower one first
              ");
}

#[test]
fn s2_11_the_header_is_in_order() {
    insta::assert_snapshot!(
        changed("name = \"gazette\"", "name = \" \"\nschema_version = \"1.0\"\nframe_word = \"odei\""), @r#"
        error[empty]: the workflow has no name
         --> stafette.toml:2:8
          |
        2 | name = " "
          |        ^^^
        error[bad-version]: `1.0` is not a semantic version
         --> stafette.toml:3:18
          |
        3 | schema_version = "1.0"
          |                  ^^^^^
          = help: write three numbers, such as "1.0.0"
        error[bad-frame-word]: `odei` cannot be the word in control frames
         --> stafette.toml:4:14
          |
        4 | frame_word = "odei"
          |              ^^^^^^
          = help: use capital letters, digits and `_`
        "#);
    for good in ["1.0.0", "0.1.20", "2.0.0-rc.1+build.007", "1.0.0--"] {
        assert!(is_semver(good), "{good}");
    }
    for bad in
        ["", "1", "1.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0+", "1.0.0.0", "1.x.0"]
    {
        assert!(!is_semver(bad), "{bad}");
    }
}

#[test]
fn s2_11_a_workflow_has_agents_but_not_without_end() {
    let empty = "agents = {}\n[workflow]\nname = \"none\"\nentry = \"nobody\"\n";
    insta::assert_snapshot!(complaints(empty), @r#"
    error[no-agents]: the workflow has no agents
     --> stafette.toml:1:10
      |
    1 | agents = {}
      |          ^^
    error[unknown-agent]: `nobody` is not an agent of this workflow
     --> stafette.toml:4:9
      |
    4 | entry = "nobody"
      |         ^^^^^^^^
      = help: the workflow knows nobody
    "#);
    let crowd: String = (0..MAX_AGENTS)
        .map(|n| format!("[agents.a{n}]\nrunner = \"exec\"\ncommand = [\"cat\"]\n"))
        .collect();
    insta::assert_snapshot!(with(&crowd), @"
    error[too-many-agents]: 259 agents are more than 256
     --> stafette.toml:5:2
      |
    5 | [agents.writer]
      |  ^^^^^^
    ");
}

#[test]
fn s5_05_a_lock_that_could_not_be_held_is_a_mistake() {
    insta::assert_snapshot!(with("[locks]\non_conflict = \"skip\"\nlease = \"25h\"\n"), @r#"
    error[bad-lease]: a lock's lease lasts from 1ms to 24h 00m
      --> stafette.toml:37:9
       |
    37 | lease = "25h"
       |         ^^^^^
       = help: who needs a lock for longer renews it
    "#);
}

#[test]
fn b_16_hooks_and_triggers_that_could_not_work_are_named() {
    let wrong = |rest: &str, code: &str| {
        let said = with(rest);
        assert!(said.contains(code), "{rest}: {said}");
    };
    assert_eq!(with("[[hooks]]\non = \"handoff_created\"\ncommand = [\"true\"]\n"), "");
    assert_eq!(with("[[hooks]]\non = \"run_finished\"\ncommand = [\"true\"]\n"), "");
    wrong("[[hooks]]\non = \"befor_run\"\ncommand = [\"true\"]\n", "did you mean `before_run`?");
    wrong("[[hooks]]\non = \"question\"\ncommand = []\n", "no-command");
    wrong(
        "[[hooks]]\non = \"before_turn\"\ncommand = [\"true\"]\ntimeout = \"1m\"\n",
        "hook-timeout",
    );
    wrong("[[hooks]]\non = \"question\"\ncommand = [\"true\"]\nagents = [\"edtor\"]\n", "editor");
    let trigger = |rest: &str| format!("[[triggers]]\nname = \"night\"\n{rest}\n");
    assert_eq!(with(&trigger("cron = \"@daily\"\nrequest = \"Sweep ({time})\"")), "");
    wrong(&trigger("request = \"Sweep\""), "no-trigger");
    wrong(&trigger("webhook = true\nrequest = \"Sweep\""), "no-secret");
    wrong(&trigger("cron = \"0 25 * * *\"\nrequest = \"Sweep\""), "bad-cron");
    wrong(&trigger("cron = \"@daily\"\nrequest = \"{payload.a}\""), "bad-request");
    wrong(
        &trigger("cron = \"@daily\"\nrequest = \"Sweep\"\ntimezone = \"Mars/Base\""),
        "bad-timezone",
    );
}

#[test]
fn b_13_channels_that_could_not_work_are_named() {
    let wrong = |rest: &str, code: &str| {
        let said = with(rest);
        assert!(said.contains(code), "{rest}: {said}");
    };
    assert_eq!(with("[notify]\ndesktop = true\n"), "");
    wrong("[notify]\n", "not-heard");
    wrong("[notify.ntfy]\ntopic = \"a/b\"\n", "bad-topic");
    wrong("[notify.webhook]\nurl = \"ftp://a\"\nsecret_env = \"S\"\n", "bad-url");
    wrong("[notify.webhook]\nurl = \"https://me:pw@a/\"\nsecret_env = \"S\"\n", "secret-in-file");
    wrong("[notify]\ndesktop = true\nquiet = { from = \"25:00\", to = \"07:00\" }\n", "bad-time");
}

/// Returns three agents without routes, in these phases.
fn in_phases(phases: &str) -> String {
    complaints(&format!(
        r#"
limits = {{ handoffs_per_item = 9 }}
phases = [{phases}]
[workflow]
name = "p"
entry = "a"
[agents]
a = {{ runner = "exec", command = ["cat"] }}
b = {{ runner = "exec", command = ["cat"] }}
c = {{ runner = "exec", command = ["cat"] }}
"#
    ))
}

#[test]
fn s3_05_phases_have_agents_rules_that_can_be_met_and_ways_back_that_lead_back() {
    let all = r#"{ phase = "write", agents = ["c"] }, { phase = "parallel", agents = ["a", "b"] "#;
    assert_eq!(in_phases(&format!("{all}, back_to = \"write\", rule = \"1 of 2\" }}")), "");
    for (rest, said) in [
        ("rule = \"1 of 3\"", "`1 of 3` does not fit 2 agents"),
        ("rule = \"0 of 2\"", "`0 of 2` does not fit 2 agents"),
        ("back_to = \"validate\"", "there is no validate phase before this one"),
        ("part = \"parallel\"", "a part cannot have parts of its own"),
        ("rounds = 0", "a phase that is never entered is none"),
    ] {
        let complaints = in_phases(&format!("{all}, {rest} }}"));
        assert!(complaints.contains(said), "{complaints}");
    }
    for (phases, said) in [
        (r#"{ phase = "research", agents = [] }"#, "nobody works in the research phase"),
        (r#"{ phase = "write", agents = ["a", "b", "c"] }"#, "the write phase has 3 agents"),
        (r#"{ phase = "write", agents = ["d"] }"#, "`d` is not an agent"),
    ] {
        let complaints = in_phases(phases);
        assert!(complaints.contains(said), "{complaints}");
    }
    let many = [r#"{ phase = "parallel", agents = ["a", "b", "c"] }"#; 4].join(", ");
    assert!(in_phases(&many).contains("the phases are 12 handoffs, but only 9 are allowed"));
}

#[test]
fn s4_09_the_teams_own_program_is_a_file_of_the_project_that_can_be_built_and_tried() {
    let own = |build: &str, program: &str| {
        with(&format!("[self]\nbuild = {build}\nprogram = \"{program}\"\nprove = [\"true\"]"))
    };
    assert_eq!(own("[\"make\"]", "bin/x"), "");
    assert!(own("[]", "bin/x").contains("`build` has no command"));
    for program in ["", "../x", "/bin/x"] {
        let complaints = own("[\"make\"]", program);
        assert!(complaints.contains("is not a file in the project"), "{complaints}");
    }
}
