//! What the summary says of functions that serve, lack something, hang, die and come back.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::{PATIENCE, Stand, console, get, row, summary, until, until_state};

#[test]
fn a_function_says_what_is_wrong_and_what_changed() {
    let (nrf, scp) = (Stand::start("nrf"), Stand::start("scp"));
    scp.says(json!({
        "state": "serves, needs attention",
        "wrong": [{"what": "NRF set 0", "detail": "connection refused", "remedy": "Check that it runs."}],
        "dependencies": [{"name": "NRF set 0", "state": "failing", "since": "2026-11-28T17:56:57.1Z",
            "lastSuccess": "2026-11-28T17:56:50Z", "lastError": "connection refused", "lastErrorAt": "2026-11-28T18:00:00Z"}],
        "alarms": [{"number": 10540, "name": "NRF", "severity": "major", "instance": "set 0", "detail": "d",
            "text": "t", "advice": "a", "raised": "2026-11-28T17:57:00Z"}],
    }));
    let now = telemetry::journal::moment(std::time::SystemTime::now());
    let entry =
        json!({"sequence": 1, "time": now, "kind": "reloadApplied", "about": "c.yaml", "detail": "x"});
    nrf.set("/journal", &json!([entry]));
    scp.set("/journal", &json!([entry, {"sequence": 2, "time": "2000-01-01T00:00:00.000Z", "kind": "started", "about": "scp", "detail": ""}]));
    let console = console(&[&nrf, &scp]);
    until_state(&console, "scp", "serves, needs attention");
    until_state(&console, "nrf", "serves");
    until("the journals", || {
        summary(&console)["changes"]["entries"][0]["functions"] == json!(["nrf", "scp"])
    });
    let said = summary(&console);
    assert_eq!(said["version"], 1);
    assert_eq!(
        said["headline"]["text"],
        "All 2 functions serve; 1 thing needs you: SCP cannot reach NRF set 0 since 17:56:57: connection refused."
    );
    assert_eq!(said["headline"]["level"], "attention");
    let need = &said["headline"]["needs"][0];
    assert_eq!(
        need["command"],
        format!("signalbox scp status --admin {}", scp.address)
    );
    assert_eq!(need["remedy"], "Check that it runs.");
    assert_eq!(said["peersDown"]["peers"][0]["peer"], "NRF set 0");
    assert_eq!(said["alarms"]["active"][0]["advice"], "a");
    // Only of the last hour.
    assert_eq!(said["changes"]["entries"].as_array().unwrap().len(), 1);
    let (_, words) = get(&console, "/text");
    for part in [
        "All 2 functions serve;",
        "10540 NRF (major)",
        "last success 2026-11-28T17:56:50Z",
        "reload applied",
    ] {
        assert!(words.contains(part), "{words}");
    }
    console.stop().unwrap();
}

#[test]
fn a_dead_function_is_gone_since_a_moment_and_comes_back() {
    let (mut nrf, scp) = (Stand::start("nrf"), Stand::start("scp"));
    let console = console(&[&nrf, &scp]);
    until_state(&console, "nrf", "serves");
    until_state(&console, "scp", "serves");
    assert_eq!(summary(&console)["headline"]["level"], "good");
    nrf.end();
    until_state(&console, "nrf", "not running");
    let gone = row(&console, "nrf");
    assert!(
        gone["since"].is_string() && gone["lastAnswer"].is_string(),
        "{gone}"
    );
    assert_eq!((&gone["upSince"], &gone["level"]), (&Value::Null, &json!("bad")));
    let said = summary(&console);
    let text = said["headline"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("1 of 2 functions serves; 1 thing needs you: NRF is not running since "),
        "{text}"
    );
    assert_eq!(said["headline"]["needs"][0]["command"], "signalbox run nrf");
    assert_eq!(
        row(&console, "nrf")["since"],
        gone["since"],
        "one outage has one beginning"
    );
    nrf.begin();
    until_state(&console, "nrf", "serves");
    assert_eq!(summary(&console)["headline"]["text"], "All 2 functions serve.");
    // The console's own journal has both.
    let changes = summary(&console)["changes"]["entries"].clone();
    let kinds: Vec<&str> = changes
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["change"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["peer up", "peer down"]);
    console.stop().unwrap();
}

#[test]
fn a_function_that_hangs_does_not_slow_the_rest() {
    let (nrf, scp) = (Stand::start("nrf"), Stand::start("scp"));
    nrf.hangs(true);
    let console = console(&[&nrf, &scp]);
    until("a request to hang", || nrf.hanging() > 0);
    // Asked in turn, both would be asked equally often.
    let asked = |stand: &Stand| {
        let lines = stand.asked();
        lines.iter().filter(|line| line.contains("/status")).count()
    };
    until("the other to be asked more often", || {
        asked(&scp) >= asked(&nrf) + 4
    });
    until_state(&console, "nrf", "no answer");
    until_state(&console, "scp", "serves");
    nrf.hangs(false);
    until_state(&console, "nrf", "serves");
    console.stop().unwrap();
}

#[test]
fn what_is_not_the_function_is_not_taken_for_it() {
    let (nrf, scp, pcf) = (Stand::start("nrf"), Stand::start("scp"), Stand::start("pcf"));
    nrf.says(json!({"function": "bsf"}));
    scp.set_text("/status", "<html>");
    pcf.set_text("/status", &"[".repeat(1 << 20));
    let console = console(&[&nrf, &scp, &pcf]);
    for name in ["nrf", "scp", "pcf"] {
        until_state(&console, name, "unknown");
        assert_eq!(row(&console, name)["level"], "bad");
    }
    let wrong = row(&console, "nrf")["wrong"][0]["detail"].clone();
    assert_eq!(wrong, format!("bsf answers at {} in its place", nrf.address));
    console.stop().unwrap();
}

#[test]
fn figures_are_those_of_the_metrics() {
    let nrf = Stand::start("nrf");
    let reading = |answered: u32, failed: u32| {
        format!(
            "signalbox_nrf_responses_total{{operation=\"a\",status=\"200\"}} {answered}\n\
             signalbox_nrf_responses_total{{operation=\"a\",status=\"503\"}} {failed}\n\
             signalbox_nrf_request_seconds_bucket{{operation=\"a\",le=\"0.01\"}} {answered}\n\
             signalbox_nrf_request_seconds_bucket{{operation=\"a\",le=\"+Inf\"}} {answered}\n"
        )
    };
    nrf.set_text("/metrics", &reading(100, 0));
    let console = console(&[&nrf]);
    until("figures", || row(&console, "nrf")["figures"]["perSecond"] == 0.0);
    assert_eq!(row(&console, "nrf")["figures"]["failureShare"], Value::Null);
    nrf.set_text("/metrics", &reading(400, 100));
    until("requests", || {
        row(&console, "nrf")["figures"]["failureShare"] == 0.25
    });
    let figures = row(&console, "nrf")["figures"].clone();
    assert_eq!(
        (&figures["unit"], &figures["p99Seconds"]),
        (&json!("requests"), &json!(0.0099))
    );
    assert!(figures["perSecond"].as_f64().unwrap() > 0.0, "{figures}");
    // After a restart rates begin again at none, and are never negative.
    nrf.says(json!({"process": 8}));
    nrf.set_text("/metrics", &reading(1, 0));
    until("a new beginning", || {
        row(&console, "nrf")["figures"]["perSecond"] == 0.0
    });
    console.stop().unwrap();
}

#[test]
fn peers_that_are_down_have_their_reason() {
    let dsr = Stand::start("dsr");
    let peer = |host: &str, state: &str| json!({"host": host, "state": state, "administration": "enabled", "lastError": "refused", "downSince": "2026-11-28T01:00:00Z"});
    dsr.set(
        "/dsr/peers",
        &json!([peer("hss1", "unavailable"), peer("hss2", "available")]),
    );
    let console = console(&[&dsr]);
    until("the peer", || {
        summary(&console)["peersDown"]["peers"]
            .as_array()
            .is_some_and(|all| all.len() == 1)
    });
    let peer = summary(&console)["peersDown"]["peers"][0].clone();
    let expected =
        json!({"function": "dsr", "peer": "hss1", "reason": "refused", "since": "2026-11-28T01:00:00Z"});
    assert_eq!(peer, expected);
    console.stop().unwrap();
}

#[test]
fn a_reload_changes_what_is_followed_and_keeps_what_is_known() {
    let (nrf, scp) = (Stand::start("nrf"), Stand::start("scp"));
    let console = console(&[&nrf]);
    until_state(&console, "nrf", "serves");
    let since = row(&console, "nrf")["since"].clone();
    let mut config = (*console.handle().live().load().config).clone();
    config.functions = vec![scp.followed(), nrf.followed()];
    console.reload(&config).unwrap();
    until("both", || {
        summary(&console)["functions"].as_array().unwrap().len() == 2
    });
    until_state(&console, "scp", "serves");
    assert_eq!(row(&console, "nrf")["since"], since);
    config.functions.clear();
    console.reload(&config).unwrap();
    until("none", || summary(&console)["functions"] == json!([]));
    assert_eq!(summary(&console)["headline"]["level"], "unknown");
    console.stop().unwrap();
}

#[test]
fn the_stream_has_the_whole_first_and_then_what_changes() {
    let nrf = Stand::start("nrf");
    let console = console(&[&nrf]);
    until_state(&console, "nrf", "serves");
    let address = console.addresses()[0];
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET /api/v1/stream HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut events =
        lines.filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    let first = events.next().unwrap();
    assert_eq!(
        (&first["version"], &first["functions"][0]["state"]),
        (&json!(1), &json!("serves"))
    );
    nrf.says(json!({"state": "NOT READY", "ready": false, "wrong": [{"what": "store", "detail": "full", "remedy": "r"}]}));
    let next = events
        .find(|event| event["headline"].is_object() && event["headline"]["level"] == "bad")
        .unwrap();
    assert!(
        next.get("version").is_none() && next.get("alarms").is_none(),
        "only what has changed: {next}"
    );
    assert_eq!(next["functions"][0]["wrong"][0]["what"], "store");
    console.stop().unwrap();
}
