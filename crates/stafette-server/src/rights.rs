//! The right that each operation needs. Operations of the API description declare it where they are
//! described; the others are listed here.

use std::sync::OnceLock;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, Uri};
use axum::routing::{MethodFilter, any, on};
use axum::{Extension, Router};
use serde::Serialize;
use stafette_engine::{Caller, Right, Scope};

use crate::{openapi, serve};

/// Extension of the API description with the right of an operation.
pub(crate) const EXTENSION: &str = "x-right";

/// Routes that the API description leaves out: files, protocols of their own, streams of bytes.
const BESIDE: &[(&str, &str, &str, Right)] = &[
    ("GET", "/v1/runs/{run}/terminals/{agent}/live", "watchTerminal", Right::Read),
    ("GET", "/v1/runs/{run}/terminals/{agent}/recording", "getRecording", Right::Read),
    ("GET", "/openapi.json", "getDescription", Right::Public),
    ("GET", "/docs", "readDocs", Right::Public),
    ("GET", "/docs/page.css", "readDocsStyle", Right::Public),
    ("GET", "/docs/page.js", "readDocsScript", Right::Public),
    // Each tool declares its own right.
    ("ANY", "/mcp", "mcp", Right::Shared),
    ("POST", "/v1/mcp", "mcpStream", Right::Shared),
    // Each method declares its own right.
    ("GET", "/.well-known/agent-card.json", "getAgentCard", Right::Read),
    ("POST", "/a2a", "a2a", Right::Read),
    ("ANY", "/a2a/v1/{*path}", "a2aRest", Right::Read),
];

/// An operation of one of the interfaces.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Operation {
    /// Interface: `http`, `mcp` or `a2a`.
    pub interface: &'static str,
    /// Name within the interface.
    pub name: String,
    /// HTTP method and path; empty for tools and methods of other protocols.
    pub route: String,
    /// The right that a caller needs.
    pub right: Right,
}

/// Returns every operation of every interface.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let routes = routes().iter().map(|(method, path, name, right)| Operation {
        interface: "http",
        name: name.clone(),
        route: format!("{method} {path}"),
        right: *right,
    });
    let named = |interface| {
        move |(name, right): (&'static str, Right)| Operation {
            interface,
            name: name.to_owned(),
            route: String::new(),
            right,
        }
    };
    let tools = stafette_mcp::rights().map(named("mcp"));
    let methods = stafette_a2a::rights().map(named("a2a"));
    routes.chain(tools).chain(methods).collect()
}

/// Returns the kinds of callers, each with its name, in the order of the table.
#[must_use]
pub fn callers() -> Vec<(&'static str, Caller)> {
    let agent: stafette_core::AgentName = "agent".parse().expect("a plain name");
    let run = stafette_core::RunId(uuid::Uuid::nil());
    let external = |scope| Caller::External { agent: agent.clone(), scope };
    vec![
        ("person", Caller::Person(Scope::Admin)),
        ("act", Caller::Person(Scope::Act)),
        ("assistant", Caller::Person(Scope::Admin).assisted()),
        ("observe", Caller::Person(Scope::Observe)),
        ("agent", Caller::Agent { run, agent: agent.clone(), handoff: None }),
        ("agent's token", external(Scope::Act)),
        ("agent's token, observe", external(Scope::Observe)),
        ("nobody", Caller::Nobody),
    ]
}

/// The HTTP routes: method, path, name and right.
fn routes() -> &'static [(String, String, String, Right)] {
    static ROUTES: OnceLock<Vec<(String, String, String, Right)>> = OnceLock::new();
    ROUTES.get_or_init(|| {
        let beside = BESIDE.iter().map(|(method, path, name, right)| {
            ((*method).to_owned(), (*path).to_owned(), (*name).to_owned(), *right)
        });
        openapi::declared().into_iter().chain(beside).collect()
    })
}

/// Finds the right for a request. It is a router with the paths of the real one, so that both match
/// alike.
#[derive(Clone)]
pub(crate) struct Rights(Router);

impl std::fmt::Debug for Rights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rights").finish_non_exhaustive()
    }
}

impl Rights {
    pub(crate) fn new() -> Self {
        let mut router = Router::new();
        for (method, path, _, right) in routes() {
            let right = *right;
            let says = move || async move { (Extension(right), ()) };
            let method = Method::from_bytes(method.as_bytes()).ok();
            let way = match method.and_then(|method| MethodFilter::try_from(method).ok()) {
                Some(filter) => on(filter, says),
                None => any(says),
            };
            router = router.route(path, way);
        }
        Rights(router)
    }

    /// Returns the right for a request: reading, where no route matches and the page is served.
    pub(crate) async fn of(&self, method: Method, uri: Uri) -> Right {
        let mut asked = Request::new(Body::empty());
        (*asked.method_mut(), *asked.uri_mut()) = (method, uri);
        let answer = serve::answer(self.0.clone(), asked).await;
        answer.extensions().get().copied().unwrap_or(Right::Read)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[tokio::test]
    async fn b_21_every_route_has_its_right_and_is_found_by_its_path() {
        let rights = Rights::new();
        for (method, path, name, right) in routes() {
            let path = path.replace("{*path}", "tasks/7").replace(['{', '}'], "");
            let method = if method == "ANY" { "GET" } else { method };
            let (method, uri) = (method.parse().expect("a method"), path.parse().expect("a path"));
            assert_eq!(rights.of(method, uri).await, *right, "{name}");
        }
        let page = rights.of(Method::GET, Uri::from_static("/runs/4f")).await;
        assert_eq!(page, Right::Read, "the page's own paths");
    }

    #[test]
    fn b_21_no_route_is_served_without_a_right() {
        let (router, _) = openapi::describe();
        // The router lists its paths only here.
        let shown = format!("{router:?}");
        let texts = shown.split('"').filter(|text| text.starts_with('/'));
        let is_fallback = |text: &str| text == "/" || text.contains("axum_fallback");
        let served: BTreeSet<&str> = texts.filter(|text| !is_fallback(text)).collect();
        let declared: BTreeSet<&str> = routes().iter().map(|(_, path, ..)| path.as_str()).collect();
        assert!(served.len() > 80, "{shown}");
        let missing: Vec<_> = served.difference(&declared).collect();
        assert!(missing.is_empty(), "declare the right of {missing:?}");
    }

    /// The table for people. `UPDATE_GOLDEN=1 cargo test -p stafette-server rights` writes it anew.
    fn table() -> String {
        let mut text = String::from(TITLE);
        let head: Vec<_> = callers().into_iter().map(|(name, _)| name).collect();
        text.push_str(&format!("| operation | right | {} |\n", head.join(" | ")));
        text.push_str(&format!("|---|---|{}\n", ":-:|".repeat(head.len())));
        for operation in operations() {
            let name = match operation.route.as_str() {
                "" => format!("{} `{}`", operation.interface, operation.name),
                route => format!("`{route}`"),
            };
            let may = callers().into_iter().map(|(_, caller)| match caller.may(operation.right) {
                Ok(()) => "yes",
                Err(_) => "–",
            });
            let may = may.collect::<Vec<_>>().join(" | ");
            text.push_str(&format!("| {name} | {} | {may} |\n", operation.right.as_str()));
        }
        text
    }

    const TITLE: &str = "# Who may do what\n\n\
        Every operation of HTTP, MCP and A2A needs one right. This table is made from what they \
        declare; `stafette rights` prints it. The columns are the kinds of callers:\n\n\
        - **person**: at their own socket or page, or with a token of the scope `admin`\n\
        - **act**: a token or page with the scope `act`\n\
        - **assistant**: `stafette mcp` and plugins of a person, or a token with the scope `assist`\n\
        - **observe**: a token or page with the scope `observe`\n\
        - **agent**: an agent that Stafette started, by its own socket or recognised at another one\n\
        - **agent's token**: an agent that connects on its own, with a token made by `--agent`\n\
        - **nobody**: a caller without credentials\n\n\
        An agent with the right `take_part` acts for itself alone: in its own turn and run, in its own \
        name, and as far as its role allows. `shared` is what its role may read.\n\n\
        With `answer` one answers what agents ask. The questions of the system (money, failures, \
        permissions, changes), and runs with a larger budget than the workflow's, need `decide`.\n\n";

    #[test]
    fn b_21_the_table_in_the_repository_is_what_is_declared() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rights.md");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, table()).expect("written");
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == table(), "run this test with UPDATE_GOLDEN=1");
    }

    #[test]
    fn b_21_every_operation_has_a_name_of_its_own() {
        let all = operations();
        let names: BTreeSet<_> = all.iter().map(|op| (op.interface, op.name.clone())).collect();
        assert_eq!(names.len(), all.len());
        assert!(names.contains(&("mcp", "start_run".to_owned())));
        assert!(names.contains(&("a2a", "SendMessage".to_owned())), "{names:?}");
    }
}
