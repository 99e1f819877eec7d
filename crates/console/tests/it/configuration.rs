//! The page of configurations: what is in effect, what differs between two functions, a reload by an operator.

use serde_json::{Value, json};

use crate::browser::{fits, has_no_markup};
use crate::chromium::Tab;
use crate::support::{Stand, console, get, until_state};
use crate::visitor::Visitor;

const MARKUP: &str = "<img src=x onerror=\"window.ran=1\"><script>window.ran=1</script>";

fn two() -> (Stand, Stand) {
    let (east, west) = (Stand::start("nrf"), Stand::start("bsf"));
    east.set(
        "/config",
        &json!({"listen": ["127.0.0.1:1"], "heartBeat": {"min": "2s"}, "name": MARKUP}),
    );
    west.set(
        "/config",
        &json!({"listen": ["127.0.0.1:2"], "heartBeat": {"min": "2s"}}),
    );
    (east, west)
}

#[test]
fn settings_are_shown_compared_and_reloaded() {
    let (east, west) = two();
    let console = console(&[&east, &west]);
    until_state(&console, "nrf", "serves");
    let shown = |query: &str| {
        let (status, body) = get(&console, &format!("/api/v1/configuration?{query}"));
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()
    };
    let one = shown("function=nrf");
    assert_eq!(one["rows"][0], json!({"key": "heartBeat.min", "value": "2s"}));
    assert_eq!(one["file"]["inEffect"], true);
    let both = shown("function=nrf&beside=bsf");
    let differing: Vec<&Value> = both["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["differs"] == true)
        .collect();
    assert_eq!(
        differing
            .iter()
            .map(|row| row["key"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["listen[0]", "name"]
    );
    for query in ["function=x", "", "function=nrf&beside=y"] {
        assert_eq!(
            get(&console, &format!("/api/v1/configuration?{query}")).0,
            400,
            "{query}"
        );
    }
    let mut visitor = Visitor::new(&console);
    visitor.token = visitor.get("/api/v1/session").json()["token"]
        .as_str()
        .unwrap()
        .to_owned();
    east.set("/config/reload", &json!({"changed": ["heartBeat.min"]}));
    let done = visitor.change("POST", "/api/v1/reload?function=nrf", "").json();
    assert_eq!(
        (&done["done"], &done["changed"]["changed"][0]),
        (&json!(true), &json!("heartBeat.min"))
    );
    assert!(east.asked().contains(&"POST /config/reload HTTP/1.1".to_owned()));
    assert!(west.asked().iter().all(|line| line.starts_with("GET ")));
    console.stop().unwrap();
}

#[test]
fn a_person_compares_two_functions_in_a_browser() {
    let Some(mut tab) = Tab::open() else { return };
    let (east, west) = two();
    east.says(json!({"configuration": {"file": "c.yaml", "inEffect": false, "detail": "heartBeat.min needs a restart"}}));
    let console = console(&[&east, &west]);
    until_state(&console, "bsf", "serves");
    let at = console.addresses()[0];
    tab.go(&format!("http://{at}/configuration#function=nrf&beside=bsf"));
    tab.until("document.getElementById('settings').innerText.includes('2 settings differ')");
    tab.until("document.querySelector('#settings tbody td').innerText.includes('≠ listen[0]')");
    tab.until(
        "document.getElementById('file').innerText.includes('NOT in effect: heartBeat.min needs a restart')",
    );
    tab.value("document.getElementById('filter').focus()");
    "img".chars().for_each(|letter| tab.press(&letter.to_string()));
    tab.until("document.querySelectorAll('#settings tbody tr').length === 1");
    has_no_markup(&mut tab);
    fits(&mut tab, "configuration");
    console.stop().unwrap();
}
