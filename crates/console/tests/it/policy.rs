//! The policy projects of a PCF, at the console's interface and in a real browser.

use serde_json::{Value, json};

use crate::browser::{fits, has_no_markup};
use crate::chromium::Tab;
use crate::support::{Stand, console, get, until_state};

const MARKUP: &str = "<img src=x onerror=\"window.ran=1\">";

/// A PCF whose folder for sm has another project than the one in effect.
fn pcf() -> Stand {
    let pcf = Stand::start("pcf");
    let line = |service: &str, built_in: bool| json!({"service": service, "name": format!("gold {MARKUP}"), "description": "d", "builtIn": built_in, "blocks": 3});
    pcf.set(
        "/pcf/projects",
        &json!([line("sm", false), line("am", true), line("ue", true)]),
    );
    let lines = |changed: &str| {
        let text: Vec<String> = (1..=20)
            .map(|n| {
                if n == 9 {
                    changed.to_owned()
                } else {
                    format!("line {n}")
                }
            })
            .collect();
        json!([{"name": "/etc/p/project.yaml", "text": text.join("\n")}])
    };
    let mut sm = line("sm", false);
    sm["files"] = lines("fiveQi: 8");
    sm["folder"] = json!({"differs": true, "files": lines("fiveQi: 7"), "mistakes": null});
    pcf.set("/pcf/projects/sm", &sm);
    sm["folder"]["mistakes"] = format!("policy.am: unknown block {MARKUP}").into();
    pcf.set("/pcf/projects/am", &sm);
    let mut ue = line("ue", true);
    ue["files"] = lines("imsi-001010000000001");
    pcf.set("/pcf/projects/ue", &ue);
    let block = json!({"association": "1", "project": "gold", "block": "default-session", "kind": "sessionRule",
        "decided": "sessRules.default", "outcome": MARKUP, "reads": "$request.dnn = \"internet\""});
    pcf.set("/pcf/explain/imsi-001010000000001", &json!([block]));
    pcf
}

#[test]
fn projects_and_decisions_are_those_of_the_pcf_that_was_asked_for() {
    let (pcf, nrf) = (pcf(), Stand::start("nrf"));
    let console = console(&[&pcf, &nrf]);
    until_state(&console, "pcf", "serves");
    let shown = |query: &str| -> Value {
        let (status, body) = get(&console, &format!("/api/v1/policy{query}"));
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    };
    let all = shown("?function=pcf");
    assert_eq!(
        (&all["projects"][2]["service"], &all["project"]),
        (&json!("ue"), &Value::Null)
    );
    let one = shown("?function=pcf&service=sm");
    assert_eq!(one["project"]["folder"]["differs"], true);
    let explained = shown("/explain?function=pcf&subscriber=imsi-001010000000001");
    assert_eq!(explained["blocks"][0]["block"], "default-session");
    // A function that has none, a service, a subscriber and a function that do not exist.
    for query in [
        "?function=nrf",
        "?function=pcf&service=../x",
        "/explain?function=pcf&subscriber=imsi-9",
        "?function=x",
        "",
    ] {
        assert_eq!(get(&console, &format!("/api/v1/policy{query}")).0, 400, "{query}");
    }
    let asked = pcf.asked();
    assert!(
        asked.contains(&"GET /pcf/projects/..%2Fx HTTP/1.1".to_owned()),
        "{asked:?}"
    );
    assert!(asked.iter().all(|line| line.starts_with("GET ")));
    console.stop().unwrap();
}

#[test]
fn a_person_compares_what_is_in_effect_with_the_folder_and_asks_what_is_decided() {
    let Some(mut tab) = Tab::open() else { return };
    let (pcf, nrf) = (pcf(), Stand::start("nrf"));
    let console = console(&[&nrf, &pcf]);
    until_state(&console, "pcf", "serves");
    tab.go(&format!("http://{}/policy", console.addresses()[0]));
    tab.until("document.getElementById('folder').innerText.startsWith('! The folder has another project')");
    // Only PCFs are offered.
    assert_eq!(
        tab.value("[...document.getElementById('function').options].map((one) => one.value)"),
        json!(["pcf"])
    );
    let difference = tab.value("document.querySelector('#draft pre').textContent");
    assert_eq!(
        difference,
        "…\n  line 7\n  line 8\n- fiveQi: 8\n+ fiveQi: 7\n  line 10\n  line 11\n…"
    );
    tab.until("document.getElementById('files').innerText.includes('line 20')");
    tab.value("document.getElementById('subscriber').focus()");
    "imsi-001010000000001"
        .chars()
        .for_each(|letter| tab.press(&letter.to_string()));
    tab.press("Enter");
    tab.until("document.getElementById('blocks').innerText.includes('default-session')");
    tab.until("document.getElementById('blocks').innerText.includes('<img src=x')");
    // What is typed stands in no address.
    assert_eq!(tab.value("location.href.includes('imsi')"), false);
    fits(&mut tab, "policy");
    tab.value("document.getElementById('service').value = 'am'; document.querySelector('#policy-form button').click()");
    tab.until("document.getElementById('draft').innerText.includes('policy.am: unknown block <img')");
    tab.until("document.getElementById('folder').innerText.startsWith('✗')");
    assert_eq!(tab.value("location.hash"), "#function=pcf&service=am");
    tab.value("document.getElementById('service').value = 'ue'; document.querySelector('#policy-form button').click()");
    tab.until("document.getElementById('folder').innerText.includes('built in')");
    has_no_markup(&mut tab);
    console.stop().unwrap();
}
