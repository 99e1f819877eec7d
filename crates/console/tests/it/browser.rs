//! The page in a real browser: what a person sees of functions that serve, die and come back, of markup, of a console that
//! restarts; by keyboard, on a narrow screen, in both colour schemes.

use console::config::Config;
use serde_json::{Value, json};

use crate::chromium::Tab;
use crate::support::{Stand, console, streams, until_state};

const HEADLINE: &str = "document.getElementById('headline').innerText";

fn url(console: &console::Running) -> String {
    format!("http://{}/", console.addresses()[0])
}

#[test]
fn a_dead_function_a_repair_and_a_restart_of_the_console_are_on_the_page() {
    let Some(mut tab) = Tab::open() else { return };
    let (mut nrf, scp) = (Stand::start("nrf"), Stand::start("scp"));
    let running = console(&[&nrf, &scp]);
    tab.go(&url(&running));
    tab.until(&format!("{HEADLINE}.includes('All 2 functions serve.')"));
    tab.until("document.getElementById('headline').className === 'headline good'");
    nrf.end();
    tab.until(&format!("{HEADLINE}.includes('NRF is not running since')"));
    tab.until("document.getElementById('headline').className === 'headline bad'");
    let needs = tab.value("document.getElementById('needs').innerText");
    assert!(needs.as_str().unwrap().contains("signalbox run nrf"), "{needs}");
    tab.until("document.getElementById('changes').innerText.includes('peer down')");
    nrf.begin();
    tab.until(&format!("{HEADLINE}.includes('All 2 functions serve.')"));
    // Silence of the console itself is never green.
    let config = Config {
        listen: running.addresses()[0],
        ..(*running.handle().live().load().config).clone()
    };
    running.stop().unwrap();
    tab.until(&format!(
        "{HEADLINE}.includes('The console does not answer since')"
    ));
    tab.until("document.getElementById('headline').className === 'headline unknown'");
    let again = console::start(config).unwrap();
    tab.until(&format!("{HEADLINE}.includes('All 2 functions serve.')"));
    again.stop().unwrap();
}

/// A status with markup in every text.
fn hostile() -> Value {
    let text = "<img src=x onerror=\"window.ran=1\"><script>window.ran=1</script>\u{202e}</td></table>";
    let alarm = json!({"number": 1, "name": text, "severity": text, "instance": text, "detail": text, "text": text, "advice": text, "raised": text});
    let dependency = json!({"name": text, "state": "failing", "since": text, "detail": text, "lastSuccess": text, "lastError": text, "lastErrorAt": text});
    json!({
        "state": text, "version": text, "upSince": text, "registered": dependency, "dependencies": [dependency],
        "configuration": {"file": text, "inEffect": false, "detail": text}, "alarms": [alarm],
        "wrong": [{"what": text, "detail": text, "remedy": text}],
    })
}

#[test]
fn markup_in_every_field_stays_text_and_no_request_leaves() {
    let Some(mut tab) = Tab::open() else { return };
    let text = "<img src=x onerror=\"window.ran=1\"><script>window.ran=1</script>";
    let (nrf, dsr) = (Stand::start("nrf"), Stand::start("dsr"));
    nrf.says(hostile());
    let entry = json!({"sequence": 1, "time": "9999-01-01T00:00:00.000Z", "kind": "operator", "about": text, "detail": text, "by": text});
    nrf.set("/journal", &json!([entry]));
    nrf.set(
        "/nrf/instances",
        &json!([{"nfInstanceId": text, "fqdn": "amf.example"}]),
    );
    dsr.set(
        "/dsr/peers",
        &json!([{"host": text, "state": text, "lastError": text, "downSince": text}]),
    );
    let console = console(&[&nrf, &dsr]);
    tab.go(&url(&console));
    for id in ["headline", "functions", "alarms", "peers", "changes"] {
        tab.until(&format!(
            "document.getElementById('{id}').innerText.includes('<img src=x')"
        ));
    }
    tab.value(
        "document.getElementById('find').value = 'amf.example'; document.querySelector('button').click()",
    );
    tab.until("document.getElementById('found').innerText.includes('<img src=x')");
    has_no_markup(&mut tab);
    let origin = url(&console);
    for event in tab
        .events
        .iter()
        .filter(|event| event["method"] == "Network.requestWillBeSent")
    {
        let asked = event["params"]["request"]["url"].as_str().unwrap();
        assert!(
            asked.starts_with(&origin) || asked.starts_with("data:"),
            "{asked}"
        );
    }
    let complaints = tab.events.iter().filter(|event| {
        event["method"] == "Runtime.exceptionThrown" || event["params"]["entry"]["source"] == "security"
    });
    assert_eq!(complaints.map(Value::to_string).collect::<Vec<_>>(), [""; 0]);
    console.stop().unwrap();
}

#[test]
fn the_policy_of_the_page_keeps_foreign_script_out() {
    let Some(mut tab) = Tab::open() else { return };
    let nrf = Stand::start("nrf");
    let console = console(&[&nrf]);
    tab.go(&url(&console));
    tab.until(&format!("{HEADLINE}.includes('The function serves.')"));
    // What markup would do, were it to become elements.
    tab.value("document.body.insertAdjacentHTML('beforeend', '<img id=bad src=\"data:,x\" onerror=\"window.ran=1\">')");
    tab.value("const script = document.createElement('script'); script.textContent = 'window.ran=1'; document.body.append(script)");
    tab.value("new Promise((done) => { const one = document.createElement('img'); one.onerror = one.onload = done; one.src = 'data:,x'; })");
    assert_eq!(tab.value("window.ran === undefined"), true);
    let fetched = tab.value("fetch('http://127.0.0.1:9/').then(() => 'went out', () => 'refused')");
    assert_eq!(fetched, "refused");
    console.stop().unwrap();
}

#[test]
fn it_is_used_by_keyboard_and_fits_a_narrow_screen_in_both_schemes() {
    let Some(mut tab) = Tab::open() else { return };
    let (nrf, scp, bsf) = (Stand::start("nrf"), Stand::start("scp"), Stand::start("bsf"));
    let needs = json!([{"name": "NRF set 0", "state": "failing", "since": "2026-11-28T17:56:57Z", "lastError": "connection refused to http://nrf.5gc.mnc001.mcc001.3gppnetwork.org:8080"}]);
    let wrong = json!([{"what": "NRF set 0", "detail": "connection refused", "remedy": "Check that it runs and that this machine reaches it."}]);
    scp.says(json!({"state": "serves, needs attention", "wrong": wrong, "dependencies": needs}));
    bsf.says(json!({"dependencies": [{"name": "registration", "state": "good", "since": "2026-11-28T17:00:00Z", "detail": "registered at http://127.0.0.1:8010"}],
        "registered": {"name": "registration", "state": "good", "since": "2026-11-28T17:00:00Z", "detail": "registered at http://127.0.0.1:8010"}}));
    nrf.set(
        "/nrf/instances",
        &json!([{"fqdn": "amf.example", "nfInstanceId": "x".repeat(300)}]),
    );
    let console = console(&[&nrf, &scp, &bsf]);
    for name in ["nrf", "bsf"] {
        until_state(&console, name, "serves");
    }
    tab.go(&url(&console));
    tab.until(&format!(
        "{HEADLINE}.includes('All 3 functions serve; 1 thing needs you: SCP cannot reach NRF set 0')"
    ));
    tab.until("document.querySelectorAll('svg .edge').length === 2");
    tab.value("document.body.focus()");
    tab.press("/");
    tab.until("document.activeElement.id === 'find'");
    for letter in "amf.example".chars() {
        tab.press(&letter.to_string());
    }
    tab.press("Enter");
    tab.until("document.getElementById('found').innerText.includes('xxxxx')");
    assert_eq!(tab.value("document.getElementById('found').innerText.includes('signalbox nrf instances --filter amf.example')"), true);
    fits(&mut tab, "console");
    console.stop().unwrap();
}

/// The page is drawn each second; what a person has focused or selected stays so.
#[test]
fn focus_and_selection_outlast_an_update() {
    let Some(mut tab) = Tab::open() else { return };
    let (nrf, scp) = (Stand::start("nrf"), Stand::start("scp"));
    let console = console(&[&nrf, &scp]);
    tab.go(&url(&console));
    tab.until(&format!("{HEADLINE}.includes('All 2 functions serve.')"));
    tab.value(
        "window.link = document.querySelector('#functions tbody a'); link.focus(); \
         getSelection().selectAllChildren(document.querySelector('#functions caption'))",
    );
    scp.says(json!({"state": "serves, needs attention", "version": "new", "wrong": [{"what": "disk", "detail": "full", "remedy": "r"}]}));
    tab.until("document.getElementById('functions').innerText.includes('new')");
    tab.until(&format!("{HEADLINE}.includes('disk')"));
    assert_eq!(tab.value("document.activeElement === window.link"), true);
    let selected = tab.value("getSelection().toString()");
    assert!(selected.as_str().unwrap().contains("times in UTC"), "{selected}");
    // Fewer rows than before.
    scp.says(json!({"state": "serves"}));
    tab.until("document.getElementById('needs').childNodes.length === 0");
    console.stop().unwrap();
}

#[test]
fn a_page_without_a_stream_says_why() {
    let Some(mut tab) = Tab::open() else { return };
    let nrf = Stand::start("nrf");
    let console = console(&[&nrf]);
    let streams = streams(&console);
    tab.go(&url(&console));
    tab.until(&format!("{HEADLINE}.includes('32 pages are open already')"));
    drop(streams);
    tab.until(&format!("{HEADLINE}.includes('The function serves.')"));
    console.stop().unwrap();
}

/// No script of a stranger ran, and none of its markup became an element.
pub fn has_no_markup(tab: &mut Tab) {
    let clean =
        "window.ran === undefined && document.querySelectorAll('img, iframe, main script').length === 0";
    assert_eq!(tab.value(clean), true);
}

/// The page does not exceed the width of the window, and colours of text and ground differ enough (WCAG 2 contrast of 4.5), on wide and
/// narrow screens in both schemes.
pub fn fits(tab: &mut Tab, name: &str) {
    for width in [1440, 1024, 390] {
        for scheme in ["light", "dark"] {
            tab.look(width, scheme);
            tab.until(&format!(
                "window.innerWidth === {width} && matchMedia('(prefers-color-scheme: {scheme})').matches"
            ));
            let sideways = tab.value("document.documentElement.scrollWidth - window.innerWidth");
            assert!(sideways.as_i64().unwrap() <= 0, "{width}: {sideways} px too wide");
            assert_eq!(tab.value(CONTRAST), json!([]), "{width} {scheme}");
            tab.screenshot(&format!("{name}-{width}-{scheme}"));
        }
    }
}

/// The elements whose text has too little contrast.
const CONTRAST: &str = r"
(() => {
  const parts = (text) => text.match(/[\d.]+/g).map(Number);
  const bright = (text) => {
    const [r, g, b] = parts(text).slice(0, 3).map((one) => one / 255)
      .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor;
      if (parts(color)[3] !== 0) return color;
    }
    return 'rgb(255,255,255)';
  };
  const wrong = [];
  for (const one of document.querySelectorAll('body *:not(svg *):not(script):not(.skip)')) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own) continue;
    const [a, b] = [bright(getComputedStyle(one).color), bright(ground(one))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) wrong.push(one.textContent.trim());
  }
  return wrong;
})()";

/// What the tree of the browser for screen readers says of each page, and a window of half the width, as at a zoom of 200 % (WCAG 2 §1.4.4).
#[test]
fn each_page_has_names_for_what_is_used_and_fits_at_twice_the_size() {
    let Some(mut tab) = Tab::open() else { return };
    let (pcf, scp) = (Stand::start("pcf"), Stand::start("scp"));
    let console = console(&[&pcf, &scp]);
    until_state(&console, "pcf", "serves");
    tab.look(640, "light");
    for page in [
        "",
        "sessions",
        "follow",
        "why",
        "policy",
        "configuration",
        "account",
    ] {
        tab.go(&format!("{}{page}", url(&console)));
        let script = if page.is_empty() { "app" } else { page };
        tab.until(&format!(
            "document.readyState === 'complete' && document.querySelector('script').src.endsWith('/{script}.js')"
        ));
        let sideways = tab.value("document.documentElement.scrollWidth - window.innerWidth");
        assert!(sideways.as_i64().unwrap() <= 0, "{page}: {sideways} px too wide");
        let tree = tab.ask("Accessibility.getFullAXTree", json!({}));
        let nodes = tree["nodes"].as_array().unwrap();
        let is_focusable = |node: &&Value| {
            let mut properties = node["properties"].as_array().into_iter().flatten();
            properties.any(|one| one["name"] == "focusable" && one["value"]["value"] == true)
        };
        let nameless: Vec<&Value> = nodes
            .iter()
            .filter(is_focusable)
            .filter(|node| node["name"]["value"].as_str().is_none_or(str::is_empty))
            .map(|node| &node["role"]["value"])
            .collect();
        assert_eq!(nameless, [""; 0], "{page}");
        let count = |role: &str| nodes.iter().filter(|node| node["role"]["value"] == role).count();
        assert_eq!((count("main"), count("navigation")), (1, 1), "{page}");
        let twice = tab.value(
            "[...document.querySelectorAll('[id]')].map((one) => one.id).filter((id, at, all) => all.indexOf(id) !== at)",
        );
        assert_eq!(twice, json!([]), "{page}");
        // The first key leads past the navigation.
        tab.press("Tab");
        assert_eq!(tab.value("document.activeElement.className"), "skip", "{page}");
    }
    console.stop().unwrap();
}
