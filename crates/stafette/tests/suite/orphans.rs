//! Processes of agents that hide where they come from: without a sandbox, with nothing in their
//! environment, in a session of their own, and with parents that have ended.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use crate::world::{ECHO, World, gone, lives, program, state_of, until, until_so};

const ONE: &str = r#"
[workflow]
name = "one"
entry = "a"
[agents.a]
runner = "exec"
result = "exit"
command = ["sh", "a.sh"]
[retries]
max = 1
"#;

fn world(script: &str) -> World {
    World::with(ONE, &[("a.sh", script)])
}

/// Ways to be started by nobody: `ASK` stands for the command.
const DISGUISES: [(&str, &str); 9] = [
    ("orphan", "(ASK &)"),
    ("session", "setsid sh -c '(ASK &)'"),
    ("forked", "setsid --fork ASK"),
    ("twice", "( ( setsid sh -c '( ( ASK & ) & )' & ) & )"),
    ("nohup", "(nohup setsid nohup ASK > /dev/null 2>&1 &)"),
    ("closed", "(setsid ASK <&- >&- 2>&- &)"),
    ("deep", "(env -i setsid sh deep.sh 80 ASK &)"),
    ("elsewhere", "(cd / && setsid ASK &)"),
    ("renamed", "(setsid ./login ASK &)"),
];

/// What each of them tries: by the person's socket and by the command line.
const ASKS: &str = r#"
name=$1; socket=$2; folder=$3
cd "$folder"
while [ ! -e alone ]; do sleep 0.01; done
code=$(curl -s -o /dev/null -w '%{http_code}' --unix-socket "$socket" -X POST \
  -H 'Content-Type: application/json' --data "{\"name\":\"$name\",\"scope\":\"admin\"}" \
  http://localhost/v1/tokens)
echo "$name-socket $code" > "$name.new"
for words in "token create $name --scope admin" "trust --yes" "down"; do
  if SAYS $words > "$name.said" 2>&1; then code=200
  elif grep -q 'This is for a person' "$name.said"; then code=403
  else code="500 $(cat "$name.said")"; fi
  echo "$name-${words%% *} $code" >> "$name.new"
done
mv "$name.new" "$name.done"
"#;

fn disguised() -> World {
    let mut script = "cat > /dev/null\ncp \"$(command -v env)\" login\nexport HERE=$PWD\n\
        export SOCKET=\"${STAFETTE_SOCKET%agents.sock}daemon.sock\"\n"
        .to_owned();
    for (name, way) in DISGUISES {
        let ask =
            format!("env -i HOME=\"$HOME\" sh \"$HERE/asks.sh\" {name} \"$SOCKET\" \"$HERE\"");
        writeln!(script, "{}", way.replace("ASK", &ask)).expect("a text");
    }
    writeln!(
        script,
        "touch alone\nfor name in {}; do while [ ! -e $name.done ]; do sleep 0.01; done; done",
        DISGUISES.map(|(name, _)| name).join(" ")
    )
    .expect("a text");
    let world = world(&script);
    world.write("asks.sh", &ASKS.replace("SAYS", program()));
    world.write(
        "deep.sh",
        "depth=$1; shift\n[ $depth = 0 ] && { \"$@\"; exit; }\nsh deep.sh $((depth - 1)) \"$@\"; true\n",
    );
    world
}

fn none_was_a_person(world: &World) {
    let said: BTreeMap<String, String> = DISGUISES
        .iter()
        .flat_map(|(name, _)| {
            let done = world.read(&format!("{name}.done"));
            let lines: Vec<String> = done.lines().map(str::to_owned).collect();
            lines
        })
        .filter_map(|line| line.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())))
        .collect();
    assert_eq!(said.len(), 4 * DISGUISES.len(), "{said:#?}");
    let refused = |code: &str| matches!(code, "401" | "403");
    assert!(said.values().all(|code| refused(code)), "{said:#?}");
}

#[test]
fn b_21_an_agent_that_hides_where_it_comes_from_is_no_person() {
    let world = disguised();
    world.run(&["run", "x"]).ok();
    none_was_a_person(&world);
    let tokens = world.run(&["token", "list", "--json"]).ok().json();
    assert_eq!(tokens, serde_json::json!([]));
}

#[test]
fn b_21_an_agent_that_does_not_see_where_it_comes_from_trusts_nothing() {
    let script = r#"
cat > /dev/null
sed -i 's/"one"/"two"/' stafette.toml
for how in "--fork --pid --mount-proc" "--map-root-user --fork --pid --mount-proc"; do
  unshare $how true 2> /dev/null || continue
  unshare $how env -i HOME="$HOME" PATH="$PATH" SAYS trust --yes > said 2>&1
  echo "exit $?" >> said
  break
done
"#;
    let world = world(&script.replace("SAYS", program()));
    world.run(&["run", "x"]).ok();
    if !world.project().join("said").exists() {
        return eprintln!("this system lets nobody make a namespace for processes");
    }
    let said = world.read("said");
    assert!(said.contains("exit ") && !said.contains("exit 0"), "{said}");
    assert!(said.contains("agent"), "{said}");
    let trusted = world.run(&["trust", "--list", "--json"]).ok().json();
    assert_eq!(trusted["trusted"], false, "{trusted}");
    // A person goes on as before.
    world.run(&["trust", "--yes"]).ok();
}

#[test]
fn b_21_nor_is_one_of_a_run_in_the_foreground() {
    let world = disguised();
    world.run(&["run", "--foreground", "x"]).ok();
    none_was_a_person(&world);
}

/// Connects, and is gone before it is looked at: a child of it does the talking.
const LEAVES: &str = r#"
import os, socket, sys
for number in range(100):
    ours, theirs = os.pipe()
    if os.fork() == 0:
        line = socket.socket(socket.AF_UNIX)
        line.connect(sys.argv[1])
        if os.fork() == 0:
            os.close(theirs)
            os.read(ours, 1)
            line.sendall(b"GET /v1/tokens HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            print(line.recv(64).split(b" ")[1].decode(), flush=True)
        os._exit(0)
    os.close(ours)
    os.close(theirs)
    os.wait()
"#;

#[test]
fn b_21_a_caller_that_has_ended_when_it_is_looked_at_is_no_person() {
    let world = world(
        "cat > /dev/null\nenv -i PATH=\"$PATH\" HOME=\"$HOME\" python3 leaves.py \
         \"${STAFETTE_SOCKET%agents.sock}daemon.sock\" | cat > said\n",
    );
    world.write("leaves.py", LEAVES);
    world.run(&["run", "x"]).ok();
    let said = world.read("said");
    assert_eq!(said.lines().count(), 100, "{said}");
    assert!(said.lines().all(|code| matches!(code, "401" | "403")), "{said}");
}

/// The children of a process that have ended and were not waited for.
fn zombies(parent: u64) -> usize {
    let processes = fs::read_dir("/proc").expect("the table of processes").flatten();
    let stats = processes.filter_map(|it| fs::read_to_string(it.path().join("stat")).ok());
    stats.filter(|stat| stat.contains(&format!(") Z {parent} "))).count()
}

#[test]
fn b_21_a_thousand_orphans_are_let_go_and_agents_beside_them_end_as_they_did() {
    let world = World::new();
    let agent = |name: &str| {
        format!(
            "[agents.{name}]\nrunner = \"exec\"\nresult = \"exit\"\ncommand = [\"sh\", \"{name}.sh\"]\n"
        )
    };
    let agents = ["a", "b", "c", "d"];
    let routes: String = agents
        .windows(2)
        .map(|pair| format!("[[routes]]\nfrom = \"{}\"\nto = \"{}\"\n", pair[0], pair[1]))
        .collect();
    world.write(
        "stafette.toml",
        &format!(
            "[workflow]\nname = \"many\"\nentry = \"a\"\n{}{routes}[limits]\ncooldown = 0\n[retries]\nmax = 1\n",
            agents.map(agent).concat()
        ),
    );
    let orphans = "cat > /dev/null\ni=0\nwhile [ $i -lt 250 ]; do (env -i setsid true &); i=$((i + 1)); done\n";
    for pair in agents.windows(2) {
        let hands =
            format!("{} emit HANDOFF '{{\"to\":\"{}\",\"summary\":\"on\"}}'\n", program(), pair[1]);
        world.write(&format!("{}.sh", pair[0]), &format!("{orphans}{hands}"));
    }
    world.write("d.sh", &format!("{orphans}exit 7\n"));
    world.run(&["trust", "--yes"]).ok();
    let pid = world.up(&[]).expect("a daemon");
    // Four runs beside each other, with 1,000 orphans each.
    let runs = [(); 4].map(|()| world.run(&["run", "--detach", "x", "--json"]).ok().json());
    for run in runs {
        let run = run["run"].as_str().expect("a run").to_owned();
        let log = until("the end of a run", || {
            let log = world.run(&["log", &run]).ok().out;
            (log.contains("exit status 7") || log.contains("run_finished")).then_some(log)
        });
        assert_eq!(log.matches("turn_failed").count(), 1, "{log}");
        assert!(log.contains("exit status 7"), "{log}");
    }
    until_so("no orphan is kept", || zombies(pid) == 0);
    assert!(lives(pid));
}

#[test]
fn b_21_what_an_agent_leaves_behind_ends_with_its_daemon() {
    let world = world(
        "cat > /dev/null\n(env -i setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 1000' \
         > /dev/null 2>&1 &)\nwhile [ ! -e pid ]; do sleep 0.01; done\n",
    );
    world.run(&["run", "x"]).ok();
    let pid = world.read("pid").trim().parse().expect("a process");
    assert!(lives(pid), "the daemon takes it over");
    world.run(&["down"]).ok();
    gone(pid);
}

#[test]
fn b_21_an_agent_is_no_person_at_another_project_of_its_user() {
    for mode in ["off", "auto", "strict"] {
        let world = World::new();
        let other = world.home().join("other");
        fs::create_dir_all(&other).expect("another project");
        fs::write(other.join("stafette.toml"), ECHO).expect("a workflow");
        let other_name = other.display().to_string();
        world.run(&["up", "--project", &other_name]).ok();
        let socket = state_of(world.home(), &other).join("daemon.sock");
        world.write(
            "stafette.toml",
            &format!("{ONE}[limits]\ncooldown = 0\n")
                .replace("runner = \"exec\"", &format!("runner = \"exec\"\nsandbox = \"{mode}\"")),
        );
        world.write(
            "asks.sh",
            "while [ ! -e alone ]; do sleep 0.01; done\n\
             curl -s -o /dev/null -w '%{http_code}' --unix-socket \"$1\" -X POST \
             -H 'Content-Type: application/json' --data '{\"name\":\"mine\",\"scope\":\"admin\"}' \
             http://localhost/v1/tokens > said.new; mv said.new said\n",
        );
        world.write(
            "a.sh",
            &format!(
                "cat > /dev/null\n(env -i PATH=\"$PATH\" setsid sh asks.sh {} > /dev/null 2>&1 &)\n\
                 touch alone\nwhile [ ! -e said ]; do sleep 0.01; done\n",
                socket.display()
            ),
        );
        world.run(&["trust", "--yes"]).ok();
        let run = world.run(&["run", "x"]);
        let unable = run.out.contains("sandbox of a is strict");
        let said = world.read("said");
        // In a sandbox the socket is not there at all.
        let refused = if mode == "off" { said == "401" } else { said == "000" };
        assert!(unable || refused, "{mode}: {said} {run:?}");
        let tokens = world.run(&["token", "list", "--json", "--project", &other_name]).ok();
        assert_eq!(tokens.json(), serde_json::json!([]), "{mode}");
        world.run(&["down", "--project", &other_name]).ok();
    }
}
