//! `stafette frames` on everything that a terminal can do to a frame.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::world::{World, program, repository};

fn frames(input: &[u8], more: &[&str]) -> Vec<Value> {
    let world = World::new();
    world.run_with(&[&["frames"], more].concat(), input, &[]).ok().lines()
}

#[test]
fn s1_17_a_program_in_a_terminal_has_its_frames_reported() {
    let script = r#"printf '\033[1m<<<ODEI:\033[0mREADY:{"stage":"discuss","ts":"2025-10-09T18:30:00Z"}>>>\n'"#;
    let found = frames(b"", &["--", "sh", "-c", script]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["type"], "READY");
    assert_eq!(found[0]["payload"]["stage"], "discuss");
    let failing = World::new().run(&["frames", "--", "sh", "-c", "exit 3"]);
    assert_eq!(failing.code, 1);
}

#[test]
fn s1_02_twenty_frames_in_one_read_and_brackets_inside_a_string() {
    let many: String = (0..20).map(|n| format!("x<<<ODEI:HANDOFF:s{n}>>>")).collect();
    let found = frames(many.as_bytes(), &[]);
    assert_eq!(found.len(), 20);
    assert_eq!(
        found[19],
        json!({"type": "HANDOFF", "payload": "s19", "offset": found[19]["offset"]})
    );
    let tricky = br#"<<<ODEI:ERROR:{"code":"X","message":"a >>> b"}>>>"#;
    assert_eq!(frames(tricky, &[])[0]["payload"]["message"], "a >>> b");
}

#[test]
fn s1_02_a_frame_that_is_styled_and_wrapped_at_forty_columns_is_one_frame() {
    let long = "wrapped-by-a-narrow-terminal-at-forty-columns";
    let styled = format!("\x1b[32m<<<ODEI:\x1b[1mHANDOFF\x1b[0m:{long}>>>\r\n");
    let found = frames(styled.as_bytes(), &["--screen", "40x10"]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["payload"], long);
    // Drawing the same screen again is not a second frame.
    let twice = format!("{styled}\x1b[2J\x1b[H{styled}");
    assert_eq!(frames(twice.as_bytes(), &["--screen", "40x10"]).len(), 1);
}

#[test]
fn s1_02_an_endless_frame_is_reported_in_bounded_memory() {
    let world = World::new();
    // 256 MiB through a process that may have far less.
    let script = format!(
        "ulimit -v 200000; (printf '<<<ODEI:HANDOFF:'; head -c 268435456 /dev/zero | tr '\\0' x; \
         printf '\\n\\n<<<ODEI:HANDOFF:after>>>') | '{}' frames",
        program()
    );
    let output = world.command("sh").args(["-c", &script]).output().expect("sh");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2, "{text} {}", String::from_utf8_lossy(&output.stderr));
    assert!(lines[0]["malformed"].is_string());
    assert_eq!(lines[1]["payload"], "after");
}

#[test]
fn s1_02_noise_is_no_frame_and_every_line_is_json() {
    let mut state = 7_u32;
    let noise: Vec<u8> = (0..200_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect();
    for more in [&[][..], &["--screen", "80x24"][..]] {
        for line in frames(&noise, more) {
            assert!(line["malformed"].is_string() || line["type"].is_string());
        }
    }
}

#[test]
fn s1_01_the_word_can_be_another() {
    assert_eq!(frames(b"<<<ODEI:A:b>>><<<TEAM:HANDOFF:x>>>", &["--word", "TEAM"]).len(), 1);
    assert_eq!(World::new().run(&["frames", "--word", "no good"]).code, 2);
    assert_eq!(World::new().run(&["frames", "--screen", "big"]).code, 2);
}

#[test]
fn s1_02_recordings_of_real_programs_show_every_visible_frame_once_and_spoofs_as_bare() {
    let folder = repository().join("fixtures/terminals");
    let expected = fs::read_to_string(folder.join("expected.json")).expect("expectations");
    let expected: Value = serde_json::from_str(&expected).expect("JSON");
    for (name, terminal) in expected.as_object().expect("an object") {
        let bytes = fs::read(folder.join(format!("{name}.bin"))).expect("a recording");
        let size = format!("{}x{}", terminal["cols"], terminal["rows"]);
        let found = frames(&bytes, &["--screen", &size]);
        let names: Vec<String> = found
            .iter()
            .map(|frame| match frame["payload"].as_str().expect("text") {
                "" => format!("ODEI:{}", frame["type"].as_str().expect("a type")),
                payload => format!("ODEI:{}:{payload}", frame["type"].as_str().expect("a type")),
            })
            .collect();
        let list = |key: &str| -> BTreeSet<String> {
            let items = terminal[key].as_array().into_iter().flatten();
            items.map(|item| item.as_str().expect("text").to_owned()).collect()
        };
        let seen: BTreeSet<String> = names.iter().cloned().collect();
        assert_eq!(seen.len(), names.len(), "{name}: each once");
        assert!(seen.is_superset(&list("visible")), "{name}: {seen:?}");
        assert!(seen.is_superset(&list("spoofs")), "{name}: {seen:?}");
        let real: BTreeSet<String> = list("sent").union(&list("spoofs")).cloned().collect();
        assert!(real.is_superset(&seen), "{name}: nothing invented");
        assert!(found.iter().all(|frame| frame["tier"] == "bare"), "{name}: none is trusted");
    }
}

#[test]
fn b_19_a_result_whose_status_is_called_state_counts_or_its_agent_reads_why_not() {
    let frame = |state: &str| {
        format!(r#"printf '<<<ODEI:RESULT:{{"state":"{state}","summary":"as asked"}}>>>\n'"#)
    };
    let script = format!(
        "cat > prompt\nif grep -q 'did you mean .status' prompt; then {}; else {}; fi\n",
        frame("resolved"),
        frame("completed"),
    );
    let workflow = "[workflow]\nname = \"one\"\nentry = \"one\"\ntrust_bare_frames = true\n\
                    [agents.one]\nrunner = \"exec\"\ncommand = [\"sh\", \"agent.sh\"]\n";
    let world = World::with(workflow, &[("agent.sh", &script)]);
    let said = world.run(&["run", "x", "--json"]).ok().json();
    assert_eq!(said["status"], "succeeded", "{said}");
    assert!(world.run(&["why", "h1"]).ok().out.contains("as asked"));
    assert!(world.read("prompt").contains("did you mean `status`"), "{}", world.read("prompt"));
}
