//! The page of bindings and sessions of a subscriber, in a real browser.

use serde_json::json;

use crate::browser::{fits, has_no_markup};
use crate::chromium::Tab;
use crate::support::{Stand, console, until_state};

const SUPI: &str = "imsi-001010000000001";
const MARKUP: &str = "<img src=x onerror=\"window.ran=1\">";

#[test]
fn records_of_a_subscriber_are_rows_of_names_and_values() {
    let Some(mut tab) = Tab::open() else { return };
    let (pcf, bsf) = (Stand::start("pcf"), Stand::start("bsf"));
    pcf.set(
        &format!("/pcf/find/{SUPI}"),
        &json!([{"id": "1", "supi": SUPI, "sliceInfo": {"sst": 1}, "dnn": MARKUP}]),
    );
    bsf.set(&format!("/bsf/find/supi%3D{SUPI}"), &json!([]));
    let console = console(&[&pcf, &bsf]);
    for name in ["pcf", "bsf"] {
        until_state(&console, name, "serves");
    }
    let at = console.addresses()[0];
    tab.go(&format!("http://{at}/sessions#{SUPI}"));
    tab.until("document.getElementById('said').innerText.includes('is read as a SUPI')");
    tab.until("document.getElementById('answers').innerText.includes('sliceInfo.sst')");
    tab.until("document.getElementById('answers').innerText.includes('<img src=x')");
    assert_eq!(
        tab.value("document.querySelector('#follow a').getAttribute('href')"),
        format!("/follow#{SUPI}")
    );
    has_no_markup(&mut tab);
    fits(&mut tab, "sessions");
    console.stop().unwrap();
}
