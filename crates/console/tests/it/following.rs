//! The page of a followed subscriber, at the console's interface and in a real browser.

use serde_json::{Value, json};

use crate::browser::has_no_markup;
use crate::chromium::Tab;
use crate::support::{Stand, console, get, own_headers, request, until_state};

const SUPI: &str = "imsi-001010000000001";
const MARKUP: &str = "<img src=x onerror=\"window.ran=1\"><script>window.ran=1</script>";

/// A request of the SMF at a PCF, and its answer.
fn messages(function: &str) -> Value {
    let message = |kind: &str, title: &str, number: u64| {
        let is_request = kind == "request";
        let (client, server) = ("127.0.0.1:1000", "127.0.0.1:2000");
        json!({
            "number": number, "time": format!("2026-11-28T10:00:00.00000{number}Z"), "microseconds": number,
            "function": function, "identity": SUPI, "foundBy": SUPI, "interface": "sbi", "kind": kind, "exchange": 1,
            "direction": if is_request { "in" } else { "out" }, "peer": MARKUP,
            "from": if is_request { client } else { server }, "to": if is_request { server } else { client },
            "stream": 1, "title": title, "isFailure": !is_request,
            "headers": [["content-type", MARKUP]], "text": json!({"supi": SUPI, "dnn": MARKUP}).to_string(),
        })
    };
    json!({
        "version": 1, "next": 2, "more": false, "notKept": 0, "of a later release": true,
        "messages": [message("request", &format!("POST /sm-policies{MARKUP}"), 1), message("answer", "403", 2)],
    })
}

fn stand(name: &str) -> Stand {
    let stand = Stand::start(name);
    stand.set(
        "/follow",
        &json!({"version": 1, "followed": [{"identity": SUPI}]}),
    );
    stand.set(&format!("/follow/{SUPI}"), &json!({}));
    stand.set("/follow/messages", &messages(name));
    stand
}

#[test]
fn following_begins_at_all_functions_and_is_shown_in_one_order() {
    let (pcf, old) = (stand("pcf"), Stand::start("bsf"));
    let console = console(&[&pcf, &old]);
    let at = console.addresses()[0];
    until_state(&console, "pcf", "serves");
    let path = format!("/api/v1/follow?identity={SUPI}&for=10m");
    let own = own_headers(&console);
    let (status, _, body) = request(
        at,
        &format!("PUT {path} HTTP/1.1\r\nHost: {at}\r\n{own}\r\nContent-Length: 0"),
    );
    assert_eq!(status, 200, "{body}");
    let changed: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(changed["functions"][0], json!({"function": "pcf", "done": true}));
    assert_eq!(changed["functions"][1]["done"], false, "{changed}");
    let put = format!("PUT /follow/{SUPI}?for=10m HTTP/1.1");
    assert!(pcf.asked().contains(&put), "{:?}", pcf.asked());
    let (status, body) = get(&console, &format!("/api/v1/follow?identity={SUPI}"));
    assert_eq!(status, 200, "{body}");
    let shown: Value = serde_json::from_str(&body).unwrap();
    let titles = shown["arrows"].as_array().unwrap().iter();
    let kinds: Vec<&Value> = titles.map(|arrow| &arrow["message"]["kind"]).collect();
    assert_eq!(kinds, ["request", "answer"], "{shown}");
    assert!(
        shown["functions"][1]["failure"].as_str().unwrap().contains("404"),
        "{shown}"
    );
    // A page of another site changes nothing, and nothing else can be changed.
    for (method, path, header, expected) in [
        ("PUT", path.as_str(), "Origin: http://evil.example", 403),
        ("DELETE", path.as_str(), "Sec-Fetch-Site: cross-site", 403),
        ("PUT", path.as_str(), "X: y", 403),
        ("PUT", path.as_str(), &format!("Origin: http://{at}"), 403),
        ("PUT", "/api/v1/follow", &own, 400),
        ("POST", path.as_str(), &own, 405),
        ("PUT", "/api/v1/find", "X: y", 405),
    ] {
        let before = pcf
            .asked()
            .iter()
            .filter(|line| !line.starts_with("GET "))
            .count();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {at}\r\n{header}\r\nContent-Length: 0");
        assert_eq!(request(at, &head).0, expected, "{head}");
        let after = pcf
            .asked()
            .iter()
            .filter(|line| !line.starts_with("GET "))
            .count();
        assert_eq!(before, after, "{head}");
    }
    // A refused method is answered with those that would do (RFC 9110 §15.5.6).
    let (_, head, _) = request(
        at,
        &format!("POST {path} HTTP/1.1\r\nHost: {at}\r\n{own}\r\nContent-Length: 0"),
    );
    assert!(head.contains("allow: get,head,put,delete"), "{head}");
    console.stop().unwrap();
}

#[test]
fn a_ladder_is_drawn_and_a_message_opened_in_a_browser() {
    let Some(mut tab) = Tab::open() else { return };
    let pcf = stand("pcf");
    let console = console(&[&pcf]);
    until_state(&console, "pcf", "serves");
    tab.go(&format!("http://{}/follow#{SUPI}", console.addresses()[0]));
    tab.until("document.querySelectorAll('.ladder path').length === 2");
    // An address that was sent only shows.
    assert!(
        pcf.asked().iter().all(|line| line.starts_with("GET ")),
        "{:?}",
        pcf.asked()
    );
    assert_eq!(
        tab.value("document.querySelectorAll('.ladder .failed').length"),
        1
    );
    tab.value("document.querySelector('.ladder button').click()");
    tab.until("document.getElementById('message').innerText.includes('\"dnn\": \"<img src=x')");
    tab.until("document.activeElement.id === 'message'");
    tab.value("document.querySelector('#follow-form button').click()");
    tab.until("document.getElementById('said').innerText.includes('1 of 1 functions follow imsi-')");
    let put = format!("PUT /follow/{SUPI}?for=60s HTTP/1.1");
    assert!(pcf.asked().contains(&put), "{:?}", pcf.asked());
    tab.value("document.getElementById('stop').click()");
    tab.until("document.getElementById('said').innerText.includes('no longer follow')");
    has_no_markup(&mut tab);
    for width in [1440, 390] {
        tab.look(width, "dark");
        tab.until(&format!("window.innerWidth === {width}"));
        let sideways = tab.value("document.documentElement.scrollWidth - window.innerWidth");
        assert!(sideways.as_i64().unwrap() <= 0, "{width}: {sideways} px too wide");
        tab.screenshot(&format!("follow-{width}"));
    }
    let complaints = tab.events.iter().filter(|event| {
        event["method"] == "Runtime.exceptionThrown" || event["params"]["entry"]["source"] == "security"
    });
    assert_eq!(complaints.map(Value::to_string).collect::<Vec<_>>(), [""; 0]);
    console.stop().unwrap();
}

/// The messages of a long call, in pages of 2,500.
fn long(stand: &Stand, count: u64) {
    const PAGE: u64 = 2_500;
    let first = &messages("pcf")["messages"];
    let message = |number: u64| {
        let mut message = first[usize::from(number.is_multiple_of(2))].clone();
        let exchange = number.div_ceil(2);
        message["number"] = number.into();
        message["microseconds"] = number.into();
        message["exchange"] = exchange.into();
        message["stream"] = exchange.into();
        message["title"] = format!("message {number}").into();
        message
    };
    for after in (0..count).step_by(PAGE as usize) {
        let end = (after + PAGE).min(count);
        let page = json!({
            "version": 1, "next": end, "more": end < count, "messages": (after + 1..=end).map(message).collect::<Value>(),
        });
        stand.set(&format!("/follow/messages?after={after}&identity={SUPI}"), &page);
    }
    let opened = json!({"version": 1, "next": 777, "more": true, "messages": [message(777)]});
    stand.set(&format!("/follow/messages?after=776&identity={SUPI}"), &opened);
    let entry = json!({"identity": SUPI, "since": "2026-11-28T10:00:00Z", "messages": count});
    stand.set("/follow", &json!({"version": 1, "start": 1, "followed": [entry]}));
}

/// The page asks every other second; messages are read when there are others.
#[test]
fn messages_are_read_where_they_have_changed_and_their_content_where_it_is_wanted() {
    let pcf = stand("pcf");
    long(&pcf, 6_000);
    let console = console(&[&pcf]);
    until_state(&console, "pcf", "serves");
    let shown = |more: &str| -> Value {
        let (status, body) = get(&console, &format!("/api/v1/follow?identity={SUPI}{more}"));
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    };
    let read = || {
        pcf.asked()
            .iter()
            .filter(|line| line.contains("/follow/messages"))
            .count()
    };
    let outline = shown("&outline=true");
    assert_eq!(outline["arrows"].as_array().unwrap().len(), 6_000);
    assert!(
        outline["arrows"][0]["message"]["headers"].is_null(),
        "{}",
        outline["arrows"][0]
    );
    assert!(outline["arrows"][0]["message"]["text"].is_null());
    let known = format!("&outline=true&known={}", outline["state"].as_str().unwrap());
    let before = read();
    assert_eq!(shown(&known)["unchanged"], true);
    assert_eq!(read(), before);
    long(&pcf, 6_001);
    assert_eq!(shown(&known)["arrows"].as_array().unwrap().len(), 6_001);
    // With all their content there are fewer.
    let whole = shown("");
    assert_eq!(whole["arrows"].as_array().unwrap().len(), 2_000);
    assert!(
        whole["functions"][0]["notShown"].as_u64().unwrap() > 0,
        "{}",
        whole["functions"]
    );
    assert_eq!(whole["arrows"][0]["message"]["headers"][0][0], "content-type");
    let opened = |number: u32| {
        get(
            &console,
            &format!("/api/v1/follow/message?identity={SUPI}&function=pcf&number={number}"),
        )
    };
    let (status, body) = opened(2_501);
    assert_eq!(status, 200, "{body}");
    let message: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(message["message"]["title"], "message 2501");
    assert!(message["message"]["text"].as_str().unwrap().contains("dnn"));
    assert_eq!(opened(0).0, 404);
    console.stop().unwrap();
}

/// Prints how long the browser needs for it; what it needs does not depend on the number of messages, which the elements show.
#[test]
fn ten_thousand_messages_are_a_screen_of_rows() {
    let Some(mut tab) = Tab::open() else { return };
    let pcf = stand("pcf");
    long(&pcf, 10_000);
    let console = console(&[&pcf]);
    until_state(&console, "pcf", "serves");
    tab.go(&format!("http://{}/follow#{SUPI}", console.addresses()[0]));
    tab.until("document.querySelector('.ladder button').innerText === 'message 1'");
    let usable = tab.value("performance.now()");
    let table = "document.querySelector('.ladder').getAttribute('aria-rowcount')";
    assert_eq!(tab.value(table), "10002");
    let few = "document.querySelectorAll('.ladder tbody tr').length < 120";
    assert_eq!(tab.value(few), true);
    // Down to the end: a page a frame.
    let frames = tab.value(
        "new Promise((done) => { const place = document.getElementById('ladder'); const begun = performance.now(); let frames = 0; \
         const step = () => { frames += 1; place.scrollTop += place.clientHeight; \
         if (place.scrollTop + place.clientHeight < place.scrollHeight - 1) requestAnimationFrame(step); \
         else done(Math.round(1000 * frames / (performance.now() - begun))); }; requestAnimationFrame(step); })",
    );
    eprintln!("10,000 messages: usable after {usable} ms of the page, {frames} frames/s while scrolling");
    tab.until(
        "document.querySelector('.ladder tr:nth-last-child(2) button').innerText === '✗ message 10000'",
    );
    assert_eq!(tab.value(few), true);
    // Each row is as high as the computation has it, else the end would not be there.
    let heights = tab.value("[...new Set([...document.querySelectorAll('.ladder tbody tr:not(.space)')].map((row) => row.offsetHeight))]");
    assert_eq!(heights, json!([26]));
    // By keyboard: the button of the first row is reached, and where its row leaves, the focus stays in the ladder.
    tab.value("document.getElementById('ladder').scrollTop = 0");
    tab.until("document.querySelector('.ladder button').innerText === 'message 1'");
    tab.value("document.getElementById('ladder').focus()");
    tab.press("Tab");
    tab.until("document.activeElement.innerText === 'message 1'");
    for _ in 0..60 {
        tab.press("Tab");
    }
    tab.until("document.activeElement.innerText === 'message 61'");
    tab.value("document.getElementById('ladder').scrollTop = 100000");
    tab.until("document.activeElement.id === 'ladder'");
    tab.value("const filter = document.getElementById('filter'); filter.value = 'MESSAGE 777'; filter.dispatchEvent(new Event('input'))");
    tab.until("document.querySelectorAll('.ladder button').length === 11");
    tab.value("document.querySelector('.ladder button').click()");
    tab.until("document.getElementById('message').innerText.includes('message 777')");
    has_no_markup(&mut tab);
    console.stop().unwrap();
}
