//! The rules, one per function. They know nothing about the routes.

use std::time::Duration;

use axum::http::header::{
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, CONTENT_ENCODING,
    CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use crate::{MAX_BODY, Problem};

/// Maximum length of a URL, in bytes.
const MAX_URL: usize = 8 * 1024;
/// Methods that the API uses.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
/// Maximum size of all headers together, in bytes.
const MAX_HEADERS: usize = 32 * 1024;

/// Returns the value of a header that may occur only once.
pub(super) fn only<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a HeaderValue>, Problem> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (_, Some(_)) => {
            Err(Problem::new(400, "repeated_header", format!("`{name}` is there twice")))
        }
        (one, None) => Ok(one),
    }
}

pub(super) fn size(uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let url = uri.path().len() + uri.query().map_or(0, str::len);
    if url > MAX_URL {
        return Err(Problem::new(414, "long_url", "The address is too long"));
    }
    let said: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    match said > MAX_HEADERS {
        true => Err(Problem::new(431, "large_headers", "The headers are too large")),
        false => Ok(()),
    }
}

/// Checks `Host`. An attacker can make a DNS name point to this machine, but the browser still
/// sends that name as `Host`.
pub(super) fn host(allowed: &[String], uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let refused = || {
        let problem = Problem::new(403, "host", "This is not the server that was asked for");
        problem.because("further names can be allowed in `[server] hosts` of stafette.toml")
    };
    let known = |name: &str| allowed.iter().any(|ours| ours.eq_ignore_ascii_case(name));
    let named = only(headers, &HOST)?.and_then(|host| host.to_str().ok()).ok_or_else(refused)?;
    let target = uri.authority().is_none_or(|authority| known(authority.as_str()));
    match known(named) && target {
        true => Ok(()),
        false => Err(refused()),
    }
}

pub(super) fn method(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let asks = [ACCESS_CONTROL_REQUEST_METHOD, ACCESS_CONTROL_REQUEST_HEADERS];
    if *method == Method::OPTIONS || asks.iter().any(|name| headers.contains_key(name)) {
        let problem = Problem::new(403, "preflight", "Pages of other sites may not ask here");
        return Err(problem.because("there is no CORS, for anyone"));
    }
    match *method {
        Method::GET
        | Method::HEAD
        | Method::POST
        | Method::PUT
        | Method::PATCH
        | Method::DELETE => Ok(()),
        _ => Err(Problem::new(405, "method", "This method is not used here").allowing(METHODS)),
    }
}

/// Checks `Origin`: browsers send the page that a request comes from, and a page cannot change
/// that.
pub(super) fn origin(allowed: &[String], headers: &HeaderMap) -> Result<(), Problem> {
    let Some(origin) = only(headers, &ORIGIN)? else { return Ok(()) };
    let ours = origin.to_str().is_ok_and(|origin| allowed.iter().any(|known| known == origin));
    match ours {
        true => Ok(()),
        false => Err(Problem::new(403, "origin", "Pages of other sites may not ask here")),
    }
}

/// Checks `Sec-Fetch-Site`, by which newer browsers report how that page relates to ours. A link to
/// our page may be followed from anywhere: a browser adds no credentials of ours to that.
pub(super) fn site(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &'static str| -> Result<Option<&str>, Problem> {
        let value = only(headers, &HeaderName::from_static(name))?;
        Ok(value.map(|value| value.to_str().unwrap_or("?")))
    };
    match text("sec-fetch-site")? {
        None | Some("same-origin") => Ok(()),
        // Typed, bookmarked, or opened by a program: a visible page, never a hidden request.
        Some("none") if *method == Method::GET => Ok(()),
        Some(_) if *method == Method::GET => {
            let clicked = text("sec-fetch-mode")? == Some("navigate")
                && text("sec-fetch-dest")? == Some("document");
            if clicked { Ok(()) } else { Err(far()) }
        }
        Some(_) => Err(far()),
    }
}

fn far() -> Problem {
    Problem::new(403, "site", "Pages of other sites may not ask here")
}

/// Requires JSON: a form or script of another site cannot send it without a preflight request.
pub(super) fn content(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    if let Some(length) = only(headers, &CONTENT_LENGTH)? {
        let length = length.to_str().ok().and_then(|text| text.parse::<u64>().ok());
        if length.is_none_or(|length| length > MAX_BODY as u64) {
            return Err(too_long(length));
        }
    }
    let unsupported =
        |why: &str| Err(Problem::new(415, "content_type", "Bodies are JSON here").because(why));
    if headers.contains_key(CONTENT_ENCODING) {
        return unsupported("compressed bodies are not read");
    }
    // Browsers send a preflight request before any other content type to another site.
    let carries = *method == Method::POST;
    match only(headers, &CONTENT_TYPE)? {
        None if carries => unsupported("send `content-type: application/json`"),
        Some(kind) if !is_json(kind) => unsupported("send `content-type: application/json`"),
        _ => Ok(()),
    }
}

fn is_json(kind: &HeaderValue) -> bool {
    let Ok(kind) = kind.to_str() else { return false };
    let mut parts = kind.split(';').map(str::trim);
    let json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    json && parts
        .all(|part| part.is_empty() || part.replace('"', "").eq_ignore_ascii_case("charset=utf-8"))
}

/// The problem of a body with more than [`MAX_BODY`] bytes; its `length` if the caller announced it.
pub(crate) fn too_long(length: Option<u64>) -> Problem {
    let has = length.map(|length| format!("it has {length} bytes, and ")).unwrap_or_default();
    Problem::new(413, "too_large", "The request is too large")
        .because(format!("{has}a body may have {MAX_BODY} bytes"))
}

pub(crate) fn unknown() -> Problem {
    Problem::new(401, "unauthorized", "Who is asking?").because(
        "programs send `authorization: Bearer TOKEN` with a token of `stafette token create`; \
         people open the page with `stafette open`",
    )
}

pub(super) fn no_turn_token() -> Problem {
    Problem::new(401, "no_turn_token", "Which agent is asking?")
        .because("an agent sends the header `stafette-token` with the value of STAFETTE_TOKEN")
}

pub(super) fn bad_token() -> Problem {
    Problem::new(401, "bad_token", "This token is not known here")
        .because("it may have ended or been taken back; see `stafette token list`")
}

pub(super) fn too_fast(wait: Duration) -> Problem {
    Problem::new(429, "too_fast", "Too many requests")
        .because(format!("come back in {} ms", wait.as_millis().max(1)))
        .after(wait)
}
