//! A daemon that is there and does not answer: nobody waits for it in silence, or for ever.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::world::{Said, WAITS, World, program, until_so};

fn begin(world: &World, arguments: &[&str], input: Stdio) -> Child {
    let mut command = world.command(program());
    command.args(arguments).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// What it said; its input stays open until then.
fn end(mut child: Child) -> Said {
    let _input = child.stdin.take();
    let output = child.wait_with_output().expect("it ends");
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn signal(world: &World, name: &str, pid: u64) {
    let status = world.command("kill").args([name, &pid.to_string()]).status();
    assert!(status.expect("kill").success());
}

#[test]
fn b_22_nobody_waits_for_a_stopped_daemon_in_silence_or_for_ever() {
    let world = World::workflow(WAITS);
    let pid = world.up(&[]).expect("a daemon");
    // These listen to a quiet stream when the daemon is stopped.
    let run = begin(&world, &["run", "hello"], Stdio::null());
    until_so("the agent works", || world.project().join("begun").exists());
    let mcp = begin(&world, &["mcp"], Stdio::piped());
    let mut log = begin(&world, &["log", "--follow"], Stdio::null());
    let mut lines = BufReader::new(log.stdout.take().expect("its output"));
    lines.read_line(&mut String::new()).expect("the first event");
    signal(&world, "-STOP", pid);

    let commands: [&[&str]; 9] = [
        &["status"],
        &["run", "--detach", "again"],
        &["log"],
        &["inbox"],
        &["up"],
        &["down"],
        &["top", "--json"],
        &["token", "list"],
        &["lock", "src/**"],
    ];
    let asked: Vec<(String, Child)> = commands
        .into_iter()
        .map(|arguments| (arguments.join(" "), begin(&world, arguments, Stdio::null())))
        .collect();
    let doctor = begin(&world, &["doctor"], Stdio::null());
    let followed = [("run", run), ("mcp", mcp), ("log --follow", log)];
    let followed = followed.map(|(name, child)| (name.to_owned(), child));
    for (name, child) in asked.into_iter().chain(followed) {
        let said = end(child);
        assert_eq!(said.code, 7, "{name}: {said:?}");
        let waits = said.err.matches(&format!("waiting for the daemon (pid {pid})")).count();
        assert_eq!(waits, 1, "{name}: {said:?}");
        let error = format!("{}{}", said.err, said.out);
        assert!(error.contains(&format!("The daemon (pid {pid}) does not answer")), "{said:?}");
        assert!(error.contains(&format!("kill -KILL {pid}")), "{name}: {said:?}");
    }
    let said = end(doctor);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("does not answer"), "{said:?}");

    signal(&world, "-CONT", pid);
    world.write("go", "");
    assert_eq!(world.up(&[]), Some(pid), "the same one goes on");
    world.run(&["resume"]).ok();
}
