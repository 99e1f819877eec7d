//! What a client should not send, and a client beside it that goes on.

use http::Method;
use serde_json::json;

use crate::support::{imsi, local, set, start};

#[test]
fn wrong_requests_are_refused_with_the_reason() {
    let sds = start(|_| {});
    local(async {
        let api = &sds.api;
        let json = "application/json";
        let good = set(1, "a").to_string();
        for (method, path, kind, body, status, reason) in [
            (
                Method::GET,
                "/subscribers/imsi/0010100000000016",
                "",
                "",
                400,
                "16 digits",
            ),
            (
                Method::GET,
                "/subscribers/imsi/00101A",
                "",
                "",
                400,
                "not a digit",
            ),
            (Method::GET, "/subscribers/imsi/%ff", "", "", 400, "UTF-8"),
            (Method::GET, "/subscribers/name/a%2Cb", "", "", 400, "comma"),
            (Method::GET, "/subscribers/name/a%0Ab", "", "", 400, "character 2"),
            (Method::GET, "/subscribers/nai/a@b", "", "", 400, "unknown kind"),
            (Method::GET, "/subscribers/imsi", "", "", 404, ""),
            (Method::POST, "/subscribers/imsi/1", json, "{}", 405, ""),
            (Method::PUT, "/subscribers/imsi/1", json, "[]", 400, "object"),
            (
                Method::PUT,
                "/subscribers/imsi/1",
                json,
                "{}",
                400,
                "destinations",
            ),
            (
                Method::PUT,
                "/subscribers/imsi/1",
                json,
                "{\"destinations\":null}",
                400,
                "DELETE",
            ),
            (
                Method::PUT,
                "/subscribers/imsi/1",
                json,
                "{\"destinations\":\"a\",\"imsi\":\"2\"}",
                400,
                "object",
            ),
            (
                Method::PUT,
                "/subscribers/imsi/1",
                json,
                "{\"destinations\":\"a,a\"}",
                400,
                "two destinations",
            ),
            (
                Method::PUT,
                "/subscribers/imsi/1",
                json,
                "{\"destinations\":\"a\",\"x\":1}",
                400,
                "x: expected",
            ),
            (Method::PUT, "/subscribers/imsi/1", "text/plain", "a", 415, json),
            (Method::POST, "/transactions", json, "[{\"imsi\":\"1\"", 400, ""),
            (Method::POST, "/transactions", json, "[]", 400, "no change"),
            (Method::POST, "/transactions", json, "{}", 400, "array"),
            (
                Method::POST,
                "/transactions",
                json,
                &*format!("[{good},{{}}]"),
                400,
                "change 2",
            ),
            (
                Method::POST,
                "/transactions",
                json,
                &*format!("{}1", "[".repeat(5_000)),
                400,
                "",
            ),
            (Method::POST, "/records", json, &*good, 415, "ndjson"),
            (Method::GET, "/records?kind=nai", "", "", 400, "kind"),
            (Method::GET, "/records", "", "", 400, "kind"),
            (
                Method::GET,
                "/records?kind=imsi&limit=10001",
                "",
                "",
                400,
                "limit",
            ),
            (Method::GET, "/records?kind=imsi&after=x", "", "", 400, "after"),
            (Method::GET, "/records?kind=imsi&color=red", "", "", 400, "color"),
            (Method::GET, "/journal", "", "", 400, "after"),
            (Method::GET, "/journal?after=-1", "", "", 400, "after"),
            (
                Method::GET,
                "/journal?after=99999999999999999999",
                "",
                "",
                400,
                "after",
            ),
            (Method::GET, "/journal?after=0&after=1", "", "", 400, "once"),
            (Method::GET, "/journal?after=0&wait=31", "", "", 400, "wait"),
            (Method::GET, "/journal?after=0&dp=a%20b", "", "", 400, "dp"),
            (
                Method::GET,
                "/journal?after=18446744073709551614",
                "",
                "",
                200,
                "",
            ),
        ] {
            let got = api.ask(method.clone(), path, kind, body.to_owned()).await;
            assert_eq!(got.status(), status, "{method} {path} {body}: {}", got.text);
            assert!(got.text.contains(reason), "{method} {path} {body}: {}", got.text);
        }
        assert_eq!(api.journal(0).await.len(), 0, "nothing was written");
    });
    sds.stop();
}

#[test]
fn entities_and_bombs_of_xml_are_refused() {
    let sds = start(|_| {});
    local(async {
        let api = &sds.api;
        let lol: String = (1..10)
            .map(|level| {
                format!(
                    "<!ENTITY l{level} \"{}\">",
                    format!("&l{};", level - 1).repeat(10)
                )
            })
            .collect();
        let set = "<set imsi=\"1\" destinations=\"a\"/>";
        let deep = "<a>".repeat(100_000);
        let many = format!("<transaction>{}</transaction>", set.repeat(1_001));
        for (body, reason) in [
            (format!("<!DOCTYPE x [<!ENTITY l0 \"lol\">{lol}]><transaction>{set}</transaction>"), "document type"),
            (
                "<!DOCTYPE x SYSTEM \"file:///etc/passwd\"><transaction><set imsi=\"1\" destinations=\"a\"/></transaction>".to_owned(),
                "document type",
            ),
            ("<transaction><set imsi=\"&x;\" destinations=\"a\"/></transaction>".to_owned(), ""),
            (deep, "transaction or query"),
            (many, "at most 1000"),
            (format!("<transaction>{set}"), "cut"),
            (format!("<transaction>{set}</query>"), ""),
            ("\u{0}".to_owned(), ""),
        ] {
            let shown: String = body.chars().take(80).collect();
            let got = api.post("/xml", "application/xml", body).await;
            assert_eq!(got.status(), 400, "{shown}: {}", got.text);
            assert!(got.text.starts_with("<error>") && got.text.contains(reason), "{shown}: {}", got.text);
        }
        let got = api.post("/xml", "application/xml", vec![0xff, 0xfe, b'<']).await;
        assert_eq!(got.status(), 400);
        assert_eq!(api.post("/xml", "application/json", "{}").await.status(), 415);
        assert_eq!(api.journal(0).await.len(), 0);
    });
    sds.stop();
}

#[test]
fn a_large_body_is_refused_and_others_go_on() {
    let sds = start(|config| config.server.max_body = settings::ByteSize::kib(64));
    local(async {
        let api = &sds.api;
        let (large, change) = ("x".repeat(100_000), json!([set(1, "a")]));
        let (refused, got) = tokio::join!(
            api.post("/records", "application/x-ndjson", large),
            api.write(&change),
        );
        assert_eq!((refused.status(), got.offset()), (413, 1));
        assert_eq!(api.find(&format!("imsi/{}", imsi(1))).await.as_deref(), Some("a"));
    });
    sds.stop();
}

#[test]
fn json_is_bounded_before_it_is_parsed() {
    let sds = start(|_| {});
    local(async {
        let api = &sds.api;
        let (json, lines) = ("application/json", "application/x-ndjson");
        let record = 64 * 1_024;
        for (method, path, kind, most) in [
            (Method::PUT, "/subscribers/imsi/1", json, record),
            (Method::PUT, "/groups/a", json, record),
            (Method::POST, "/transactions", json, 6 * 1_024 * 1_024),
            (Method::POST, "/records", lines, record),
        ] {
            // Nothing is wrong with it but its length; a line has its end besides.
            let end = if kind == lines { "\n" } else { "" };
            let text = |length: usize| format!("{}{}{end}", "0,".repeat(length / 2), &"0"[..length % 2]);
            let got = api.ask(method.clone(), path, kind, text(most + 1)).await;
            assert_eq!(got.status(), 413, "{path}: {}", got.text);
            assert!(got.detail().contains(&most.to_string()), "{path}: {}", got.text);
            let got = api.ask(method, path, kind, text(most)).await;
            assert_eq!(got.status(), 400, "{path}: {}", got.text);
        }
        // An array on a line is a transaction.
        let many: Vec<_> = (0..1_000).map(|number| set(number, &"a".repeat(100))).collect();
        let got = api.post("/records", lines, format!("{}\n", json!(many))).await;
        assert_eq!(got.status(), 200, "{}", got.text);
    });
    sds.stop();
}

#[test]
fn a_document_is_bounded_before_it_is_parsed() {
    let sds = start(|_| {});
    local(async {
        let most = 6 * 1_024 * 1_024;
        for (length, status, reason) in [
            (most + 1, 413, most.to_string()),
            (most, 400, "an element".to_owned()),
        ] {
            let got = sds.api.post("/xml", "application/xml", " ".repeat(length)).await;
            assert_eq!(got.status(), status, "{}", got.text);
            assert!(got.text.contains(&reason), "{}", got.text);
        }
    });
    sds.stop();
}
