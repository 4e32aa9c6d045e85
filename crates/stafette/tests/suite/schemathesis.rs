//! Schemathesis tries the API as it is described: with what the description allows, and with what
//! it does not.

use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use crate::web::Web;
use crate::world::World;

/// How long it may take in all.
const PATIENCE: Duration = Duration::from_secs(1200);

/// Left out of its checks: that what the description allows is always taken, since many rules are
/// about what there is (a run that lives, a route); and that a method which an address does not
/// take is answered by 405, since the guard asks for JSON before it looks for the address.
const NOT: &str = "positive_data_acceptance,unsupported_method";

/// One would end the daemon, the other could take back the token that is used here.
const LEFT_OUT: [&str; 2] = ["stopDaemon", "revokeToken"];

/// Nobody waits, addresses name what is there, and it asks no faster than callers without
/// credentials are answered.
const CONFIG: &str = r#"
rate-limit = "100/s"

[parameters]
"query.within" = 0
"query.follow" = false
"path.run" = "latest"
"path.handoff" = "h1"
"#;

#[test]
fn b_11_schemathesis_finds_no_server_error_and_nothing_that_is_not_described() {
    let requirements = include_str!("../tools/schemathesis.txt");
    let folder = stafette_testkit::tools::python("schemathesis", requirements);
    let folder = folder.unwrap_or_else(|error| panic!("{error}"));
    let world = World::workflow(crate::doors::TEAM);
    let web = Web::up(&world);
    for request in ["one", "two"] {
        web.post("/v1/runs", &json!({ "request": request })).ok();
    }
    let config = world.home().join("schemathesis.toml");
    std::fs::write(&config, CONFIG).expect("written");
    let said = world.home().join("said.txt");
    let out = std::fs::File::create(&said).expect("a file");
    let errors = out.try_clone().expect("the same file");
    let mut child = world
        .command(folder.join("bin/st"))
        .current_dir(world.home())
        .arg("--config-file")
        .arg(&config)
        .arg("run")
        .arg(format!("http://127.0.0.1:{}/openapi.json", web.port))
        .args(["--header", &web.bearer()])
        .args(["--checks", "all", "--exclude-checks", NOT])
        .args(["--phases", "coverage,fuzzing", "--max-examples", "20", "--seed", "1"])
        .args(LEFT_OUT.iter().flat_map(|id| ["--exclude-operation-id", id]))
        .args(["--request-timeout", "120", "--continue-on-failure", "--no-color"])
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(errors)
        .spawn()
        .expect("it starts");
    let pid = child.id();
    let (done, ended) = mpsc::channel();
    let waiting = std::thread::spawn(move || done.send(child.wait()));
    let Ok(status) = ended.recv_timeout(PATIENCE) else {
        let _ = world.command("kill").args(["-9", &pid.to_string()]).status();
        let _ = waiting.join();
        panic!("it does not end: {}", std::fs::read_to_string(&said).unwrap_or_default());
    };
    let text = std::fs::read_to_string(&said).unwrap_or_default();
    assert!(status.expect("an end").success(), "{text}");
    let summary = text.split("SUMMARY").nth(1).unwrap_or_default();
    let api = web.get("/openapi.json").ok();
    let paths = api["paths"].as_object().expect("paths").values();
    let operations: usize =
        paths.filter_map(|item| item.as_object()).map(serde_json::Map::len).sum();
    let tested = format!("Tested: {}", operations - LEFT_OUT.len());
    assert!(summary.contains(&tested), "not all was tried: {summary}");
}
