use axum::Json;
use axum::routing::post;
use serde_json::json;

use super::*;

const PAGES: &[Page] = &[
    Page {
        name: "instances",
        about: "The instances",
        path: "/t/instances",
        argument: None,
        columns: &[("instance", "/nfInstanceId"), ("host", "/host"), ("any", "/any")],
    },
    Page {
        name: "instance",
        about: "One instance",
        path: "/t/instances/{}",
        argument: Some("ID"),
        columns: &[],
    },
    Page {
        name: "routes",
        about: "The routes",
        path: "/t/routes",
        argument: None,
        columns: &[("list", "/list"), ("peer", "/host")],
    },
    Page {
        name: "why",
        about: "Why",
        path: "/t/why?{}",
        argument: Some("QUERY"),
        columns: &[],
    },
];

/// Markup that would run, break out of a text node, an attribute, a comment or an element, or reorder text.
const MARKUP: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>--></pre></td>&lt;\u{202e}\u{1b}]0;x\u{7}\u{200b}\u{2028}\u{2029}\u{feff}\u{ad}";

fn router(value: Value) -> Router {
    let shown = move || {
        let value = value.clone();
        async move { Json(value) }
    };
    let inner = Router::new()
        .route("/t/instances", get(shown.clone()))
        .route("/t/instances/{id}", get(shown.clone()))
        .route("/t/routes", get(shown.clone()))
        .route(
            "/t/why",
            get(|uri: Uri| async move { Json(json!({"query": uri.query()})) }),
        )
        .route("/alarms", get(shown.clone()))
        .route("/status", get(shown))
        .route(
            "/readyz",
            get(|| async { (StatusCode::SERVICE_UNAVAILABLE, format!("store: {MARKUP}\n")) }),
        )
        .route("/config/reload", post(|| async { "{}" }))
        .fallback(|uri: Uri| async move { (StatusCode::NOT_FOUND, format!("no {uri}\n")) });
    pages(inner, "t", PAGES)
}

async fn ask(router: &Router, path: &str, accept: &str) -> (StatusCode, HeaderMap, String) {
    let request = Request::get(path)
        .header(header::ACCEPT, accept)
        .body(Body::empty())
        .unwrap();
    let (head, body) = call(router.clone(), request).await.into_parts();
    let bytes = to_bytes(body, MOST_BYTES).await.unwrap();
    (
        head.status,
        head.headers,
        String::from_utf8(bytes.to_vec()).unwrap(),
    )
}

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

#[tokio::test]
async fn markup_of_peers_stays_text_in_every_field_and_page() {
    let row = json!({
        "nfInstanceId": MARKUP, "host": MARKUP, "list": MARKUP, "any": [MARKUP, {MARKUP: MARKUP}], MARKUP: MARKUP,
        "number": MARKUP, "name": MARKUP, "instance": MARKUP, "severity": MARKUP, "detail": MARKUP, "text": MARKUP,
        "advice": MARKUP, "raised": MARKUP, "cleared": MARKUP, "what": MARKUP, "remedy": MARKUP,
    });
    let object = json!({
        "active": [row], "cleared": [row], "wrong": [row], "dependencies": [row], MARKUP: MARKUP, "state": MARKUP,
        "version": MARKUP, "inner": {MARKUP: [MARKUP]}, "list": [MARKUP],
    });
    let escape = |c: char| format!("%{:02X}", c as u32);
    let encoded: String = "<script>\"'".chars().map(escape).collect();
    for value in [
        json!([row]),
        object,
        json!(MARKUP),
        json!([[MARKUP]]),
        row.clone(),
    ] {
        let router = router(value);
        for path in [
            "/",
            "/t/instances",
            "/t/instances/x",
            "/t/routes",
            "/alarms",
            "/status",
            "/readyz",
            "/t/why?a=b",
        ] {
            for path in [
                path.to_owned(),
                format!("{path}?filter={encoded}"),
                format!("{path}/{encoded}"),
            ] {
                let (_, headers, page) = ask(&router, &path, BROWSER).await;
                assert!(
                    headers[header::CONTENT_SECURITY_POLICY]
                        .to_str()
                        .unwrap()
                        .starts_with("default-src 'none'")
                );
                assert_eq!(headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
                for part in [
                    "<script",
                    "<img",
                    "alert(1)>",
                    "\u{202e}",
                    "\u{200b}",
                    "\u{2028}",
                    "\u{2029}",
                    "\u{feff}",
                    "\u{ad}",
                    "\u{1b}",
                    "--></pre",
                    "\"'",
                ] {
                    assert!(!page.contains(part), "{path}: {part}\n{page}");
                }
                // As many elements as the page itself has.
                for element in ["<pre", "<td", "<table"] {
                    let (open, close) = (
                        page.matches(element).count(),
                        page.matches(&element.replace('<', "</")).count(),
                    );
                    assert_eq!(open, close, "{path}: {element}\n{page}");
                }
            }
        }
    }
}

#[tokio::test]
async fn only_browsers_get_html() {
    let router = router(json!([{"nfInstanceId": "a"}]));
    for accept in [
        "*/*",
        "application/json",
        "",
        "application/json, text/html;q=0.5",
        "text/html;q=0",
        "text/htmlx",
    ] {
        let (status, headers, page) = ask(&router, "/t/instances", accept).await;
        assert_eq!(
            (status, page.as_str()),
            (StatusCode::OK, "[{\"nfInstanceId\":\"a\"}]"),
            "{accept}"
        );
        assert_eq!(headers[header::CONTENT_TYPE], "application/json");
        assert_eq!(headers[header::VARY], "Accept");
    }
    for accept in [BROWSER, "text/html", "TEXT/HTML;q=0.9, application/json;q=0.9"] {
        let (_, _, page) = ask(&router, "/t/instances", accept).await;
        assert!(
            page.starts_with("<!doctype html>\n<html lang=\"en\">"),
            "{accept}: {page}"
        );
    }
    let (_, _, page) = ask(&router, "/t/instances?format=json", BROWSER).await;
    assert_eq!(page, "[{\"nfInstanceId\":\"a\"}]");
    let (status, _, page) = ask(&router, "/readyz", BROWSER).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{page}");
    let (status, _, _) = ask(&router, "/nothing", BROWSER).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (_, headers, style) = ask(&router, "/style.css", "text/css").await;
    assert!(
        headers[header::CONTENT_TYPE]
            .to_str()
            .unwrap()
            .starts_with("text/css")
            && !style.contains("url(")
    );
}

#[tokio::test]
async fn links_lead_from_rows_to_what_they_are_about() {
    let rows =
        json!([{"nfInstanceId": "a b/<c>", "host": "peer.example", "list": "l"}, {"nfInstanceId": "other"}]);
    let table = router(rows);
    let (_, _, page) = ask(&table, "/t/instances", BROWSER).await;
    assert!(
        page.contains("<a href=\"/t/instances/a%20b%2F%3Cc%3E\">a b/&lt;c&gt;</a>"),
        "{page}"
    );
    assert!(
        page.contains("<a href=\"/t/routes?filter=peer.example\">peer.example</a>"),
        "{page}"
    );
    assert!(page.contains("<p>2 entries</p>"), "{page}");
    let (_, _, page) = ask(&table, "/t/routes?filter=peer.ex", BROWSER).await;
    assert!(
        page.contains("<p>1 of 2 entries</p>") && page.contains("value=\"peer.ex\""),
        "{page}"
    );
    let alarms = router(
        json!({"active": [{"number": 10530, "name": "N", "text": "T", "advice": "Check it."}], "cleared": []}),
    );
    let (_, _, page) = ask(&alarms, "/alarms", BROWSER).await;
    assert!(page.contains("<a href=\"#advice-10530\">10530</a>"), "{page}");
    assert!(
        page.contains("<h2 id=\"advice-10530\">10530 N</h2>") && page.contains("Check it."),
        "{page}"
    );
}

#[tokio::test]
async fn a_box_leads_to_the_page_of_its_argument() {
    let router = router(json!({}));
    let (_, _, index) = ask(&router, "/", BROWSER).await;
    assert!(index.contains("name=\"page\" value=\"why\""), "{index}");
    for (form, target) in [
        ("page=why&argument=a%3D%2Fb%26c%3Dd", "/t/why?a=/b&c=d"),
        (
            "page=instance&argument=%2F%2Fevil.example%0d%0aSet-Cookie",
            "/t/instances/%2F%2Fevil.example%0D%0ASet-Cookie",
        ),
        ("page=instances", "/t/instances"),
    ] {
        let (status, headers, _) = ask(&router, &format!("/open?{form}"), BROWSER).await;
        assert_eq!(status, StatusCode::SEE_OTHER);
        assert_eq!(headers[header::LOCATION], target);
    }
    for form in ["page=nothing", "page=why", "page=reload"] {
        let (status, ..) = ask(&router, &format!("/open?{form}"), BROWSER).await;
        assert!(status.is_client_error(), "{form}: {status}");
    }
    let (_, _, page) = ask(&router, "/t/why?a=/b&c=d", BROWSER).await;
    assert!(page.contains("a=/b&amp;c=d"), "{page}");
}
