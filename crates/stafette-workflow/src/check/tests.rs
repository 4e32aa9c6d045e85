//! Every problem that the checker detects, and the messages that people read.

mod parts;

use super::*;
use stafette_config::render;

/// A writer, an editor who may send the text back, and a printer.
const BASE: &str = r#"[workflow]
name = "gazette"
entry = "writer"

[agents.writer]
runner = "exec"
command = ["cat"]

[agents.editor]
runner = "exec"
command = ["cat"]

[agents.printer]
runner = "scripted"
script = "printer.toml"

[[routes]]
from = "writer"
to = "editor"
requires = ["text"]

[[routes]]
from = "editor"
to = "writer"

[[routes]]
from = "editor"
to = "printer"

[[loops]]
name = "edit"
between = ["writer", "editor"]
max_rounds = 2
"#;

/// The profiles that come with the program.
const PROFILES: &[&str] =
    &["aider", "claude", "codex", "gemini", "goose", "opencode", "qwen", "shell"];

fn complaints(text: &str) -> String {
    let (source, diagnostics) = examine_with(text, PROFILES);
    assert!(source.is_some(), "the file should be readable");
    diagnostics.iter().map(|diagnostic| render(diagnostic, "stafette.toml", text)).collect()
}

/// Returns the base with something appended.
fn with(rest: &str) -> String {
    complaints(&format!("{BASE}\n{rest}"))
}

/// Returns the base with a replacement.
fn changed(old: &str, new: &str) -> String {
    assert!(BASE.contains(old), "nothing to change");
    complaints(&BASE.replacen(old, new, 1))
}

#[test]
fn s2_11_a_sound_workflow_passes() {
    assert_eq!(complaints(BASE), "");
}

#[test]
fn s2_11_the_templates_pass() {
    for text in [
        include_str!("../../../stafette/templates/feature.toml"),
        include_str!("../../../stafette/templates/odei.toml"),
        include_str!("../../../stafette/templates/phases.toml"),
        include_str!("../../../stafette/templates/council.toml"),
    ] {
        // `init` puts in the agent that it finds.
        assert_eq!(complaints(&text.replace("@agent@", "claude")), "");
    }
}

#[test]
fn s2_11_names_must_exist_and_the_meant_one_is_suggested() {
    insta::assert_snapshot!(changed("to = \"editor\"", "to = \"editer\""), @r#"
    error[unknown-agent]: `editer` is not an agent of this workflow
      --> stafette.toml:19:6
       |
    19 | to = "editer"
       |      ^^^^^^^^
       = help: did you mean `editor`?
    "#);
    insta::assert_snapshot!(changed("entry = \"writer\"", "entry = \"painter\""), @r#"
    error[unknown-agent]: `painter` is not an agent of this workflow
     --> stafette.toml:3:9
      |
    3 | entry = "painter"
      |         ^^^^^^^^^
      = help: did you mean `printer`?
    "#);
    insta::assert_snapshot!(with("[[deny]]\nfrom = \"printer\"\nto = \"humann\"\nwhy = \"no\"\n"), @r#"
    error[unknown-agent]: `humann` is not an agent of this workflow
      --> stafette.toml:37:6
       |
    37 | to = "humann"
       |      ^^^^^^^^
       = help: did you mean `human`?
    "#);
    insta::assert_snapshot!(changed("\"writer\", \"editor\"]", "\"writer\", \"Editor\"]"), @r#"
    error[unknown-agent]: `Editor` is not an agent of this workflow
      --> stafette.toml:32:22
       |
    32 | between = ["writer", "Editor"]
       |                      ^^^^^^^^
       = help: did you mean `editor`?
    "#);
    insta::assert_snapshot!(with("[sources]\narchive = \"librarian\"\n"), @r#"
    error[unknown-agent]: `librarian` is not an agent of this workflow
      --> stafette.toml:36:11
       |
    36 | archive = "librarian"
       |           ^^^^^^^^^^^
       = help: the workflow knows `editor`, `printer` and `writer`
    "#);
    insta::assert_snapshot!(
        with("[[recovery.rules]]\nto = \"prnter\"\naction = \"escalate\"\n"), @r#"
        error[unknown-agent]: `prnter` is not an agent of this workflow
          --> stafette.toml:36:6
           |
        36 | to = "prnter"
           |      ^^^^^^^^
           = help: did you mean `printer`?
        "#);
    insta::assert_snapshot!(
        changed("requires = [\"text\"]", "alternatives = [\"editor2\"]"), @r#"
        error[unknown-agent]: `editor2` is not an agent of this workflow
          --> stafette.toml:20:17
           |
        20 | alternatives = ["editor2"]
           |                 ^^^^^^^^^
           = help: did you mean `editor`?
        "#);
}

#[test]
fn s2_11_every_agent_is_reached() {
    insta::assert_snapshot!(with("[agents.critic]\nrunner = \"exec\"\ncommand = [\"cat\"]\n"), @"
    error[unreachable]: no work ever gets to `critic`
      --> stafette.toml:35:9
       |
    35 | [agents.critic]
       |         ^^^^^^
       = help: add a route to it from `writer`, or from one that is reached
    ");
}

#[test]
fn s2_11_an_agent_is_also_reached_as_a_provider_an_alternative_or_a_second_choice() {
    let critic = "[agents.critic]\nrunner = \"exec\"\ncommand = [\"cat\"]\n";
    let needed = "[[agents.printer.needs]]\nkey = \"verdict\"\nsource = \"critics\"\n\
                  [sources]\ncritics = \"critic\"\n";
    assert_eq!(with(&format!("{critic}{needed}")), "");
    let rule = "[[recovery.rules]]\nto = \"editor\"\naction = \"retry_different_target\"\n\
                target = \"critic\"\n";
    assert_eq!(with(&format!("{critic}{rule}")), "");
    let other = BASE.replace("requires = [\"text\"]", "alternatives = [\"critic\"]");
    assert_eq!(complaints(&format!("{other}{critic}")), "");
}

#[test]
fn s2_11_the_work_must_be_able_to_end() {
    let endless = BASE
        .replace("from = \"editor\"\nto = \"printer\"", "from = \"writer\"\nto = \"printer\"")
        + "[[routes]]\nfrom = \"printer\"\nto = \"editor\"\n";
    let endless =
        endless.replace("\"writer\", \"editor\"]", "\"writer\", \"editor\", \"printer\"]");
    let endless = format!("{endless}[limits]\nhandoffs_per_item = 5\n");
    insta::assert_snapshot!(complaints(&endless), @"
    error[no-end]: the work never ends: `writer`, `editor` and `printer` only hand to each other
     --> stafette.toml:5:9
      |
    5 | [agents.writer]
      |         ^^^^^^
      = help: say who finishes: add a route, say from `writer`, to `orchestrator`
    ");
    let ending = format!("{endless}[[routes]]\nfrom = \"editor\"\nto = \"orchestrator\"\n");
    assert_eq!(complaints(&ending), "");
}

#[test]
fn s2_05_a_cycle_that_no_loop_declares_is_shown_whole() {
    let undeclared = &BASE[..BASE.find("[[loops]]").unwrap()];
    insta::assert_snapshot!(complaints(undeclared), @r#"
    error[undeclared-cycle]: no loop declares the cycle writer → editor → writer
      --> stafette.toml:24:6
       |
    24 | to = "writer"
       |      ^^^^^^^^
       = help: if it is meant, add [[loops]] with between = ["writer", "editor"] and max_rounds
    "#);
}

#[test]
fn s2_05_a_larger_cycle_is_not_excused_by_the_small_loops_in_it() {
    let pair = |a: &str, b: &str| {
        format!(
            "[[routes]]\nfrom = \"{a}\"\nto = \"{b}\"\n[[routes]]\nfrom = \"{b}\"\nto = \"{a}\"\n"
        )
    };
    let declared = |a: &str, b: &str| {
        format!("[[loops]]\nname = \"{a}{b}\"\nbetween = [\"{a}\", \"{b}\"]\nmax_rounds = 2\n")
    };
    let text = BASE[..BASE.find("[[routes]]").unwrap()].to_owned()
        + "[[routes]]\nfrom = \"printer\"\nto = \"orchestrator\"\n"
        + &pair("writer", "editor")
        + &pair("editor", "printer")
        + &pair("printer", "writer")
        + &declared("writer", "editor")
        + &declared("editor", "printer")
        + &declared("printer", "writer");
    insta::assert_snapshot!(complaints(&text), @r#"
    error[undeclared-cycle]: no loop declares the cycle writer → printer → editor → writer
      --> stafette.toml:25:6
       |
    25 | to = "writer"
       |      ^^^^^^^^
       = help: if it is meant, add [[loops]] with between = ["writer", "printer", "editor"] and max_rounds
    error[undeclared-cycle]: no loop declares the cycle writer → editor → printer → writer
      --> stafette.toml:34:6
       |
    34 | to = "writer"
       |      ^^^^^^^^
       = help: if it is meant, add [[loops]] with between = ["writer", "editor", "printer"] and max_rounds
    "#);
}

#[test]
fn s2_05_loops_have_members_rounds_and_a_way_round() {
    insta::assert_snapshot!(changed("\"writer\", \"editor\"]", "\"editor\", \"printer\"]"), @r#"
    error[undeclared-cycle]: no loop declares the cycle writer → editor → writer
      --> stafette.toml:24:6
       |
    24 | to = "writer"
       |      ^^^^^^^^
       = help: if it is meant, add [[loops]] with between = ["writer", "editor"] and max_rounds
    error[broken-loop]: the loop `edit` never comes round: no route in it leads from `printer` to `editor`
      --> stafette.toml:32:11
       |
    32 | between = ["editor", "printer"]
       |           ^^^^^^^^^^^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(changed("\"writer\", \"editor\"]", "\"writer\"]"), @r#"
    error[undeclared-cycle]: no loop declares the cycle writer → editor → writer
      --> stafette.toml:24:6
       |
    24 | to = "writer"
       |      ^^^^^^^^
       = help: if it is meant, add [[loops]] with between = ["writer", "editor"] and max_rounds
    error[broken-loop]: the loop `edit` needs at least two agents
      --> stafette.toml:32:11
       |
    32 | between = ["writer"]
       |           ^^^^^^^^^^
    "#);
    insta::assert_snapshot!(changed("max_rounds = 2", "max_rounds = 1"), @"
    error[broken-loop]: the loop `edit` never goes round: who begins it could not hand on even once
      --> stafette.toml:33:14
       |
    33 | max_rounds = 1
       |              ^
       = help: max_rounds says how often the first agent sees the work: 2 or more
    ");
    insta::assert_snapshot!(
        with("[[loops]]\nname = \"edit\"\nbetween = [\"editor\", \"writer\"]\nmax_rounds = 2\n"), @r#"
        error[listed-twice]: there is another loop named `edit`
          --> stafette.toml:36:8
           |
        36 | name = "edit"
           |        ^^^^^^
        error[overlapping-loops]: the loops `edit` and `edit` share a step
          --> stafette.toml:37:11
           |
        37 | between = ["editor", "writer"]
           |           ^^^^^^^^^^^^^^^^^^^^
           = help: declare one loop between all of them: two loops may meet in one agent
        "#);
}

#[test]
fn s2_02_a_route_is_allowed_or_denied_not_both_and_said_once() {
    insta::assert_snapshot!(
        with("[[deny]]\nfrom = \"editor\"\nto = \"printer\"\nwhy = \"ink is dear\"\n"), @r#"
        error[route-denied]: `editor → printer` is both allowed and denied
          --> stafette.toml:28:6
           |
        28 | to = "printer"
           |      ^^^^^^^^^
           = help: it is denied because: ink is dear
        "#);
    insta::assert_snapshot!(with("[[routes]]\nfrom = \"editor\"\nto = \"printer\"\n"), @"
    warning[duplicate-route]: `editor → printer` is allowed twice
      --> stafette.toml:35:1
       |
    35 | [[routes]]
       | ^^^^^^^^^^
       = help: the first of them counts
    ");
    insta::assert_snapshot!(with("[[routes]]\nfrom = \"printer\"\nto = \"printer\"\n"), @r#"
    error[self-route]: `printer` cannot hand to itself
      --> stafette.toml:37:6
       |
    37 | to = "printer"
       |      ^^^^^^^^^
       = help: an agent that goes on needs no handoff
    "#);
    insta::assert_snapshot!(changed("[\"text\"]", "[\"text\", \"title\", \"text\"]"), @r#"
    error[listed-twice]: `text` is listed twice
      --> stafette.toml:20:30
       |
    20 | requires = ["text", "title", "text"]
       |                              ^^^^^^
    "#);
    insta::assert_snapshot!(changed("requires = [\"text\"]", "alternatives = [\"writer\"]"), @r#"
    error[no-alternative]: `writer` is no alternative on `writer → editor`
      --> stafette.toml:20:17
       |
    20 | alternatives = ["writer"]
       |                 ^^^^^^^^
    "#);
    insta::assert_snapshot!(
        with("[[routes]]\nfrom = \"printer\"\nto = \"human\"\nrequires = [\"proof\"]\n"), @r#"
        warning[unused]: nothing is required on the way to `human`
          --> stafette.toml:38:1
           |
        38 | requires = ["proof"]
           | ^^^^^^^^
        "#);
}

#[test]
fn s2_11_a_person_can_always_be_asked() {
    insta::assert_snapshot!(with("[[deny]]\nfrom = \"writer\"\nto = \"human\"\nwhy = \"shy\"\n"), @r#"
    error[no-escalation]: `writer` may always ask a person
      --> stafette.toml:37:6
       |
    37 | to = "human"
       |      ^^^^^^^
       = help: take this entry out: every agent keeps a way to a person
    "#);
    insta::assert_snapshot!(
        with("[[deny]]\nfrom = \"writer\"\nto = \"orchestrator\"\nwhy = \"\"\n"), @r#"
        error[reserved]: `writer` may always hand to `orchestrator`
          --> stafette.toml:37:6
           |
        37 | to = "orchestrator"
           |      ^^^^^^^^^^^^^^
        error[empty]: say why: it is the answer that an agent gets
          --> stafette.toml:38:7
           |
        38 | why = ""
           |       ^^
        "#);
    insta::assert_snapshot!(
        with("[[deny]]\nfrom = \"human\"\nto = \"writer\"\nwhy = \"busy\"\n"), @r#"
        error[reserved]: `human` may hand to everyone
          --> stafette.toml:36:8
           |
        36 | from = "human"
           |        ^^^^^^^
        "#);
    insta::assert_snapshot!(with("[limits]\nanswer_timeout = 0\n"), @"
    error[no-escalation]: nobody can be asked: there is no time to answer
      --> stafette.toml:36:18
       |
    36 | answer_timeout = 0
       |                  ^
    ");
}

#[test]
fn s2_05_a_dense_web_of_routes_is_answered_in_time() {
    let mut text = String::from("[workflow]\nname = \"web\"\nentry = \"a00\"\n");
    for n in 0..24 {
        text += &format!("[agents.a{n:02}]\nrunner = \"exec\"\ncommand = [\"cat\"]\n");
    }
    for (a, b) in (0..24).flat_map(|a| (0..24).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        text += &format!("[[routes]]\nfrom = \"a{a:02}\"\nto = \"a{b:02}\"\n");
    }
    let (_, found) = examine_with(&text, PROFILES);
    let cycles = found.iter().filter(|diagnostic| diagnostic.code == UNDECLARED_CYCLE).count();
    assert!((1..=3).contains(&cycles), "{cycles}");
}

#[test]
fn s2_11_a_file_that_breaks_off_anywhere_is_answered() {
    for (end, _) in BASE.char_indices() {
        let text = &BASE[..end];
        for diagnostic in examine_with(text, PROFILES).1 {
            assert!(render(&diagnostic, "stafette.toml", text).contains(diagnostic.code));
        }
    }
}
