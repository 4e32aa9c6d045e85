use serde_json::json;

use super::*;
use crate::prompt::tests::job;

#[test]
fn a_script_is_read_step_by_step() {
    let script = Script::parse(
        r#"
        ledger = "../ledger/builder.jsonl"
        [[turn]]
        when = { round = 2, turn = 2, has = ["commit"], lacks = ["findings"] }
        steps = [
            { say = "on it" },
            { write = "src/auth.rs", text = "fn login() {}" },
            { append = "notes.md", text = "- auth" },
            { run = "cargo test", ok = false },
            { commit = "builder: add auth" },
            { wait = "200ms" },
            { report = { tokens = 900, usd = 0.01 } },
            { emit = "HANDOFF", payload = { to = "reviewer", commit = "{commit}", rounds = [1, 2] } },
            { exit = 3 },
            { crash = true },
            { hang = true },
        ]
        [[turn]]
        "#,
    )
    .unwrap();
    assert_eq!(script.ledger.as_deref(), Some(Path::new("../ledger/builder.jsonl")));
    let steps = &script.turn_for(&job().order).unwrap().steps;
    assert_eq!(steps.len(), 11);
    assert_eq!(steps[3], Step::Run { command: "cargo test".into(), ok: false });
    assert_eq!(steps[5], Step::Wait(Millis(200)));
    assert_eq!(steps[6], Step::Report { tokens: 900, usd: Usd(10_000), note: None });
    let payload = json!({"to": "reviewer", "commit": "{commit}", "rounds": [1, 2]});
    assert_eq!(steps[7], Step::Emit { kind: "HANDOFF".into(), payload });
    assert_eq!(steps[8..], [Step::Exit(3), Step::Crash, Step::Hang]);
}

#[test]
fn the_first_turn_that_fits_is_taken() {
    let script = Script::parse(
        r#"
        turn = [
            { when = { attempt = 2 }, steps = [{ say = "again" }] },
            { when = { delivery = 2 }, steps = [{ say = "once more" }] },
            { when = { lacks = ["commit"] }, steps = [{ say = "without" }] },
            { when = { round = 2 }, steps = [{ say = "second round" }] },
        ]
        "#,
    )
    .unwrap();
    let said = |order: &TurnOrder| script.turn_for(order).map(|turn| turn.steps[0].clone());
    let say = |text: &str| Some(Step::Say(text.into()));
    let mut order = job().order;
    assert_eq!(said(&order), say("second round"));
    order.deliveries = 2;
    assert_eq!(said(&order), say("once more"));
    order.key.attempt = 2;
    assert_eq!(said(&order), say("again"));
    order = TurnOrder { round: 1, ..job().order };
    assert_eq!(said(&order), None);
    order.inputs.clear();
    assert_eq!(said(&order), say("without"));
}

#[test]
fn mistakes_come_with_their_place() {
    let cases = [
        ("[[turn]]\nsteps = [{ shout = \"x\" }]", 2, 12, "unknown field `shout`"),
        ("[[turn]]\nwhen = { rund = 1 }", 2, 10, "unknown field `rund`"),
        ("[[turn]]\nsteps = [\n  { say = \"a\", run = \"b\" },\n]", 3, 3, "several steps"),
        ("[[turn]]\nsteps = [\n  { say = \"a\" },\n  {},\n]", 4, 3, "does nothing"),
        ("[[turn]]\nsteps = [{ write = \"a\" }]", 2, 10, "`write` needs `text`"),
        ("[[turn]]\nsteps = [{ write = \"../a\", text = \"\" }]", 2, 10, "not a file in"),
        ("[[turn]]\nsteps = [{ append = \"/etc/a\", text = \"\" }]", 2, 10, "not a file in"),
        ("[[turn]]\nsteps = [{ say = \"a\", text = \"b\" }]", 2, 10, "`text` does not belong"),
        ("[[turn]]\nsteps = [{ emit = \"BYE\" }]", 2, 10, "`BYE` is not a signal"),
        ("[[turn]]\nsteps = [{ emit = \"HANDOFF\" }]", 2, 10, "needs a `payload`"),
        ("[[turn]]\nsteps = [{ wait = \"soon\" }]", 2, 19, "not a length of time"),
    ];
    for (text, at_line, at_column, expected) in cases {
        match Script::parse(text) {
            Err(ScriptError::Wrong { line, column, message }) => {
                assert!(message.contains(expected), "{message}");
                assert_eq!((line, column), (at_line, at_column), "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn placeholders_are_filled_once_and_never_into_code() {
    let mut blanks = Blanks::of(&job().order);
    blanks.request = "Add {key}; rm -rf /".into();
    blanks.commit = "abc".into();
    assert_eq!(blanks.fill("{round}: {request} {other} {"), "2: Add {key}; rm -rf / {other} {");
    assert_eq!(blanks.fill_command("echo {commit} {request}"), "echo abc {request}");
    let filled = blanks.fill_value(&json!({"a": ["{commit}", 1]}));
    assert_eq!(filled, json!({"a": ["abc", 1]}));
}
