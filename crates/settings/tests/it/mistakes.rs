//! What is said about each kind of mistake.

use super::{Format, Store, read, refused};
use settings::{Listen, Period};

/// The report on `text` has these parts, in this order.
fn says(text: &str, parts: &[&str]) {
    let report = refused(text);
    let mut rest = report.as_str();
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => panic!("{part:?} is not (in this order) in:\n{report}"),
        }
    }
}

#[test]
fn an_unknown_key_is_shown_with_the_nearest_name() {
    let report = refused("listen: 127.0.0.1:1\nmax_body: 1KiB\n");
    assert_eq!(
        report,
        "\
error: unknown key `max_body`
 --> test.yaml:2:1
  |
2 | max_body: 1KiB
  | ^^^^^^^^ expected one of the keys of this file: `listen`, `timeout`, `maxBody`, `discard`, `streams`, \
`name`, `format`, `plmns`, `store`, `validity`, `key`, `enabled`, `weight`, `ports`; did you mean `maxBody`?

test.yaml: 1 mistake"
    );
}

#[test]
fn all_mistakes_are_told_at_once_in_the_order_of_the_file() {
    says(
        "\
listen: 127.0.0.1:80100
timeout: 30
streams: 0
format: jsno
enabled: yes
plmns:
  - mcc: 1
    mnc: 001
  - mcc: \"262\"
ports: {first: 9, last: 3}
",
        &[
            "listen",
            "test.yaml:1:9",
            "127.0.0.1:8010 or",
            "timeout",
            "test.yaml:2:10",
            "150ms",
            "streams",
            "test.yaml:3:10",
            "from 1 to 1000",
            "format",
            "`jsno`",
            "test.yaml:4:9",
            "did you mean `json`?",
            "enabled",
            "\"yes\"",
            "test.yaml:5:10",
            "true or false",
            "plmns[0].mcc",
            "test.yaml:7:10",
            "^[0-9]{3}$",
            "plmns[1]",
            "`mnc` is missing",
            "test.yaml:9:5",
            "ports.last",
            "3 is before first",
            "test.yaml:10:25",
            "at least 9",
            "8 mistakes",
        ],
    );
}

#[test]
fn a_number_where_a_text_belongs_is_the_text_that_was_written() {
    let config = read("plmns: [{mcc: 001, mnc: 01}]\nname: 1.0\n").unwrap();
    assert_eq!(
        (config.plmns[0].mcc.as_str(), config.plmns[0].mnc.as_str()),
        ("001", "01")
    );
    assert_eq!(config.name.as_deref(), Some("1.0"));
}

#[test]
fn empty_files_and_sections_are_defaults() {
    assert_eq!(read("").unwrap(), super::Config::default());
    assert_eq!(read("# nothing\n").unwrap(), super::Config::default());
    assert_eq!(read("---\n").unwrap(), super::Config::default());
    assert_eq!(read("ports:\n").unwrap(), super::Config::default());
    assert_eq!(read("\u{feff}streams: 7\n").unwrap().streams, 7);
}

#[test]
fn one_address_or_a_list() {
    let several = read("listen:\n  - 127.0.0.1:1\n  - '[::1]:2'\n").unwrap().listen;
    assert_eq!(several.0.len(), 2);
    assert_eq!(
        read("listen: 127.0.0.1:1\n").unwrap().listen,
        Listen(vec![several.0[0]])
    );
    says(
        "listen: [127.0.0.1:1, localhost:2]\n",
        &["listen[1]", "1:23", "an IP address and port"],
    );
    says(
        "listen: [127.0.0.1:1, 127.0.0.1:1]\n",
        &["listen[1]", "in the list already"],
    );
}

#[test]
fn variants_are_told_apart_by_their_tag() {
    assert_eq!(
        read("store: {engine: embedded, path: /x}\n").unwrap().store,
        Store::Embedded {
            path: "/x".to_owned()
        }
    );
    says(
        "store: {engine: embeded}\n",
        &["store.engine", "`embeded`", "did you mean `embedded`?"],
    );
    says("store: {engine: embedded}\n", &["store", "`path` is missing"]);
    says(
        "store: {engine: embedded, pth: x, path: x}\n",
        &["`pth`", "did you mean `path`?"],
    );
    says(
        "store: {path: x}\n",
        &["`engine` is missing", "`memory`, `embedded`, `mariadb`"],
    );
    says(
        "store: {engine: mariadb, address: nowhere}\n",
        &["store.address", "has no port", "db.example.net:3306"],
    );
}

#[test]
fn secrets_are_references() {
    assert!(read("key: {file: /run/secret}\n").unwrap().key.is_some());
    says("key: geheim\n", &["key", "`file`", "`env`"]);
    says(
        "key: {fiel: x}\n",
        &["unknown key `fiel`", "did you mean `file`?"],
    );
    says(
        "key: {file: x, env: y}\n",
        &["2 keys", "exactly one of", "`file`, `env`"],
    );
}

#[test]
fn defaults_that_do_not_fit_are_said_to_be_defaults() {
    says(
        "ports:\n  first: 30\n",
        &["ports.last", "20 is before first", "default", "test.yaml:1:1"],
    );
}

#[test]
fn what_is_not_yaml_is_said_to_be_so() {
    says("listen: [1, 2\nformat: json\n", &["not YAML", "test.yaml:"]);
    says("a: b: c\n", &["not YAML", "test.yaml:1:5"]);
    says("ports:\n\tfirst: 1\n", &["not YAML", "test.yaml:2:"]);
}

#[test]
fn keys_appear_once() {
    says(
        "format: json\ntimeout: 1s\nformat: human\n",
        &[
            "`format` appears twice",
            "test.yaml:3:1",
            "the first is on line 1",
        ],
    );
}

#[test]
fn other_documents_merge_keys_and_odd_keys_are_refused() {
    says(
        "format: json\n---\nformat: human\n",
        &["second document", "test.yaml:2"],
    );
    says("a: &a {first: 1}\nports: {<<: *a}\n", &["merge keys"]);
    says("? [a, b]\n: c\n", &["cannot be a key"]);
    let config = read("validity: {\"<<\": 1s, '<<a': 2s}\n").unwrap();
    assert_eq!(
        config.validity["<<"],
        Period::from_secs(1),
        "in quotes it is a key like any other"
    );
}

#[test]
fn anchors_work_in_moderation() {
    let config = read("validity: {a: &long 24h, b: *long}\n").unwrap();
    assert_eq!(config.validity["b"], Period::from_secs(86_400));
}

#[test]
fn values_of_every_kind_read_as_meant() {
    let config = read(
        "timeout: 1m 30s\nmaxBody: 4096\ndiscard: 12.5\nstreams: 0x10\nname: 'yes'\nformat: json\nweight: 1\n\
         enabled: false\n",
    )
    .unwrap();
    assert_eq!(config.timeout, Period::from_secs(90));
    assert_eq!(config.max_body.bytes(), 4096);
    assert_eq!(config.discard.percent(), 12.5);
    assert_eq!(config.streams, 16);
    assert_eq!(config.name.as_deref(), Some("yes"));
    assert_eq!(config.format, Format::Json);
    assert!(!config.enabled);
}

#[test]
fn numbers_keep_to_their_range() {
    says(
        "streams: 1001\n",
        &["streams", "the number 1001", "a whole number from 1 to 1000"],
    );
    says("streams: 1.5\n", &["streams", "a whole number"]);
    says("streams: -1\n", &["streams", "from 1"]);
    says("ports: {first: 65536}\n", &["ports.first", "from 0 to 65535"]);
    says("discard: 101%\n", &["discard", "from 0% to 100%"]);
    says("discard: 101\n", &["discard", "0% to 100%"]);
    says("timeout: 99999999999d\n", &["timeout", "too long"]);
}

#[test]
fn the_report_can_be_read_by_machines() {
    let report = read("streams: 0\nfoo: 1\n").unwrap_err();
    let places: Vec<_> = report
        .findings()
        .iter()
        .map(|finding| (finding.place.line, finding.place.column, finding.path.as_str()))
        .collect();
    assert_eq!(places, [(1, 10, "streams"), (2, 1, "")]);
    assert_eq!(report.name(), "test.yaml");
}

#[test]
fn a_file_that_is_not_there_is_a_report() {
    let report = settings::from_file::<super::Config>(std::path::Path::new("/nowhere/x.yaml")).unwrap_err();
    assert!(report.to_string().contains("/nowhere/x.yaml"), "{report}");
}

/// A mistake of form does not hide one of content beside it, nor one in another part.
#[test]
fn mistakes_of_form_and_of_content_are_told_together() {
    says(
        "listen: 127.0.0.1:1\nports: {first: 9, last: 3}\nlistne: x\ntimeout: 30\n",
        &[
            "ports",
            "test.yaml:2",
            "unknown key `listne`",
            "timeout",
            "3 mistakes",
        ],
    );
    // Neither does one that leaves a value out.
    says(
        "listen: 127.0.0.1:1\nplmns: [{mcc: 1}]\nports: {first: 9, last: 3}\n",
        &["plmns", "ports", "test.yaml:3"],
    );
}

#[test]
fn what_no_person_has_written_is_refused() {
    let strict = |text: &str| settings::from_str_and::<super::Config>(text, "test.yaml", |_, _| {});
    for text in [
        "",
        "\n",
        "# nothing but a comment\n\n",
        "---\n",
        "--- # x\n...\n",
        "~\n",
    ] {
        let report = strict(text).unwrap_err().to_string();
        assert!(report.contains("the file is empty"), "{text:?}: {report}");
    }
    strict("{}\n").unwrap();
    strict("listen: 127.0.0.1:1\n").unwrap();
    for (text, part) in [
        ("\0\0\0", "U+0000"),
        ("listen: 127.0.0.1:1\n\u{1}", "U+0001"),
        ("listen: 127.0.0.1:1 # \u{7f}\n", "U+007F"),
        ("- a\n", "this is a list"),
        ("text\n", "this is the text"),
    ] {
        says(text, &[part]);
    }
}

#[test]
fn a_report_has_no_passwords() {
    let report = refused("listen: http://u:geheim@h:1\nname: [\"http://u:geheim@h\"]\npassword: hunter2\n");
    assert!(
        !report.contains("geheim") && !report.contains("hunter2"),
        "{report}"
    );
    assert!(report.contains("http://u:******@h:1"), "{report}");
}

#[test]
fn texts_come_from_the_environment() {
    // Cargo sets these for each test.
    let text = "listen: 127.0.0.1:1\nname: ${CARGO_PKG_NAME}-a\nformat: json\n";
    let name = |text: &str| serde_json::to_value(read(text).unwrap()).unwrap()["name"].clone();
    assert_eq!(name(text), "settings-a");
    assert_eq!(
        name("listen: 127.0.0.1:1\nname: {env: CARGO_PKG_NAME}\n"),
        "settings"
    );
    assert_eq!(name("listen: 127.0.0.1:1\nname: $${CARGO}\n"), "${CARGO}");
    for text in ["name: ${NO_SUCH_VARIABLE}", "name: {env: NO_SUCH_VARIABLE}"] {
        says(
            &format!("listen: 127.0.0.1:1\n{text}\n"),
            &["name", "NO_SUCH_VARIABLE is not set", "test.yaml:2:7"],
        );
    }
}

#[test]
fn names_in_listen_are_resolved() {
    let strict = |text: &str| settings::from_str_and::<super::Config>(text, "test.yaml", |_, _| {});
    for text in ["listen: localhost:8010\n", "listen: [localhost:8010]\n"] {
        let found = strict(text).unwrap().listen.first().unwrap();
        assert!(found.ip().is_loopback() && found.port() == 8010, "{found}");
    }
    let report = strict("listen: no-such-host.invalid:8010\n")
        .unwrap_err()
        .to_string();
    assert!(
        report.contains("no-such-host.invalid") && report.contains("1:9"),
        "{report}"
    );
}

#[test]
fn what_the_machine_knows_is_judged_beside_other_mistakes() {
    let report = settings::from_str_and::<super::Config>(
        "listne: x\nlisten: 127.0.0.1:1\nstreams: 0\n",
        "test.yaml",
        |config, faults| {
            assert_eq!(config.streams, 100, "the default");
            faults.at("listen").say("is foreign", "an own one");
            faults
                .at("streams")
                .say("is not the fault of the file", "nothing");
            faults.at("maxBody").say("is not in the file", "nothing");
        },
    );
    let report = report.unwrap_err().to_string();
    assert!(
        report.contains("is foreign") && report.contains("3 mistakes"),
        "{report}"
    );
}
