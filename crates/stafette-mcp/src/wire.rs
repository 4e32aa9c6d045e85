//! The protocol itself: the only place that uses its types.

mod listing;

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Display;
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CompletionInfo, ContentBlock, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams,
    ProgressNotificationParam, ProgressToken, PromptMessage, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents, Role,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt};
use stafette_engine::Engine;
use stafette_stages::Stages;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::call_context::{CallContext, Progress};
use crate::{Caller, ReadWorkflow, ToolError, prompts, resources, tools};

/// Maximum size of a message, in bytes.
const MESSAGE: usize = 2 * 1024 * 1024;

/// Maximum number of parallel sessions, of clients whose protocol revision has them.
const SESSIONS: usize = 256;

/// Maximum number of parallel streams.
const STREAMS: usize = 256;

/// Time limit for sending a progress report.
const TELLING: Duration = Duration::from_secs(1);

/// Instructions that every client gets when it connects.
const INSTRUCTIONS: &str = "Stafette lets agents pass work to each other and to people. If you \
    work for it, call `briefing` first, `report` while you work, and end your turn with \
    `complete`, after a `handoff` if someone else goes on. Ask people with `escalate`; never \
    guess what they have to decide. If Stafette did not start you, find work with `wait` and take \
    it with `accept`. Errors say what to do: read them and try again.";

/// The MCP server. Cheap to clone.
#[derive(Clone)]
pub struct Mcp {
    engine: Engine,
    workflow: Arc<ReadWorkflow>,
    stages: Option<Stages>,
    http: StreamableHttpService<Server, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    owners: Arc<Mutex<HashMap<String, Owner>>>,
    streams: Arc<Semaphore>,
}

/// Whose a session is: the name of a token or an agent, and the kind of caller.
type Owner = (String, Discriminant<stafette_engine::Caller>);

/// Permit for one stream.
#[derive(Debug)]
pub struct Place(
    #[expect(dead_code, reason = "held for as long as the stream is")] OwnedSemaphorePermit,
);

impl std::fmt::Debug for Mcp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mcp").finish_non_exhaustive()
    }
}

impl Mcp {
    /// Creates the server for an engine, and for the knowledge in `stages`, if any.
    #[must_use]
    pub fn new(engine: Engine, workflow: Arc<ReadWorkflow>, stages: Option<Stages>) -> Self {
        let sessions = Arc::new(LocalSessionManager::default());
        let config = StreamableHttpServerConfig::default()
            .enforce_origin_validation()
            .with_max_request_body_bytes(MESSAGE);
        let (inner, read, known) = (engine.clone(), workflow.clone(), stages.clone());
        let make = move || Ok(Server::new(inner.clone(), read.clone(), known.clone(), None));
        let http = StreamableHttpService::new(make, sessions.clone(), config);
        let streams = Arc::new(Semaphore::new(STREAMS));
        let owners = Arc::default();
        Mcp { engine, workflow, stages, http, sessions, owners, streams }
    }

    /// Returns the number of connected clients: streams, and sessions over HTTP.
    pub async fn connected(&self) -> usize {
        let streams = STREAMS.saturating_sub(self.streams.available_permits());
        streams + self.sessions.sessions.read().await.len()
    }

    /// Returns a permit for one more stream, if the limit allows it.
    pub fn place(&self) -> Option<Place> {
        self.streams.clone().try_acquire_owned().ok().map(Place)
    }

    /// Serves one client over a stream of lines until either side closes.
    pub async fn serve<S>(&self, _place: Place, stream: S, caller: Caller)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (read, write) = tokio::io::split(stream);
        let transport = AsyncRwTransport::new(read, write).with_max_line_length(MESSAGE);
        let (engine, workflow) = (self.engine.clone(), self.workflow.clone());
        let server = Server::new(engine, workflow, self.stages.clone(), Some(caller));
        match server.serve(transport).await {
            Ok(running) => drop(running.waiting().await),
            // A client that leaves before it has sent anything is not worth a warning.
            Err(error) => tracing::debug!(%error, "an MCP client did not begin"),
        }
    }

    /// Answers one request of streamable HTTP, addressed to loopback or to one of `hosts`.
    pub async fn answer<B>(
        &self,
        caller: Caller,
        hosts: &[String],
        mut request: Request<B>,
    ) -> Response<BoxBody<Bytes, Infallible>>
    where
        B: Body + Send + 'static,
        B::Error: Display,
    {
        let mut http = self.http.clone();
        http.config.allowed_hosts.extend(hosts.iter().cloned());
        http.config.allowed_origins = own_origins(request.headers().get(HOST));
        let owner = (caller.name.clone(), discriminant(&caller.who));
        request.extensions_mut().insert(caller);
        if let Some(session) = session(request.headers()) {
            // To others it is not there: neither to be used nor to be ended.
            let is_others = self.owners().get(session).is_some_and(|own| *own != owner);
            return match is_others {
                true => refusal(StatusCode::NOT_FOUND, "There is no such session."),
                false => http.handle(request).await,
            };
        }
        if opens_session(&request) && self.sessions.sessions.read().await.len() >= SESSIONS {
            let said = "There are too many sessions; end one, or speak revision 2026-07-28.";
            return refusal(StatusCode::SERVICE_UNAVAILABLE, said);
        }
        let response = http.handle(request).await;
        if let Some(session) = session(response.headers()) {
            let open = self.sessions.sessions.read().await;
            let mut owners = self.owners();
            owners.retain(|session, _| open.contains_key(session.as_str()));
            owners.insert(session.to_owned(), owner);
        }
        response
    }

    fn owners(&self) -> std::sync::MutexGuard<'_, HashMap<String, Owner>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refusal(status: StatusCode, said: &'static str) -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = Response::new(Full::from(said).boxed());
    *response.status_mut() = status;
    response
}

/// Returns the session that a message names.
fn session(headers: &HeaderMap) -> Option<&str> {
    headers.get("mcp-session-id")?.to_str().ok()
}

/// Returns true if a request would open a session: newer revisions open none.
fn opens_session<B>(request: &Request<B>) -> bool {
    let header = |name: &str| request.headers().get(name).map(HeaderValue::as_bytes);
    let modern = ProtocolVersion::V_2026_07_28;
    let is_modern = header("mcp-protocol-version").is_some_and(|v| v >= modern.as_str().as_bytes());
    request.method() == Method::POST && header("mcp-session-id").is_none() && !is_modern
}

/// Returns the allowed origins: a page may only send to the host that it came from.
fn own_origins(host: Option<&HeaderValue>) -> Vec<String> {
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    // The port follows the last colon, unless that is part of an address in brackets.
    let port = host.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
    match (host, port) {
        ("", _) => Vec::new(),
        (_, Some(_)) => vec![format!("http://{host}"), format!("https://{host}")],
        (_, None) => vec![format!("http://{host}:80"), format!("https://{host}:443")],
    }
}

/// The handler of one connection or request.
#[derive(Clone)]
struct Server {
    engine: Engine,
    workflow: Arc<ReadWorkflow>,
    stages: Option<Stages>,
    /// Caller at the other end of a stream; over HTTP each request brings its own.
    caller: Option<Caller>,
}

impl Server {
    fn new(
        engine: Engine,
        workflow: Arc<ReadWorkflow>,
        stages: Option<Stages>,
        caller: Option<Caller>,
    ) -> Self {
        Server { engine, workflow, stages, caller }
    }

    /// Returns the tools that are available in this project.
    fn tools(&self) -> impl Iterator<Item = &'static tools::Entry> {
        let knows = self.stages.is_some();
        tools::all().iter().filter(move |tool| knows || !tool.wants_knowledge())
    }

    fn context(&self, context: &RequestContext<RoleServer>) -> CallContext {
        let parts = context.extensions.get::<http::request::Parts>();
        let caller = parts.and_then(|parts| parts.extensions.get::<Caller>());
        let mut caller = caller.or(self.caller.as_ref()).cloned().unwrap_or_default();
        if caller.name.is_empty() {
            let client = context.client_info().map(|client| client.name);
            caller.name = client.unwrap_or_else(|| "an MCP client".to_owned());
        }
        let progress = context.meta.get_progress_token().map(|token| {
            let sender: Arc<dyn Progress> = Arc::new(Sender { peer: context.peer.clone(), token });
            sender
        });
        let (engine, workflow) = (self.engine.clone(), self.workflow.clone());
        // An invalid value is ignored, as the specification requires.
        let within = context.meta.get_traceparent().and_then(|text| text.parse().ok());
        CallContext { engine, workflow, stages: self.stages.clone(), caller, progress, within }
    }
}

/// Sends progress to a client that asked for it.
struct Sender {
    peer: Peer<RoleServer>,
    token: ProgressToken,
}

impl Progress for Sender {
    fn tell(&self, step: u32, message: String) -> BoxFuture<'_, ()> {
        let progress = ProgressNotificationParam::new(self.token.clone(), f64::from(step));
        Box::pin(async move {
            // A client that has closed its side takes no more progress, but may still want the
            // result.
            let told = self.peer.notify_progress(progress.with_message(message));
            let _ = tokio::time::timeout(TELLING, told).await;
        })
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_completions()
            .build();
        let server = Implementation::new("stafette", env!("CARGO_PKG_VERSION"))
            .with_title("Stafette")
            .with_description("Agents pass work to each other, and to people, without losing it.");
        ServerConfig::new(capabilities).with_server_info(server).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.context(&context).caller.who;
        let tools = self.tools().filter(|tool| tool.is_for(&caller));
        Ok(ListToolsResult::with_all_items(tools.map(listing::tool).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools().find(|tool| tool.name == name).map(listing::tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tools().find(|tool| tool.name == request.name) else {
            let message = format!("There is no tool `{}`", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let cancelled = context.ct.clone();
        let context = self.context(&context);
        // Read before the call, because the turn may end with it.
        let within = match context.caller.token.is_some() || arguments.contains_key("turn") {
            true => context.traceparent(&arguments).await,
            false => None,
        };
        let called = tool.call(context.clone(), arguments);
        let outcome = tokio::select! {
            outcome = called => outcome,
            // The client no longer waits for the result.
            () = cancelled.cancelled() => Err(ToolError::new("cancelled", "The call was cancelled")
                .fix("See with `status` what it has changed, and call it again if you still need it.")),
        };
        let mut meta = MetaObject::default();
        let (result, within) = match outcome {
            Ok(value) => {
                let begun = value.as_object().cloned().unwrap_or_default();
                let within = match within {
                    Some(within) => Some(within),
                    None => context.traceparent(&begun).await,
                };
                (CallToolResult::structured(value), within)
            }
            Err(trouble) => {
                meta.0.insert("stafette/problem".to_owned(), trouble.json());
                (CallToolResult::error(vec![ContentBlock::text(trouble.text())]), within)
            }
        };
        if let Some(within) = within {
            meta.set_traceparent(within.to_string());
        }
        Ok(result.with_meta((!meta.0.is_empty()).then_some(meta)).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let found = resources::list(&self.context(&context)).await.map_err(internal)?;
        Ok(ListResourcesResult::with_all_items(found.into_iter().map(listing::resource).collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = resources::TEMPLATES.iter().map(listing::template).collect();
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let context = self.context(&context);
        let read = resources::read(&context, &request.uri).await.map_err(|trouble| {
            ErrorData::new(ErrorCode::RESOURCE_NOT_FOUND, trouble.text(), Some(trouble.json()))
        })?;
        let contents = ResourceContents::text(read.text, request.uri).with_mime_type(read.mime);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let found = prompts::list(&self.context(&context));
        Ok(ListPromptsResult::with_all_items(found.into_iter().map(listing::prompt).collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let context = self.context(&context);
        let run = request.arguments.as_ref().and_then(|fields| fields.get("run")?.as_str());
        let text = prompts::get(&context, &request.name, run)
            .await
            .map_err(|trouble| ErrorData::invalid_params(trouble.text(), Some(trouble.json())))?;
        let message = PromptMessage::new_text(Role::User, text);
        Ok(GetPromptResult::new(vec![message]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let context = self.context(&context);
        let argument = &request.argument;
        let known = request.context.as_ref().and_then(|context| context.arguments.as_ref());
        let run = known.and_then(|known| known.get("run")).map(String::as_str);
        let found = resources::complete(&context, &argument.name, &argument.value, run).await;
        let total = u32::try_from(found.len()).ok();
        let more = found.len() > CompletionInfo::MAX_VALUES;
        let values = found.into_iter().take(CompletionInfo::MAX_VALUES).collect();
        let info = CompletionInfo::with_pagination(values, total, more);
        info.map(CompleteResult::new).map_err(|error| ErrorData::internal_error(error, None))
    }
}

fn internal(trouble: ToolError) -> ErrorData {
    ErrorData::internal_error(trouble.text(), Some(trouble.json()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_page_from_where_it_sends_to_is_an_own_origin() {
        let of = |host| own_origins(Some(&HeaderValue::from_static(host)));
        assert_eq!(of("127.0.0.1:7443")[0], "http://127.0.0.1:7443");
        assert_eq!(of("[::1]:7443")[0], "http://[::1]:7443");
        assert_eq!(of("[::1]"), ["http://[::1]:80", "https://[::1]:443"]);
        assert_eq!(of("localhost")[0], "http://localhost:80");
        assert!(own_origins(None).is_empty());
    }
}
