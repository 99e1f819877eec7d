//! How long requests take, by interface and by whom the PCF waits for.

use std::cell::Cell;
use std::rc::Rc;

use serde_json::json;

use crate::diameter::{AAR, STR, ask, peer};
use crate::owed::udr;
use crate::support::{ask_sources, config, local, start, until};

#[test]
fn requests_answers_of_others_and_evaluations_have_histograms() {
    local(async {
        let udr = udr(Rc::new(Cell::new("gold")));
        let pcf = start(|config| ask_sources(config, Some(&udr), None));
        pcf.session(&json!({"dnn": "ims"})).await;
        let cscf = peer("cscf.example.org", &pcf).await;
        for request in [AAR, STR] {
            let answer = ask(&cscf, "cscf.example.org", "cscf;1;1", request).await;
            assert!(answer.contains("DIAMETER_SUCCESS"), "{answer}");
        }
        let page = pcf.running().handle().registry().render();
        let count = |name: &str, label: &str| {
            let series = format!("signalbox_pcf_{name}_seconds_count{{{label}}} ");
            let line = page.lines().find_map(|line| line.strip_prefix(&series));
            line.map(|count| count.parse::<u64>().unwrap())
        };
        assert_eq!(count("diameter_request", r#"command="Rx AAR""#), Some(1));
        assert_eq!(count("diameter_request", r#"command="Rx STR""#), Some(1));
        assert_eq!(count("diameter_request", r#"command="Gx CCR""#), Some(0));
        assert!(count("peer_request", r#"request="nudr-dr""#) >= Some(1), "{page}");
        assert_eq!(count("peer_request", r#"request="Rx RAR""#), Some(0));
        assert!(count("evaluation", r#"service="sm""#) >= Some(1), "{page}");
    });
}

#[test]
fn the_records_of_each_table_are_counted() {
    local(async {
        let mut pcf = start(|_| {});
        pcf.session(&json!({})).await;
        pcf.stop();
        pcf.running = Some(pcf::start(config(pcf.directory.path())).unwrap());
        let has = |line: &str| {
            let page = pcf.running().handle().registry().render();
            page.lines().any(|one| one.starts_with(line))
        };
        until(|| has(r#"signalbox_pcf_records{table="pcf_association"} 1"#)).await;
        assert!(has(r#"signalbox_pcf_records{table="pcf_ledger"} 0"#));
    });
}
