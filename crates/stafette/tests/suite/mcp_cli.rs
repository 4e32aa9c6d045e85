//! Claude Code and Codex themselves use Stafette's tools, with a scripted model behind them.

use serde_json::{Value, json};
use stafette_testkit::cli::{Cli, Prepared};
use stafette_testkit::model::{Dialect, ModelServer, Reply, Rule, Script};

use crate::world::{Said, World};

fn tool(name: &str, input: Value) -> Reply {
    Reply::mcp("stafette", name, input)
}

/// A builder, Claude Code, and a reviewer, Codex, who have nothing but their profiles' way to an MCP
/// server.
struct Pair {
    world: World,
    model: ModelServer,
    agents: [Prepared; 2],
}

impl Pair {
    fn new(script: Script) -> Self {
        let world = World::new();
        let model = ModelServer::start(script).expect("a model");
        let agents = [Cli::Claude, Cli::Codex].map(|cli| {
            let home = world.home().join("agents");
            match cli.prepare(&home, &world.project(), &model.url()) {
                Ok(ready) => ready,
                Err(trouble) => panic!("{trouble}"),
            }
        });
        let agent = |name: &str, prompt: &str, profile: &str, cli: &Prepared| {
            format!(
                "[agents.{name}]\nrunner = \"exec\"\nprofile = \"{profile}\"\n\
                 prompt = \"{prompt}\"\ncommand = {}\nenv = {}\n",
                json!(cli.streamed()),
                json!(cli.names()),
            )
        };
        let workflow = [
            "[workflow]\nname = \"pair\"\nentry = \"builder\"\n".to_owned(),
            agent("builder", "You build.", "claude", &agents[0]),
            agent("reviewer", "You review.", "codex", &agents[1]),
            "[[routes]]\nfrom = \"builder\"\nto = \"reviewer\"\n".to_owned(),
            "[limits]\ncooldown = 0\naccept_timeout = \"5m\"\n[retries]\nmax = 1\n".to_owned(),
        ];
        world.write("stafette.toml", &workflow.concat());
        world.run(&["trust", "--yes"]).ok();
        Pair { world, model, agents }
    }

    fn run(&self, arguments: &[&str]) -> Said {
        let all = self.agents.iter().flat_map(|agent| &agent.env);
        let env: Vec<(&str, &str)> =
            all.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.world.run_with(arguments, b"", &env)
    }

    /// What the model heard from its tools in the turns of an agent.
    fn heard(&self, prompt: &str) -> String {
        let exchanges = self.model.exchanges();
        let asks = exchanges.iter().filter(|exchange| {
            exchange.ask.as_ref().is_some_and(|ask| ask.prompt.contains(prompt))
        });
        asks.map(|exchange| exchange.body.to_string()).collect()
    }
}

#[test]
fn b_11_claude_code_hands_to_codex_by_a_tool_and_both_hear_what_became_of_it() {
    let pair = Pair::new(
        Script::new()
            .rule(
                Rule::when("You build.")
                    .speaking(Dialect::Messages)
                    .then(tool("briefing", json!({})))
                    .then(tool("handoff", json!({ "to": "boss", "summary": "x" })))
                    .then(tool("handoff", json!({ "to": "reviewer", "summary": "See login.rs" })))
                    .then(Reply::text("The login is built.")),
            )
            .rule(
                Rule::when("You review.")
                    .speaking(Dialect::Responses)
                    .then(tool("report", json!({ "note": "reading", "tokens": 7 })))
                    .then(tool(
                        "complete",
                        json!({ "summary": "Good", "outputs": { "verdict": "approved" } }),
                    ))
                    .then(Reply::text("Reviewed.")),
            ),
    );
    let said = pair.run(&["run", "--foreground", "Add a login", "--json"]);
    let (built, reviewed) = (pair.heard("You build."), pair.heard("You review."));
    assert_eq!(said.code, 0, "{said:?}\n{built}\n{reviewed}");
    assert!(built.contains("reviewer, orchestrator, human"), "the refusal: {built}");
    assert!(built.contains("MCP server `stafette`"), "the prompt speaks of the tools: {built}");
    let handoffs = pair.world.run(&["handoffs", "--json"]).ok().json();
    let review = handoffs
        .as_array()
        .into_iter()
        .flatten()
        .find(|one| one["state"] != "refused" && one["to"] == "reviewer");
    let review = review.unwrap_or_else(|| panic!("{handoffs}\n{built}"));
    assert_eq!(review["handoff"]["offer"]["summary"], "See login.rs", "{review}");
    let outputs = &review["handoff"]["state"]["closed"]["response"]["outputs"];
    assert_eq!(outputs["verdict"], "approved", "{review}\n{reviewed}");
}
