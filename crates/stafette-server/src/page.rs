//! The web page: files that are compiled into the program.

use axum::body::Body;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, VARY,
};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::Problem;

mod files {
    use super::File;
    include!(concat!(env!("OUT_DIR"), "/page.rs"));
}

/// A file of the page.
pub(crate) struct File {
    path: &'static str,
    kind: &'static str,
    /// ETag of the file.
    mark: &'static str,
    bytes: &'static [u8],
    /// The same bytes, compressed with gzip.
    packed: Option<&'static [u8]>,
}

/// Content only from this server, and no inline code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; font-src 'self'; manifest-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Prefixes that are never paths of the page: clients there expect a response or a problem.
const NOT_OURS: [&str; 6] = ["/v1", "/mcp", "/a2a", "/healthz", "/.well-known", "/assets"];

/// Answers requests that no route matches: with a file of the page, the page itself for one of its
/// paths, or a problem.
pub(crate) async fn fallback(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let nothing = || Problem::new(404, "not_found", "There is nothing at this address");
    if method != Method::GET && method != Method::HEAD {
        return nothing().into_response();
    }
    let answer = match find(files::FILES, uri.path(), &headers) {
        Some(file) => send(file, &headers),
        None => nothing().into_response(),
    };
    match method {
        Method::HEAD => answer.map(|_| Body::empty()),
        _ => answer,
    }
}

/// Returns true if a browser asks for the page or a file of it.
pub(crate) fn is_asked_for(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    reads && (is_ours(path, headers) || find(files::FILES, path, headers).is_some())
}

fn find<'a>(files: &'a [File], path: &str, headers: &HeaderMap) -> Option<&'a File> {
    let named = |path: &str| files.iter().find(|file| file.path == path);
    let index = || is_ours(path, headers).then(|| named("/index.html")).flatten();
    named(path).or_else(index)
}

/// Returns true if a browser asks for one of the page's own paths.
fn is_ours(path: &str, headers: &HeaderMap) -> bool {
    let under = |root: &&str| {
        path.strip_prefix(*root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let html = headers
        .get(ACCEPT)
        .and_then(|kinds| kinds.to_str().ok())
        .is_some_and(|kinds| kinds.contains("text/html"));
    html && !NOT_OURS.iter().any(under)
}

fn send(file: &File, headers: &HeaderMap) -> Response {
    let has = |name, wanted: &str| {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).any(|value| {
            value
                .split(',')
                .any(|part| part.split(';').next().is_some_and(|part| part.trim() == wanted))
        })
    };
    // Names of assets contain a hash of their content, so that browsers may keep them.
    let keep = match file.path.starts_with("/assets/") {
        true => "private, max-age=31536000, immutable",
        false => "no-cache",
    };
    let mut answer = match (has(IF_NONE_MATCH, file.mark), file.packed) {
        (true, _) => StatusCode::NOT_MODIFIED.into_response(),
        (false, Some(packed)) if has(ACCEPT_ENCODING, "gzip") => {
            let mut answer = Body::from(packed).into_response();
            answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            answer
        }
        (false, _) => Body::from(file.bytes).into_response(),
    };
    let fields = answer.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(file.kind));
    fields.insert(ETAG, HeaderValue::from_static(file.mark));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
    fields.insert(VARY, HeaderValue::from_static("accept-encoding"));
    fields.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    answer
}

#[cfg(test)]
mod tests;
