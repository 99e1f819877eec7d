//! Many records in one body, and the export of records page by page.

use serde_json::{Value, json};

use crate::support::{Api, imsi, local, set, start, start_in, until};

const NDJSON: &str = "application/x-ndjson";

fn lines(records: impl IntoIterator<Item = Value>) -> String {
    records.into_iter().map(|record| format!("{record}\n")).collect()
}

#[test]
fn lines_are_written_in_transactions_of_a_thousand() {
    let sds = start(|_| {});
    local(async {
        let api = &sds.api;
        let body = lines((0..2_500).map(|number| set(number, "a")));
        let got = api.post("/records", NDJSON, body).await;
        let expected = json!({"records": 2_500, "transactions": 3, "offset": 3});
        assert_eq!((got.status(), got.json()), (200, &expected));
        let sizes: Vec<usize> = api
            .journal(0)
            .await
            .iter()
            .map(|one| one["changes"].as_array().unwrap().len())
            .collect();
        assert_eq!(sizes, [1_000, 1_000, 500]);
        // A record that comes again is another transaction, and an array is one of its own.
        let array = json!([set(7, "c"), {"name": "a@b", "destinations": "c"}]);
        let body = lines([set(1, "b"), set(2, "b"), set(1, "c"), array, set(3, "b")]);
        let got = api.post("/records", NDJSON, body).await;
        assert_eq!(got.json(), &json!({"records": 6, "transactions": 4, "offset": 7}));
        assert_eq!(api.find(&format!("imsi/{}", imsi(1))).await.as_deref(), Some("c"));
    });
    sds.stop();
}

#[test]
fn the_first_wrong_line_is_reported_and_nothing_is_written() {
    let sds = start(|_| {});
    local(async {
        let api = &sds.api;
        let good = set(1, "a").to_string();
        for (kind, body, line, reason) in [
            (
                NDJSON,
                format!("{good}\n{{\"imsi\":\"12A\",\"destinations\":\"a\"}}\n{{\n"),
                2,
                "not a digit",
            ),
            (
                NDJSON,
                format!("{good}\n{good}\n{{\"imsi\":\"1\",\"desti"),
                3,
                "cut",
            ),
            (NDJSON, format!("{good}\n\n{good}\n"), 2, ""),
            (NDJSON, format!("{good}\n[{good},{good}]\n"), 2, "twice"),
            (
                NDJSON,
                format!("{good}\n{{\"imsi\":\"1\",\"imsi\":\"1\",\"destinations\":\"a\"}}\n"),
                2,
                "twice",
            ),
            (NDJSON, String::new(), 1, "cut"),
            (
                "text/csv",
                "imsi,1,a\nimsi,1234567890123456,a\n".to_owned(),
                2,
                "16 digits",
            ),
            (
                "text/csv",
                "#signalbox-numbers,1\nimsi,1,a\n".to_owned(),
                3,
                "cut",
            ),
            ("text/csv", "imsi,1,a\nnai,x@y,a\n".to_owned(), 2, "unknown kind"),
            (
                "text/csv",
                "#signalbox-numbers,2\nimsi,1,a\n#end,1\n".to_owned(),
                1,
                "version `2`",
            ),
            (
                "text/csv",
                "#signalbox-numbers,1\n#end,0\n".to_owned(),
                2,
                "no record",
            ),
        ] {
            let got = api.post("/records", kind, body.clone()).await;
            assert_eq!(
                (got.status(), got.json()["line"].as_u64()),
                (400, Some(line)),
                "{body}: {}",
                got.text
            );
            assert!(got.detail().contains(reason), "{body}: {}", got.text);
        }
        assert_eq!(api.journal(0).await, [Value::Null; 0]);
    });
    sds.stop();
}

/// All records of a kind, read in pages.
async fn export(api: &Api, kind: &str, limit: usize) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let after = all.last().map_or(String::new(), |last| {
            format!("&after={}", last[kind].as_str().unwrap())
        });
        let page = api
            .get(&format!("/records?kind={kind}&limit={limit}{after}"))
            .await
            .lines();
        let is_last = page.len() < limit;
        all.extend(page);
        if is_last {
            return all;
        }
    }
}

#[test]
fn what_was_imported_is_exported_in_order() {
    let sds = start(|_| {});
    local(async {
        let api = &sds.api;
        let mut body = String::from("#signalbox-numbers,1\n");
        for number in (0..300).rev() {
            body.push_str(&format!(
                "imsi,{},hss{}\nmsisdn,49{number},hss1,ocs=o\n",
                imsi(number * 70_000),
                number % 7
            ));
            body.push_str(&format!("name,n{number:04}@iot.example,hss2\n"));
        }
        body.push_str("#end,900\n");
        let got = api.post("/records", "text/csv", body).await;
        assert_eq!(
            (got.status(), got.json()["records"].as_u64()),
            (200, Some(900)),
            "{}",
            got.text
        );
        let imsis = export(api, "imsi", 70).await;
        let expected = (0..300).map(|number| set(number * 70_000, &format!("hss{}", number % 7)));
        assert_eq!(imsis, expected.collect::<Vec<_>>());
        let names = export(api, "name", 300).await;
        let expected = (0..300)
            .map(|number| json!({"name": format!("n{number:04}@iot.example"), "destinations": "hss2"}));
        assert_eq!(names, expected.collect::<Vec<_>>());
        // Fewer digits come before more.
        let msisdns = export(api, "msisdn", 1).await;
        let expected =
            (0..300).map(|number| json!({"msisdn": format!("49{number}"), "destinations": "hss1,ocs=o"}));
        assert_eq!(msisdns, expected.collect::<Vec<_>>());
        assert_eq!(export(api, "imei", 10).await, [Value::Null; 0]);
    });
    sds.stop();
}

#[test]
fn one_set_more_than_fit_is_refused_and_those_that_are_there_are_not() {
    let sds = start(|_| {});
    local(async {
        let api = &sds.api;
        let body: String = (0..65_534)
            .map(|at| format!("imsi,{},s{at}\n", imsi(at)))
            .collect();
        assert_eq!(api.post("/records", "text/csv", body).await.status(), 200);
        let got = api.write(&json!([set(1, "x"), set(2, "y")])).await;
        assert_eq!(got.status(), 507, "{}", got.text);
        assert!(got.detail().contains("65535"), "{}", got.text);
        // Many changes of few sets: the sets count.
        let many: Vec<Value> = (0..1_000)
            .map(|at| set(at, ["x", "s7"][at as usize % 2]))
            .collect();
        assert_eq!(api.write(&json!(many)).await.status(), 200);
        assert_eq!(api.write(&json!([set(2, "y")])).await.status(), 507);
        assert_eq!(api.write(&json!([set(2, "x")])).await.status(), 200);
        assert_eq!(api.write(&json!([set(2, "s65533")])).await.status(), 200);
    });
    sds.stop();
}

#[test]
fn sets_that_no_record_has_any_more_are_freed_while_it_runs() {
    let often = |config: &mut sds::Config| config.journal.checkpoint = settings::Period::from_millis(50);
    let sds = start(often);
    local(async {
        let api = &sds.api;
        for sets in [65_535, 1] {
            let line = |at: u64| {
                let set = at % sets;
                format!("imsi,{},s{set}\nname,n{at},s{set}\n", imsi(at))
            };
            for part in 0..5 {
                let body: String = (part * 13_107..(part + 1) * 13_107).map(line).collect();
                assert_eq!(api.post("/records", "text/csv", body).await.status(), 200);
            }
            let other = api.write(&json!([{"name": "n1", "destinations": "x"}])).await;
            assert_eq!(other.status(), if sets > 1 { 507 } else { 200 }, "{}", other.text);
        }
        until("room for another set of numbers", async || {
            let got = api.write(&json!([set(1, "x")])).await;
            assert!([200, 507].contains(&got.status()), "{}", got.text);
            got.status() == 200
        })
        .await;
        for (subject, found) in [(imsi(1), "x"), (imsi(2), "s0"), (imsi(65_534), "s0")] {
            assert_eq!(api.find(&format!("imsi/{subject}")).await.as_deref(), Some(found));
        }
    });
    let sds = start_in(sds.stop(), often);
    local(async {
        for (subject, found) in [(imsi(1), "x"), (imsi(2), "s0")] {
            let subject = format!("imsi/{subject}");
            assert_eq!(sds.api.find(&subject).await.as_deref(), Some(found));
        }
        for (name, found) in [("n1", "x"), ("n2", "s0")] {
            assert_eq!(
                sds.api.find(&format!("name/{name}")).await.as_deref(),
                Some(found)
            );
        }
    });
    sds.stop();
}
