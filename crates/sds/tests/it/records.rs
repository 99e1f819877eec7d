//! Records one by one, in transactions, as XML, and a restart.

use std::process::Command;

use serde_json::json;
use testpeer::skip;

use crate::support::{imsi, local, set, start, start_in};

#[test]
fn a_record_is_set_read_and_removed() {
    let sds = start(|_| {});
    local(async {
        let api = &sds.api;
        let path = format!("/subscribers/imsi/{}", imsi(1));
        assert_eq!(api.get(&path).await.status(), 404);
        let body = json!({"destinations": "pcrf=pcrf7.example,hss1.example"});
        let written = api.put(&path, &body).await;
        assert_eq!((written.offset(), written.number("journal-offset")), (1, 1));
        let got = api.get(&path).await;
        let expected = json!({"imsi": imsi(1), "destinations": "hss1.example,pcrf=pcrf7.example",
            "services": {"pcrf": "pcrf7.example"}, "otherServices": "hss1.example", "offset": 1});
        assert_eq!(got.json(), &expected);
        // Names are found in any case, and with characters that a path has to encode.
        let name = "/subscribers/name/SIP%3AAlice%2fx@IMS.example";
        assert_eq!(
            api.put(name, &json!({"destinations": "ims-hss=h"}))
                .await
                .offset(),
            2
        );
        let got = api.get("/subscribers/name/sip:alice%2Fx@ims.example").await;
        assert_eq!(got.json()["services"], json!({"ims-hss": "h"}));
        assert_eq!(got.json()["otherServices"], json!(null));
        for kind in ["imei", "msisdn"] {
            assert_eq!(api.find(&format!("{kind}/{}", imsi(1))).await, None, "{kind}");
        }
        assert_eq!(api.delete(&path).await.offset(), 3);
        assert_eq!(api.get(&path).await.status(), 404);
        assert_eq!(api.delete(&path).await.status(), 404);
    });
    sds.stop();
}

#[test]
fn a_transaction_is_carried_out_whole_or_not_at_all() {
    let sds = start(|_| {});
    local(async {
        let api = &sds.api;
        let name = json!({"name": "a@b.example", "destinations": "x"});
        assert_eq!(
            api.write(&json!([set(1, "a"), set(2, "b"), name])).await.offset(),
            1
        );
        let failing = json!([set(1, "c"), {"imsi": imsi(2), "destinations": null, "expected": "z"}]);
        let refused = api.write(&failing).await;
        assert_eq!(refused.status(), 409);
        assert!(
            refused.detail().contains("change 2") && refused.detail().contains(" b"),
            "{}",
            refused.text
        );
        let absent = json!([set(9, "c"), {"name": "a@b.example", "destinations": "y", "expected": null}]);
        assert_eq!(api.write(&absent).await.status(), 409);
        let found = [
            api.find(&format!("imsi/{}", imsi(1))).await,
            api.find(&format!("imsi/{}", imsi(9))).await,
        ];
        assert_eq!(found, [Some("a".to_owned()), None]);
        let holds = json!([
            {"imsi": imsi(1), "destinations": null, "expected": "a"},
            {"imsi": imsi(9), "destinations": "c", "expected": null},
        ]);
        assert_eq!(api.write(&holds).await.offset(), 2);
        assert_eq!(api.find(&format!("imsi/{}", imsi(1))).await, None);
        assert_eq!(api.journal(0).await.len(), 2, "refused ones have no offset");
    });
    sds.stop();
}

#[test]
fn conditions_of_transactions_that_come_together_hold_one_after_the_other() {
    let sds = start(|_| {});
    local(async {
        // All expect the same record to be absent: one of them is the first.
        let change = json!([{"imsi": imsi(1), "destinations": "a", "expected": null}]);
        let tries = (0..40).map(|_| {
            let (api, change) = (sds.api.clone(), change.clone());
            tokio::task::spawn_local(async move { api.write(&change).await.status() })
        });
        let tries: Vec<_> = tries.collect();
        let mut written = 0;
        for one in tries {
            written += u16::from(one.await.unwrap() == 200);
        }
        assert_eq!(written, 1);
        let count = |event| sds.running.count(event);
        // Each of them once.
        assert_eq!(
            (count(sds::Event::ExpectedOther), count(sds::Event::BadRequest)),
            (39, 0)
        );
    });
    sds.stop();
}

#[test]
fn an_xml_document_is_a_transaction_or_a_query() {
    let sds = start(|_| {});
    local(async {
        let api = &sds.api;
        let document = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<transaction><set imsi=\"{0}\" destinations=\"hss1,pcrf=p1\"/>\
             <set name=\"a&amp;b@c\" destinations=\"hss2\" expected=\"\"/></transaction>",
            imsi(1)
        );
        let got = api.post("/xml", "application/xml", document.clone()).await;
        assert_eq!(
            (got.status(), got.text.as_str()),
            (200, "<answer offset=\"1\"/>\n")
        );
        assert_eq!(got.header("content-type"), "application/xml");
        let refused = api.post("/xml", "text/xml", document).await;
        assert_eq!(refused.status(), 409);
        assert!(
            refused
                .text
                .starts_with("<error>change 2: name,a&amp;b@c has hss2"),
            "{}",
            refused.text
        );
        let query = format!(
            "<query><get imsi='{}'/><get name='a&amp;b@c'/><get msisdn='1'/></query>",
            imsi(1)
        );
        let expected = format!(
            "<answer offset=\"1\">\n  <record imsi=\"{}\" destinations=\"hss1,pcrf=p1\"/>\n  \
             <record name=\"a&amp;b@c\" destinations=\"hss2\"/>\n  <record msisdn=\"1\"/>\n</answer>\n",
            imsi(1)
        );
        assert_eq!(api.post("/xml", "application/xml", query).await.text, expected);
    });
    sds.stop();
}

#[test]
fn records_are_there_after_a_restart_with_and_without_a_save() {
    let quick = |config: &mut sds::Config| {
        config.journal.checkpoint = settings::Period::from_millis(50);
        config.journal.keep = 2;
    };
    let sds = start(quick);
    local(async {
        for number in 0..30 {
            sds.api
                .write(&json!([set(number, "a"), {"name": format!("n{number}"), "destinations": "b"}]))
                .await
                .offset();
        }
        testpeer::until("the journal to be trimmed", async || {
            sds.api.get("/journal?after=20").await.status() == 410
        })
        .await;
    });
    // Without a save from here on.
    let sds = start_in(sds.stop(), |_| {});
    local(async {
        assert_eq!(
            sds.api.find(&format!("imsi/{}", imsi(0))).await.as_deref(),
            Some("a")
        );
        assert_eq!(sds.api.find("name/n29").await.as_deref(), Some("b"));
        assert_eq!(
            sds.api
                .write(&json!([set(0, "c"), {"name": "n29", "destinations": null}]))
                .await
                .offset(),
            31
        );
    });
    let sds = start_in(sds.stop(), quick);
    local(async {
        assert_eq!(
            sds.api.find(&format!("imsi/{}", imsi(0))).await.as_deref(),
            Some("c")
        );
        assert_eq!(sds.api.find("name/n29").await, None);
        assert_eq!(sds.api.write(&json!([set(1, "d")])).await.offset(), 32);
    });
    sds.stop();
}

#[test]
fn curl_reads_and_writes() {
    if skip::output(Command::new("curl").arg("--version")).is_none() {
        return;
    }
    let sds = start(|_| {});
    let curl = |arguments: &[&str]| {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--http2-prior-knowledge"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let uri = |path: &str| format!("{}{path}", sds.api.origin);
    let body = json!([set(1, "hss1,pcrf=p1"), {"name": "a@b", "destinations": "hss2"}]).to_string();
    let written = curl(&[
        "-H",
        "content-type: application/json",
        "-d",
        &body,
        &uri("/transactions"),
    ]);
    assert_eq!(written, "{\"offset\":1}");
    let found = curl(&[&uri(&format!("/subscribers/imsi/{}", imsi(1)))]);
    assert!(found.contains("\"pcrf\":\"p1\""), "{found}");
    let id = curl(&[
        "-o",
        "/dev/null",
        "-w",
        "%header{journal-id}",
        &uri("/journal?after=0"),
    ]);
    let text = curl(&[&uri("/checkpoint")]);
    let (before, sum) = text.split_once("#crc32c,").unwrap();
    let text = format!("{before}{}", &sum[9..]);
    let expected = format!(
        "#signalbox-numbers,1\n#journal,{id}\n#offset,1\nimsi,{},hss1,pcrf=p1\nname,a@b,hss2\n#end,2\n",
        imsi(1)
    );
    assert_eq!(text, expected);
    sds.stop();
}
