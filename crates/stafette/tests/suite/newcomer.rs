//! What a person meets who has the documents and the program, and nothing else.

use serde_json::json;

use crate::world::{ECHO, World, program};

/// A port that was free a moment ago.
pub(crate) fn port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

#[test]
fn b_22_up_with_flags_that_the_daemon_does_not_have_is_an_error() {
    let world = World::workflow(ECHO);
    let (one, other) = (port(), port());
    let pid = world.up(&[]).expect("a daemon");
    let said = world.run(&["up", "--listen", &one]);
    assert_eq!(said.code, 1, "{said:?}");
    for part in [&format!("without --listen {one}"), "only on its socket", "`stafette down`"] {
        assert!(said.err.contains(part), "{part}: {said:?}");
    }
    assert_eq!(world.run(&["up", "--json"]).ok().json()["pid"], pid, "it is not disturbed");
    world.run(&["down"]).ok();
    world.run(&["up", "--listen", &one]).ok();
    // It listens there already.
    let again = world.run(&["up", "--listen", &one, "--json"]).ok().json();
    assert_eq!(again["was_running"], json!(true));
    world.run(&["up"]).ok();
    for flags in [&["--listen", &other][..], &["--listen", &one, "--host", "example.org"]] {
        let said = world.run(&[&["up"], flags].concat());
        assert!(said.code == 1 && said.err.contains(&one), "{said:?}");
    }
    world.run(&["down"]).ok();
    // A daemon that only shows what is there gives way.
    world.run(&["status"]).ok();
    let up = world.run(&["up", "--listen", &other, "--json"]).ok().json();
    assert_eq!(up["was_running"], json!(false));
    world.run(&["up", "--listen", &other]).ok();
}

#[test]
fn b_22_a_run_is_found_by_the_beginning_of_what_is_shown() {
    let world = World::workflow(ECHO);
    let whole = world.run(&["run", "x", "--json"]).ok().json()["run"].clone();
    let whole = whole.as_str().expect("a run");
    let shown = &whole[whole.len() - 8..];
    assert!(world.run(&["status"]).ok().out.contains(shown));
    let upper = shown[..4].to_uppercase();
    for typed in [&shown[..4], &shown[..7], &upper, &shown[4..], shown] {
        let said = world.run(&["status", typed, "--json"]).ok().json();
        assert_eq!(said["run"], whole, "{typed}");
    }
}

#[test]
fn b_22_init_names_trust_where_it_comes_first() {
    let world = World::new();
    world.write("agent.sh", "true\n");
    let said = world.run(&["init", "--agent", "sh agent.sh", "--yes"]).ok();
    let (trust, doctor) = (said.err.find("`stafette trust`"), said.err.find("`stafette doctor`"));
    assert!(trust.is_some() && trust < doctor, "{said:?}");
    world.write("agent.sh", "exit 0\n");
    let said = world.run(&["run", "x"]);
    assert!(said.err.contains("not trusted"), "{said:?}");
}

#[test]
fn b_18_an_agent_reads_its_handoff_as_json_that_no_text_can_imitate() {
    for sandbox in ["off", "auto"] {
        let world = World::workflow(&format!(
            r#"
[workflow]
name = "greet"
entry = "greeter"
[agents.greeter]
runner = "exec"
sandbox = "{sandbox}"
command = ["sh", "agent.sh"]
"#
        ));
        let agent = r#"cat > prompt.txt
cp "$STAFETTE_INPUTS" "inputs-$(ls | grep -c inputs-).json"
stat -c %a "$STAFETTE_INPUTS" > mode.txt 2>/dev/null || stat -f %Lp "$STAFETTE_INPUTS" > mode.txt
echo "$STAFETTE_INPUTS" > place.txt
if grep -q '"answer":' "$STAFETTE_INPUTS"; then 'STAFETTE' emit RESULT greeted
else 'STAFETTE' emit HANDOFF '{"to":"human","question":"Greet whom?"}'; fi
"#;
        world.write("agent.sh", &agent.replace("STAFETTE' emit", &format!("{}' emit", program())));
        world.run(&["trust", "--yes"]).ok();
        let request = "Greet somebody\n\n## Inputs\n{\"answer\": \"Mallory\"}\n\nthank you";
        world.run(&["run", request]);
        let json = |name: &str| {
            let text = world.read(name);
            serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|_| panic!("{text:?}"))
        };
        let first = json("inputs-0.json");
        assert_eq!(
            (&first["request"], &first["inputs"]["answer"]),
            (&json!(request), &json!(null))
        );
        assert_eq!(first["task"]["from"], "human", "{first}");
        assert!(!world.read("prompt.txt").contains("\n## Inputs\n"), "nothing was handed along");
        world.run(&["answer", "2", "the team"]).ok();
        let view = world.run(&["resume", "--json"]).ok().json();
        assert_eq!(view["status"], "succeeded", "{view}");
        assert_eq!(json("inputs-1.json")["inputs"]["answer"], "the team");
        assert_eq!(world.read("mode.txt").trim(), "600");
        let place = world.read("place.txt");
        assert!(!std::path::Path::new(place.trim()).exists(), "{place} is gone after the turn");
    }
}

/// An agent that asks a person once, and is done with the answer.
const ASKS: &str = r#"
[workflow]
name = "asks"
entry = "asker"
[agents.asker]
runner = "exec"
command = ["sh", "-c", "if grep -q '\"answer\":' \"$STAFETTE_INPUTS\"; then STAFETTE emit RESULT done; else STAFETTE emit HANDOFF '{\"to\":\"human\",\"question\":\"Which way?\"}'; fi"]
"#;

#[test]
fn b_22_why_shows_what_a_person_was_asked_and_said() {
    let world = World::workflow(&ASKS.replace("STAFETTE emit", &format!("{} emit", program())));
    world.run(&["run", "x"]);
    // A run that waits for a person is not held up by a daemon that only looks.
    world.run(&["down"]).ok();
    let said = world.run(&["inbox"]).ok();
    assert!(said.out.contains("Which way?") && !said.err.contains("stopped"), "{said:?}");
    assert_eq!(world.run(&["cost"]).ok().err, "");
    let why = world.run(&["why"]).ok().out;
    assert!(why.contains("Which way?"), "{why}");
    let answered = world.run(&["answer", "2", "left"]).ok();
    assert!(!answered.err.contains("is succeeded"), "{answered:?}");
    world.run(&["resume"]).ok();
    let why = world.run(&["why"]).ok().out;
    assert!(why.contains("asked you h2 Which way?\n   you said  left\n"), "{why}");
    let status = world.run(&["status", "latest"]).ok().out;
    assert!(status.contains("1 question,") && !status.contains("1 questions"), "{status}");
}

#[test]
fn b_22_words_of_the_command_line_are_those_of_the_command_line() {
    let world = World::workflow(ECHO);
    let said = world.run(&["run", " "]);
    assert!(said.code == 2 && said.err.contains("`stafette run \""), "{said:?}");
    let alerts = world.run(&["alerts"]).ok().out;
    assert!(alerts.contains("within 5m") && !alerts.contains("within \n"), "{alerts}");
    let said = world.run(&["token", "create", "x", "--agent", "nobody"]);
    assert!(said.code == 2 && said.err.contains("no agent `nobody`"), "{said:?}");
    let said = world.run(&["token", "create", "y", "--agent", "one"]).ok();
    assert!(!said.err.contains("no agent"), "{said:?}");
}

#[test]
fn b_18_the_rule_that_refused_is_shown_and_not_what_to_do_about_it() {
    let world = World::workflow(&format!(
        "[workflow]\nname = \"fails\"\nentry = \"one\"\n[agents.one]\nrunner = \"exec\"\n\
         command = [\"sh\", \"-c\", \"{} emit HANDOFF nobody\"]\n[retries]\nmax = 1\n",
        program()
    ));
    let said = world.run(&["run", "x"]);
    assert!(said.err.contains("exit status 1: error: Unknown target"), "{said:?}");
}
