//! Text of agents and repositories that tries to steer the terminal of its reader.

use serde_json::{Value, json};

use crate::terminal::Terminal;
use crate::world::{World, program, repository};

const WORKFLOW: &str = r#"
[workflow]
name = "hostile"
entry = "one"
[agents.one]
runner = "exec"
command = ["sh", "one.sh"]
[agents.two]
runner = "exec"
result = "exit"
command = ["true"]
[[routes]]
from = "one"
to = "two"
"#;

/// True for what a terminal obeys or hides: a clipboard, a title, a link, a direction, no width.
fn steers(c: char) -> bool {
    let hides = "\u{202a}\u{202b}\u{202d}\u{202e}\u{2066}\u{2069}\u{200b}\u{200e}\u{feff}\u{e0041}";
    c.is_control() && c != '\n' && c != '\t' || hides.contains(c)
}

#[test]
fn b_17_no_command_lets_the_text_of_an_agent_steer_the_terminal() {
    let world = World::workflow(WORKFLOW);
    let hostile = |word: &str| {
        format!("{word}\u{1b}]52;c;aGk=\u{7}\u{1b}]8;;http://x\u{1b}\\\u{9b}31m\u{202e}\u{200b}")
    };
    let document = repository().join("fixtures/wire/handoff-request.json");
    let document = std::fs::read_to_string(document).expect("a document");
    let mut handoff: Value = serde_json::from_str(&document).expect("JSON");
    handoff["sourceAgent"] = "one".into();
    handoff["handoffTo"] = "two".into();
    handoff["reasonDetail"] = hostile("detail").into();
    handoff["contextForTarget"]["summary"] = hostile("summary").into();
    handoff["contextForTarget"]["relevantOutputs"] = json!({ (hostile("key")): hostile("value") });
    let error = json!({ "code": "ODD", "message": hostile("message") });
    world.write(
        "one.sh",
        &format!(
            "cat >/dev/null\n'{0}' emit ERROR '{error}' || true\n'{0}' emit HANDOFF '{handoff}'\n",
            program()
        ),
    );
    world.run(&["trust", "--yes"]).ok();
    let followed = world.run(&["run", &hostile("request")]);
    let mut seen = vec![("run", followed)];
    for command in ["why", "log", "status", "handoffs", "inbox", "alerts", "cost", "context"] {
        seen.push((command, world.run(&[command])));
    }
    seen.push(("find", world.run(&["find", "summary"])));
    seen.push(("log --json", world.run(&["log", "--json"])));
    seen.push(("why --json", world.run(&["why", "--json"])));
    seen.push(("nothing", world.run(&["why", &hostile("nothing")])));
    seen.push(("report", world.run(&["report"])));
    for (command, said) in &seen {
        let all = format!("{}{}", said.out, said.err);
        let bad: Vec<char> = all.chars().filter(|c| steers(*c)).collect();
        assert!(bad.is_empty(), "{command} lets {bad:?} through: {all:?}");
    }
    let why = &seen[1].1;
    assert!(why.out.contains("key\u{fffd}]52"), "it is shown as what it is: {why:?}");
}

#[test]
fn b_17_the_words_of_an_agent_do_not_look_like_lines_of_ours() {
    let world = World::workflow(WORKFLOW);
    let error = json!({ "code": "ODD", "message": "odd\nerror: forged\n  fix: run curl" });
    let question = "Which?\n  h9 Raise the budget?  (orchestrator of 00000000)\n     answer:  x";
    let handoff = json!({ "to": "human", "question": question, "options": ["a", "b\n  h9 c"] });
    world.write(
        "one.sh",
        &format!(
            "cat >/dev/null\n'{0}' emit ERROR '{error}' || true\n'{0}' emit HANDOFF '{handoff}'\n",
            program()
        ),
    );
    world.run(&["trust", "--yes"]).ok();
    let request = "x\nerror: forged";
    for command in [&["run", request][..], &["inbox"], &["log"], &["find", "forged"], &["briefing"]]
    {
        let said = world.run(command);
        let forged = |line: &&str| {
            let line = line.trim_start();
            ["error:", "fix:", "h9", "answer:  x"].iter().any(|begin| line.starts_with(begin))
        };
        let all = format!("{}\n{}", said.out, said.err);
        assert_eq!(all.lines().find(forged), None, "{command:?}: {all}");
    }
}

#[test]
fn b_17_a_diff_is_clean_on_a_terminal_and_exact_for_another_program() {
    let world = World::workflow(WORKFLOW);
    let content = "let a = \"\u{202e}x\u{2066}\";\n\tb\u{1b}[2J\u{200b}\n";
    let change = json!({ "reason": "as asked", "codeChanges": [
        { "file": "a.rs", "action": "create", "content": content },
    ] });
    let document = change.to_string();
    world.run_with(&["changes", "propose", "-"], document.as_bytes(), &[]).ok();
    let piped = world.run(&["diff"]).ok().out;
    assert!(piped.contains("+let a = \"\u{202e}x\u{2066}\";\n+\tb\u{1b}[2J"), "{piped:?}");
    let mut diff = world.command(program());
    diff.arg("diff");
    let (_, shown) = Terminal::start(diff, 80, 24).ends();
    assert!(shown.contains("let a = \"\u{fffd}x\u{fffd}\";"), "{shown:?}");
    assert!(!shown.contains("\x1b[2J") && !shown.contains(['\u{202e}', '\u{200b}']), "{shown:?}");
}

#[test]
fn b_17_json_of_others_is_clean_on_a_terminal_and_exact_for_another_program() {
    let world = World::workflow(
        "[workflow]\nname = \"x\"\nentry = \"one\"\n[agents.one]\nrunner = \"pty\"\n\
         result = \"exit\"\ncommand = [\"sh\", \"one.sh\"]\n[retries]\nmax = 1\n",
    );
    let hostile = "a\u{202e}b\u{9b}2Jc";
    world.write("one.sh", &format!("printf 'bidi {hostile}\\n'\n"));
    world.write("frame", &format!("<<<ODEI:HANDOFF:{{\"to\":\"{hostile}\"}}>>>\n"));
    world.run(&["trust", "--yes"]).ok();
    // It leaves without an order, and what it printed is recorded.
    world.run(&["run", "x"]);
    for arguments in ["frames < frame", "replay latest one --export -"] {
        let line = format!("'{}' {arguments}", program());
        let shell = |line: &str| {
            let mut shell = world.command("sh");
            shell.args(["-c", line]);
            shell
        };
        let (_, shown) = Terminal::start(shell(&line), 200, 24).ends();
        let bad: Vec<char> = shown.chars().filter(|c| *c != '\r' && steers(*c)).collect();
        assert!(
            bad.is_empty() && shown.contains("\\u202e"),
            "{line} lets {bad:?} through: {shown:?}"
        );
        let piped = shell(&line).output().expect("it runs").stdout;
        assert!(String::from_utf8_lossy(&piped).contains('\u{202e}'), "{line}: {piped:?}");
    }
}

#[test]
fn b_17_what_inbox_says_to_type_holds_an_agents_option_as_one_word() {
    let world = World::workflow(WORKFLOW);
    let handoff =
        json!({ "to": "human", "question": "Fine?", "options": ["yes; touch 'pasted'", "no"] });
    let document = handoff.to_string().replace('\'', "'\\''");
    world.write("one.sh", &format!("cat >/dev/null\n'{}' emit HANDOFF '{document}'\n", program()));
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "x"]);
    let said = world.run(&["inbox"]).ok().out;
    let typed = said.lines().find_map(|line| line.trim_start().strip_prefix("answer:"));
    let typed = typed.expect("a line to type").trim().replacen("stafette", program(), 1);
    let done = world.command("sh").args(["-c", &typed]).output().expect("it runs");
    assert!(done.status.success() && !world.project().join("pasted").exists(), "{typed}: {done:?}");
}
