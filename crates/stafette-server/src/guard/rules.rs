//! The rules, one a function. They know nothing about what is behind the door.

use std::time::Duration;

use axum::http::header::{
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, CONTENT_ENCODING,
    CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use crate::{MAX_BODY, Problem};

/// The longest address, in bytes.
const MAX_URL: usize = 8 * 1024;
/// The methods that are used at all.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
/// The most that the headers may say, in bytes.
const MAX_HEADERS: usize = 32 * 1024;

/// A header that may be there once.
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

/// A page of a stranger can let its name point to this machine: then `Host` is still its name.
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

/// Browsers say which page a request comes from, and a page cannot change that.
pub(super) fn origin(allowed: &[String], headers: &HeaderMap) -> Result<(), Problem> {
    let Some(origin) = only(headers, &ORIGIN)? else { return Ok(()) };
    let ours = origin.to_str().is_ok_and(|origin| allowed.iter().any(|known| known == origin));
    match ours {
        true => Ok(()),
        false => Err(Problem::new(403, "origin", "Pages of other sites may not ask here")),
    }
}

/// Newer browsers also say how near that page is. The launch link may be followed from anywhere,
/// by a person who clicks it: it proves itself.
pub(super) fn site(path: &str, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &'static str| -> Result<Option<&str>, Problem> {
        let value = only(headers, &HeaderName::from_static(name))?;
        Ok(value.map(|value| value.to_str().unwrap_or("?")))
    };
    match text("sec-fetch-site")? {
        None | Some("same-origin") => Ok(()),
        // Typed, bookmarked, or opened by a program: a page of ours, never a hidden request.
        Some("none") if *method == Method::GET => Ok(()),
        Some(_) if path == "/launch" && *method == Method::GET => {
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

/// What a form or a script of another site can send without asking first is never JSON.
pub(super) fn content(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    if let Some(length) = only(headers, &CONTENT_LENGTH)? {
        let length = length.to_str().ok().and_then(|text| text.parse::<u64>().ok());
        if length.is_none_or(|length| length > MAX_BODY as u64) {
            return Err(too_long());
        }
    }
    let unsupported =
        |why: &str| Err(Problem::new(415, "content_type", "Bodies are JSON here").because(why));
    if headers.contains_key(CONTENT_ENCODING) {
        return unsupported("compressed bodies are not read");
    }
    // Browsers ask before they send anything else than this to another site.
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

pub(super) fn too_long() -> Problem {
    Problem::new(413, "too_large", "The request is too large")
        .because(format!("a body may have {MAX_BODY} bytes"))
}

pub(super) fn unknown() -> Problem {
    Problem::new(401, "unauthorized", "Who is asking?").because(
        "programs send `authorization: Bearer TOKEN` with a token of `stafette token create`; \
         people open the page with `stafette open`",
    )
}

pub(super) fn bad_token() -> Problem {
    Problem::new(401, "bad_token", "This token is not known here")
        .because("it may have ended or been taken back; see `stafette token list`")
}

pub(super) fn no_origin() -> Problem {
    Problem::new(403, "no_origin", "A cookie alone is not enough")
        .because("browsers say which page a request comes from, and this one did not")
}

pub(super) fn too_fast(wait: Duration) -> Problem {
    Problem::new(429, "too_fast", "Too many requests")
        .because(format!("come back in {} ms", wait.as_millis().max(1)))
        .after(wait)
}
