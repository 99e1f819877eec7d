//! Keys that were renamed: the old names are still read, and messages name what the file has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

#[derive(Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct Config {
    /// Files.
    #[serde(alias = "keys")]
    #[schemars(extend("x-aliases" = ["keys"]))]
    tls: Vec<Files>,
}

#[derive(Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Files {
    /// Own certificate.
    #[serde(alias = "certificates")]
    #[schemars(extend("x-aliases" = ["certificates", "chain"]))]
    certificate: String,
    /// Port.
    #[serde(default)]
    port: u16,
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        for (index, files) in self.tls.iter().enumerate() {
            if files.certificate.is_empty() {
                faults
                    .at(format!("tls[{index}].certificate"))
                    .say("is empty", "a file");
            }
        }
    }
}

fn read(text: &str) -> Result<Config, String> {
    settings::from_str(text, "config.yaml").map_err(|report| report.to_string())
}

#[test]
fn old_names_are_read_as_the_present_ones() {
    let present = read("tls:\n  - certificate: a.pem\n  - certificate: b.pem\n").unwrap();
    assert_eq!(
        read("keys:\n  - certificates: a.pem\n  - chain: b.pem\n").unwrap(),
        present
    );
    assert!(settings::to_yaml(&present).contains("certificate: a.pem"));
}

#[test]
fn a_fault_is_shown_where_the_old_name_stands() {
    let report = read("keys:\n  - certificates: a\n  - certificates: \"\"\n").unwrap_err();
    assert!(report.contains("config.yaml:3:19"), "{report}");
    assert!(report.contains("keys[1].certificates"), "{report}");
    let report = read("keys:\n  - certificates: a\n    port: x\n").unwrap_err();
    assert!(report.contains("keys[0].port"), "{report}");
}

#[test]
fn both_names_at_once_are_a_mistake() {
    for text in [
        "tls:\n  - certificate: a\n    certificates: b\n",
        "tls:\n  - certificates: a\n    certificate: b\n",
        "tls:\n  - certificates: a\n    chain: b\n",
    ] {
        let report = read(text).unwrap_err();
        assert!(report.contains("config.yaml:3:5"), "{report}");
        assert!(report.contains("`certificate` only"), "{report}");
    }
}

#[test]
fn the_reference_names_the_old_key() {
    let page = settings::reference::<Config>("x");
    assert!(page.contains("still read: `certificates`"), "{page}");
}
