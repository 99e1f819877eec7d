//! The page that explains: it asks the planners as the command line does, and shows their answers as sentences.

use serde_json::{Value, json};

use crate::browser::{fits, has_no_markup};
use crate::chromium::Tab;
use crate::support::{Stand, console, until_state};
use crate::visitor::{Answer, Visitor};

const MARKUP: &str = "<img src=x onerror=\"window.ran=1\"><script>window.ran=1</script>";
const DIAMETER: &str = "0100001480000118000000000000000100000002";

/// What an SCP says of a request.
fn of_scp() -> Value {
    json!({
        "decision": format!("The request goes to http://udm1 {MARKUP}."),
        "decidedBy": "relay",
        "why": ["admission: the consumer is AMF-1.", "planner: The discovery found 2 service instances."],
        "candidates": [
            {"nfType": "UDM", "nfInstanceId": "u1", "endpoint": "http://udm1", "status": "REGISTERED", "distance": "site", "priority": 1, "capacity": 10, "load": 0, "standing": "may serve", "outcome": "chosen"},
            {"nfType": "UDM", "nfInstanceId": MARKUP, "endpoint": "http://udm2", "status": "REGISTERED", "distance": "site", "priority": 2, "capacity": 10, "load": 0, "standing": "may serve", "outcome": "its priority 2 comes after 1"},
        ],
        "attempts": [{"target": "http://udm1", "nfInstanceId": "u1", "through": null, "verdict": "would be sent"}],
    })
}

fn ask(console: &console::Running, form: &Value) -> Answer {
    let mut visitor = Visitor::new(console);
    visitor.token = visitor.get("/api/v1/session").json()["token"]
        .as_str()
        .unwrap()
        .to_owned();
    visitor.change("POST", "/api/v1/why", &form.to_string())
}

#[test]
fn a_pasted_message_is_asked_at_the_functions_that_would_get_it_as_the_command_asks() {
    let (scp, dsr, nrf) = (Stand::start("scp"), Stand::start("dsr"), Stand::start("nrf"));
    scp.set("/scp/why", &of_scp());
    dsr.set("/dsr/why", &json!({"mediation": [], "application": null, "route": {"rule": "r", "outcome": "route list all", "peers": [{"host": "hss1", "group": "g", "active": true, "state": "available"}]}}));
    let console = console(&[&scp, &dsr, &nrf]);
    for name in ["scp", "dsr", "nrf"] {
        until_state(&console, name, "serves");
    }
    let text = "POST /nudm-sdm/v2/imsi-1 HTTP/1.1\nUser-Agent: AMF-1\n3gpp-Sbi-Target-apiRoot: http://udm:80\n\n{\"a\": 1}";
    let said = ask(&console, &json!({"text": text}));
    assert_eq!(said.status, 200, "{}", said.body);
    let said = said.json();
    assert_eq!(said["answers"].as_array().unwrap().len(), 1, "{said}");
    let answer = &said["answers"][0];
    let query = "method=POST&path=%2Fnudm-sdm%2Fv2%2Fimsi-1&header=User-Agent%3A%20AMF-1&header=3gpp-Sbi-Target-apiRoot%3A%20http%3A%2F%2Fudm%3A80&body=%7B%22a%22%3A%201%7D";
    assert!(
        scp.asked().contains(&format!("GET /scp/why?{query} HTTP/1.1")),
        "{:?}",
        scp.asked()
    );
    // The command gives the same: its page encodes nothing of it once more.
    assert_eq!(function::pages::query(query), query);
    assert_eq!(
        answer["command"],
        format!("signalbox scp why '{query}' --admin {}", scp.address)
    );
    assert_eq!(answer["answer"], of_scp());
    assert_eq!(answer["steps"][2], "attempt 1: http://udm1 (u1): would be sent");
    assert_eq!(answer["candidates"][1]["outcome"], "its priority 2 comes after 1");

    let said = ask(&console, &json!({"text": DIAMETER, "peer": "mme.example"})).json();
    assert_eq!(said["answers"][0]["decision"], "The router: route list all.");
    let question = format!("GET /dsr/why?peer=mme.example&message={DIAMETER} HTTP/1.1");
    assert!(dsr.asked().contains(&question), "{:?}", dsr.asked());

    nrf.set(
        "/nrf/why",
        &json!({"found": 1, "dropped": [{"nfInstanceId": "x", "by": "dnn", "why": "w"}]}),
    );
    let said = ask(&console, &json!({"text": "GET /nnrf-disc/v1/nf-instances?target-nf-type=SMF&requester-nf-type=AMF", "function": "nrf"})).json();
    assert_eq!(said["answers"].as_array().unwrap().len(), 1, "{said}");
    assert_eq!(
        said["answers"][0]["candidates"][0]["outcome"],
        "dropped by dnn: w"
    );
    console.stop().unwrap();
}

#[test]
fn what_cannot_be_explained_is_said_in_words() {
    let scp = Stand::start("scp");
    scp.set("/scp/why", &json!({"error": "expected `path`"}));
    let console = console(&[&scp]);
    until_state(&console, "scp", "serves");
    for (form, words) in [
        (json!({"text": ""}), "paste a request line"),
        (json!({"text": "{\"supi\": 1}"}), "a body alone has no route"),
        (json!({"text": "GET /x", "unknown": 1}), "expected JSON"),
        (
            json!({"text": format!("GET /{}", "x".repeat(20_000))}),
            "too long",
        ),
    ] {
        let refused = ask(&console, &form);
        assert_eq!(refused.status, 400, "{form}");
        assert!(refused.body.contains(words), "{}", refused.body);
    }
    let said = ask(&console, &json!({"text": "GET /x"})).json();
    assert_eq!(said["answers"][0]["error"], "expected `path`");
    // An earlier release has other members, a broken one none.
    for odd in [
        json!([1, 2]),
        json!("x"),
        json!({"candidates": [{"standing": "may serve"}], "why": {}}),
    ] {
        scp.set("/scp/why", &odd);
        let said = ask(&console, &json!({"text": "GET /x"}));
        assert_eq!(said.status, 200, "{}", said.body);
    }
    console.stop().unwrap();
}

#[test]
fn a_person_pastes_or_takes_a_followed_message_and_reads_sentences() {
    let Some(mut tab) = Tab::open() else { return };
    let scp = Stand::start("scp");
    scp.set("/scp/why", &of_scp());
    let supi = "imsi-001010000000001";
    scp.set(
        "/follow",
        &json!({"version": 1, "followed": [{"identity": supi}]}),
    );
    let message = json!({
        "number": 1, "time": "2026-11-28T10:00:00.000001Z", "microseconds": 1, "function": "scp", "identity": supi, "foundBy": supi,
        "interface": "sbi", "kind": "request", "exchange": 1, "direction": "in", "peer": "amf", "from": "127.0.0.1:1", "to": "127.0.0.1:2",
        "stream": 1, "title": "GET /nudm-sdm/v2/imsi-1", "isFailure": false,
        "headers": [[":method", "GET"], [":path", "/nudm-sdm/v2/imsi-1"], ["user-agent", "AMF-1"]], "text": "",
    });
    scp.set(
        "/follow/messages",
        &json!({"version": 1, "next": 1, "more": false, "notKept": 0, "messages": [message]}),
    );
    let console = console(&[&scp]);
    until_state(&console, "scp", "serves");
    let at = console.addresses()[0];
    tab.go(&format!("http://{at}/why"));
    tab.until("document.querySelectorAll('#function option').length === 2");
    tab.value("document.getElementById('message').focus()");
    for letter in "GET /x".chars() {
        tab.press(&letter.to_string());
    }
    // By keyboard: function, peer, button.
    for key in ["Tab", "Tab", "Tab", "Enter"] {
        tab.press(key);
    }
    tab.until(
        "document.getElementById('answers').innerText.includes('The request goes to http://udm1 <img src=x')",
    );
    tab.until("document.getElementById('answers').innerText.includes('its priority 2 comes after 1')");
    tab.until("document.getElementById('answers').innerText.includes('✓ UDM u1 at http://udm1')");
    has_no_markup(&mut tab);
    fits(&mut tab, "why");
    tab.go(&format!("http://{at}/follow#{supi}"));
    tab.until("document.querySelectorAll('.ladder button').length === 1");
    tab.value("document.querySelector('.ladder button').click()");
    tab.until("!document.getElementById('why').hidden");
    tab.value("document.getElementById('why').click()");
    tab.until("location.pathname === '/why' && document.getElementById('answers').innerText.includes('The request goes to')");
    let query =
        "GET /scp/why?method=GET&path=%2Fnudm-sdm%2Fv2%2Fimsi-1&header=user-agent%3A%20AMF-1 HTTP/1.1";
    assert!(scp.asked().contains(&query.to_owned()), "{:?}", scp.asked());
    assert_eq!(tab.value("sessionStorage.length"), 0);
    let complaints = tab.events.iter().filter(|event| {
        event["method"] == "Runtime.exceptionThrown" || event["params"]["entry"]["source"] == "security"
    });
    assert_eq!(complaints.map(Value::to_string).collect::<Vec<_>>(), [""; 0]);
    console.stop().unwrap();
}
