//! The API description: OpenAPI 3.1, generated from the types that the handlers read and return.

use std::sync::OnceLock;

use aide::axum::ApiRouter;
use aide::generate::in_context;
use aide::openapi::{Info, OpenApi, SecurityScheme, Tag};
use aide::transform::TransformOperation;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use stafette_engine::Right;

use crate::Edge;
use crate::rights::EXTENSION;

/// Groups of operations, in the order of the page.
const TAGS: &[(&str, &str)] = &[
    ("runs", "Begin runs, look at them, steer them."),
    ("generations", "What a team leaves to its next self, and what its council says."),
    ("handoffs", "Work on its way from one to another, in any dialect."),
    ("turns", "Take part as an agent that nobody here starts."),
    ("inbox", "What is for a person to decide."),
    ("agents", "Who does what at the moment."),
    ("terminals", "What agents show in their terminals, and a hand in it."),
    ("events", "Everything that happened and happens."),
    ("changes", "Edits of the project's files, as sets that get in whole or not at all."),
    ("telemetry", "Metrics, alerts, reports and search."),
    ("locks", "Who has which files, and until when."),
    ("triggers", "What begins runs by itself, and who is told of them."),
    ("knowledge", "Threads, graph, decisions, calendar, and what was learned."),
    ("workflow", "Who there is, who may hand to whom, and how documents look."),
    ("access", "Who may come in."),
    ("daemon", "The daemon itself."),
];

const ABOUT: &str = "Agents pass work to each other, and to people, without losing it. Errors are \
    problem documents (RFC 9457) with a stable `code` and a `fix`. The values of one handoff have \
    1 MiB together. What is larger is refused, and where answers meet inputs that are large \
    already, the largest values are cut: in place of each stands `{\"$cut\": {\"handoff\": \"h2\", \
    \"key\": \"notes\", \"bytes\": 700002, \"head\": \"…\"}}`, with the first 512 characters; of values that \
    are too many, some are left out, and one `{\"$cut\": {\"keys\": 5012, \"handoffs\": [\"h2\"]}}` says how many. The \
    record of that handoff has the whole value, under `key` in its answer or its offer: \
    `GET /v1/runs/{run}/handoffs/{handoff}`, or by MCP `stafette://runs/{run}/handoffs`. By TCP, programs send `Authorization: \
    Bearer TOKEN`. `x-right` says what an operation needs: `public` nothing; `shared` and `read` \
    the scope `observe`; `take_part`, `run` and `answer` the scope `assist`; `decide` the scope \
    `act`; `admin` the scope `admin`. An agent has `shared` and `take_part`, for itself alone.";

/// Declares operations, one a row: method and path, then handler, right, id, summary and, where a
/// summary is not enough, a description. The function that it defines returns their routes.
macro_rules! operations {
    ($vis:vis fn $routes:ident() in $tag:literal; $(
        $method:ident $path:literal => $handler:path, $right:ident, $id:literal, $summary:literal
        $(, $about:expr)?;
    )+) => {
        $vis fn $routes() -> aide::axum::ApiRouter<$crate::Edge> {
            use $crate::{openapi::{method, named}, Right};
            aide::axum::ApiRouter::new()$(.api_route($path, method::$method($handler, |op| {
                named($tag, Right::$right, $id, $summary, op)$(.description($about))?
            })))+
        }
    };
}
pub(crate) use operations;

/// The methods of the table.
pub(crate) mod method {
    pub(crate) use aide::axum::routing::{
        delete_with as DELETE, get_with as GET, post_with as POST,
    };
}

/// Sets tag, right, id and summary of an operation.
pub(crate) fn named<'t>(
    tag: &'static str,
    right: Right,
    id: &'static str,
    summary: &'static str,
    op: TransformOperation<'t>,
) -> TransformOperation<'t> {
    let mut op = op.id(id).tag(tag).summary(summary);
    op.inner_mut().extensions.insert(EXTENSION.to_owned(), right.as_str().into());
    if right == Right::Public {
        // An empty requirement: no credentials.
        op.inner_mut().security.push(Default::default());
    }
    op
}

/// Returns the described operations: method, path, name and right.
pub(crate) fn declared() -> Vec<(String, String, String, Right)> {
    let api: Value = serde_json::from_str(document()).unwrap_or_default();
    let paths = api["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(path, item)| {
        let methods = item.as_object().into_iter().flatten();
        methods.map(move |(method, op)| (method.to_uppercase(), path.clone(), op))
    });
    operations
        .map(|(method, path, op)| {
            let name = op["operationId"].as_str().unwrap_or_default().to_owned();
            // An operation without a right is closed; a test finds it.
            let right = serde_json::from_value(op[EXTENSION].clone()).unwrap_or(Right::Admin);
            (method, path, name, right)
        })
        .collect()
}

/// Returns the description as JSON text.
#[must_use]
pub fn document() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let (_, api) = describe();
        let mut text = serde_json::to_string_pretty(&api).expect("a description is JSON");
        text.push('\n');
        text
    })
}

/// Returns all routes, and the description of the documented ones.
pub(crate) fn describe() -> (Router<Edge>, OpenApi) {
    // OpenAPI 3.1 uses JSON Schema 2020-12.
    in_context(|context| {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        context.schema = SchemaGenerator::new(settings);
    });
    let mut api = OpenApi {
        info: Info {
            title: "Stafette".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            description: Some(ABOUT.to_owned()),
            ..Info::default()
        },
        ..OpenApi::default()
    };
    let tags = TAGS.iter().map(|(name, about)| Tag {
        name: (*name).to_owned(),
        description: Some((*about).to_owned()),
        ..Tag::default()
    });
    let router = routes().finish_api_with(&mut api, |api| {
        let scheme = SecurityScheme::Http {
            scheme: "bearer".to_owned(),
            bearer_format: None,
            description: Some("A token of `stafette token create`.".to_owned()),
            extensions: Default::default(),
        };
        let api = api.security_scheme("token", scheme).security_requirement("token");
        // The guard can refuse any request, so that every operation may return a problem.
        api.default_response::<crate::Problem>()
    });
    api.tags = tags.collect();
    (router, api)
}

fn routes() -> ApiRouter<Edge> {
    ApiRouter::new()
        .merge(crate::runs::routes())
        .merge(crate::cost::routes())
        .merge(crate::fork::routes())
        .merge(crate::generations::routes())
        .merge(crate::handoffs::routes())
        .merge(crate::turns::routes())
        .merge(crate::inbox::routes())
        .merge(crate::agents::routes())
        .merge(crate::changes::routes())
        .merge(crate::renewal::routes())
        .merge(crate::locks::routes())
        .merge(crate::messages::routes())
        .merge(crate::messages::own_routes())
        .merge(crate::terminals::routes())
        .merge(crate::stream::routes())
        .merge(crate::triggers::routes())
        .merge(crate::notify::routes())
        .merge(crate::telemetry::routes())
        .merge(crate::knowledge::routes())
        .merge(crate::schemas::routes())
        .merge(crate::emit::routes())
        .merge(crate::access::routes())
        .merge(crate::health::routes())
        .merge(crate::daemon())
        .merge(pages())
}

/// Routes of the description itself, for programs and for people.
fn pages() -> ApiRouter<Edge> {
    let page = |kind: &'static str, text: &'static str| {
        get(async move || -> Response { ([(CONTENT_TYPE, kind)], text).into_response() })
    };
    ApiRouter::new()
        .route("/openapi.json", get(async || ([(CONTENT_TYPE, "application/json")], document())))
        .route("/docs", page("text/html; charset=utf-8", include_str!("../docs/page.html")))
        .route("/docs/page.css", page("text/css; charset=utf-8", include_str!("../docs/page.css")))
        .route(
            "/docs/page.js",
            page("text/javascript; charset=utf-8", include_str!("../docs/page.js")),
        )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// `UPDATE_GOLDEN=1 cargo test -p stafette-server openapi` rewrites the file.
    #[test]
    fn the_description_in_the_repository_is_the_one_that_is_served() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, super::document()).expect("written");
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == super::document(), "run this test with UPDATE_GOLDEN=1");
    }

    #[test]
    fn every_operation_is_named_grouped_and_says_what_it_answers() {
        let api: serde_json::Value = serde_json::from_str(super::document()).expect("JSON");
        assert_eq!(api["openapi"], "3.1.0");
        let tags: Vec<_> = super::TAGS.iter().map(|(name, _)| *name).collect();
        let mut names = std::collections::BTreeSet::new();
        let paths = api["paths"].as_object().expect("paths");
        for (path, item) in paths {
            for (method, op) in item.as_object().expect("methods") {
                let place = format!("{method} {path}");
                let name = op["operationId"].as_str().unwrap_or_else(|| panic!("{place}"));
                assert!(names.insert(name.to_owned()), "{place}: {name} is used twice");
                assert!(tags.contains(&op["tags"][0].as_str().unwrap_or_default()), "{place}");
                assert!(op["summary"].is_string(), "{place}");
                let right = serde_json::from_value::<super::Right>(op["x-right"].clone());
                assert!(right.is_ok(), "{place} declares no right");
                assert!(op["responses"].as_object().is_some_and(|all| !all.is_empty()), "{place}");
            }
        }
        assert!(names.len() > 30, "{names:?}");
    }
}
