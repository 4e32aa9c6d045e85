use axum::http::HeaderName;

use super::*;

const PAGE: &[File] = &[
    File {
        path: "/assets/app-1.js",
        kind: "text/javascript",
        mark: "\"a\"",
        bytes: b"script",
        packed: Some(b"small"),
    },
    File {
        path: "/index.html",
        kind: "text/html; charset=utf-8",
        mark: "\"i\"",
        bytes: b"page",
        packed: None,
    },
];

fn headers(list: &[(HeaderName, &'static str)]) -> HeaderMap {
    list.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
}

fn browser() -> HeaderMap {
    headers(&[(ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8")])
}

fn found(path: &str, headers: &HeaderMap) -> Option<&'static str> {
    find(PAGE, path, headers).map(|file| file.path)
}

#[test]
fn every_address_of_the_page_leads_to_the_page() {
    for path in ["/", "/inbox", "/runs/cad11adc/agents/builder", "/v1x"] {
        assert_eq!(found(path, &browser()), Some("/index.html"), "{path}");
    }
    assert_eq!(found("/assets/app-1.js", &HeaderMap::new()), Some("/assets/app-1.js"));
}

#[test]
fn programs_and_unknown_files_get_no_page() {
    for path in ["/v1/nothing", "/v1", "/mcp", "/healthz/x", "/assets/old.js", "/.well-known/x"] {
        assert_eq!(found(path, &browser()), None, "{path}");
    }
    assert_eq!(found("/runs", &headers(&[(ACCEPT, "application/json")])), None);
    assert_eq!(found("/runs", &HeaderMap::new()), None);
}

#[test]
fn what_a_browser_has_is_not_sent_again_and_what_it_can_unpack_is_sent_packed() {
    let plain = send(&PAGE[0], &HeaderMap::new());
    assert_eq!(plain.status(), StatusCode::OK);
    assert!(plain.headers().get(CONTENT_ENCODING).is_none());
    let packed = send(&PAGE[0], &headers(&[(ACCEPT_ENCODING, "br, gzip;q=0.8")]));
    assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
    let known = send(&PAGE[0], &headers(&[(IF_NONE_MATCH, "\"x\", \"a\"")]));
    assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(known.headers()[ETAG], "\"a\"");
}

#[test]
fn only_files_whose_name_changes_with_them_are_kept_for_long() {
    assert!(
        send(&PAGE[0], &HeaderMap::new()).headers()[CACHE_CONTROL]
            .to_str()
            .unwrap()
            .contains("immutable")
    );
    assert_eq!(send(&PAGE[1], &HeaderMap::new()).headers()[CACHE_CONTROL], "no-cache");
}

#[test]
fn the_policy_allows_nothing_inline_and_nothing_from_elsewhere() {
    let policy = send(&PAGE[1], &HeaderMap::new()).headers()[CONTENT_SECURITY_POLICY]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(policy.contains("default-src 'none'"));
    assert!(!policy.contains("unsafe"));
    assert!(!policy.contains("http"));
}
