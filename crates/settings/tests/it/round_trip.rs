//! Written and read back is the same; any text is answered; the reference names every key.

use proptest::prelude::*;
use settings::{HostPort, Listen, Percent, Period, Secret, to_yaml};

use super::{Config, Format, Plmn, Ports, Store, read};

#[test]
fn the_default_reads_back_equal() {
    let text = to_yaml(&Config::default());
    assert_eq!(
        read(&text).unwrap_or_else(|report| panic!("{report}\n{text}")),
        Config::default()
    );
}

fn store() -> impl Strategy<Value = Store> {
    prop_oneof![
        Just(Store::Memory),
        ".*".prop_map(|path| Store::Embedded { path }),
        ("[a-z][a-z0-9.]{0,9}", 1_u16..).prop_map(|(host, port)| Store::Mariadb {
            address: HostPort { host, port },
            password: Some(Secret::Env("X".to_owned())),
        }),
    ]
}

prop_compose! {
    fn config()(
        port: u16,
        seconds in 1_u64..1_000_000,
        body: u64,
        discard in 0_u8..=100,
        streams in 1_u32..=1000,
        name in proptest::option::of(".*"),
        json: bool,
        codes in proptest::collection::vec(("[0-9]{3}", "[0-9]{2,3}"), 0..3),
        store in store(),
        validity in proptest::collection::btree_map(".{0,12}", 0_u64..1_000_000, 0..4),
        enabled: bool,
        weight in -1e9..1e9,
        first in 0_u16..1000,
    ) -> Config {
        Config {
            listen: Listen::local(port),
            timeout: Period::from_secs(seconds),
            max_body: settings::ByteSize(body),
            discard: Percent::new(discard.into()),
            streams,
            name,
            format: if json { Format::Json } else { Format::Human },
            plmns: codes.into_iter().map(|(mcc, mnc)| Plmn { mcc, mnc }).collect(),
            store,
            validity: validity.into_iter().map(|(key, value)| (key, Period::from_millis(value))).collect(),
            key: Some(Secret::File("/run/secrets/a b".into())),
            enabled,
            weight,
            ports: Ports { first, last: first + 5 },
        }
    }
}

proptest! {
    #[test]
    fn every_configuration_reads_back_equal(config in config()) {
        let text = to_yaml(&config);
        match read(&text) {
            Ok(back) => prop_assert_eq!(back, config),
            Err(report) => return Err(TestCaseError::fail(format!("{report}\n{text}"))),
        }
    }

    #[test]
    fn any_text_is_answered(text in ".*") {
        if let Err(report) = read(&text) {
            let _ = report.to_string();
        }
    }

    #[test]
    fn any_yaml_like_text_is_answered(text in "([a-z]{1,8}|listen|ports|store|plmns|[-:\\[\\]{},&*!|>'\"#?%@ \n~0-9.]){0,60}") {
        if let Err(report) = read(&text) {
            let _ = report.to_string();
        }
    }

    #[test]
    fn a_configuration_with_one_byte_changed_is_answered(config in config(), at: usize, byte in 32_u8..127) {
        let mut text = to_yaml(&config).into_bytes();
        let at = at % text.len();
        text[at] = byte;
        if let Ok(text) = String::from_utf8(text) && let Err(report) = read(&text) {
            let _ = report.to_string();
        }
    }
}

#[test]
fn the_reference_names_every_key_with_default_range_and_meaning() {
    let page = settings::reference::<Config>("Test");
    for part in [
        "# Test",
        "| `listen` | address:port, or a list of them | `127.0.0.1:8010` |  |  | Addresses on which requests are taken. |",
        "| `timeout` | period | `5s` |",
        "| `streams` | whole number | `100` | 1 … 1000 |",
        "| `format` | `human`, `json` | `human` |  |  | What is written to the log.<br>`human`: For people.",
        "## `plmns[]`",
        "| `plmns[].mcc` | text | (required) |",
        "| `validity` | mapping of names to period |",
        "## `store`",
        "| `store.path` | text |",
        "| `ports.first` | whole number | `10` | 0 … 65535 |  | The first. |",
        "| `key` | `{file: …}` or `{env: …}` | — |",
    ] {
        assert!(page.contains(part), "{part}\nis not in\n{page}");
    }
}

#[test]
fn passwords_in_addresses_are_blotted_out() {
    let value = serde_json::json!({"a": ["mysql://u:geheim@h/db", "http://u@h", "http://h:80/@x:y"], "b": 1});
    let shown = settings::redacted(value);
    assert_eq!(
        shown,
        serde_json::json!({"a": ["mysql://u:***@h/db", "http://u@h", "http://h:80/@x:y"], "b": 1})
    );
}
