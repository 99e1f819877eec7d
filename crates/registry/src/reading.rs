//! How the text of a profile is read: what counts as absent is taken out of it, what is spelled in an unusual way gets the
//! spelling that every consumer reads. Everything else stays byte for byte as its owner sent it.

use std::borrow::Cow;

use model::nf_profile::shape::PROFILE;
use model::pattern;
use model::shape::rules;
use model::tolerance::{self, Dropped, Why};
use sbi_proto::json::patch;
use serde_json::{Value, json};

use crate::fault::ProfileFault;

/// Settings for reading profiles.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Limits of the regular expressions.
    pub limits: pattern::Limits,
    /// Whether nothing counts as absent.
    pub strict: bool,
    /// Whether names of hosts are taken where a fully qualified domain name is expected, and names among IPv4 addresses
    /// as `fqdn`.
    pub host_names: bool,
}

/// A profile as it is kept.
pub(crate) struct Settled<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) value: Value,
    pub(crate) dropped: Vec<Dropped>,
}

/// Checks a profile and makes of it what is kept.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn settle<'a>(
    text: &'a str,
    mut value: Value,
    reading: &Reading,
) -> Result<Settled<'a>, ProfileFault> {
    let (mut edits, mut named) = (Vec::new(), Vec::new());
    let mut found = PROFILE.examine(&value);
    if !found.is_clean() {
        if reading.host_names && !found.faults.is_empty() {
            named = names(&mut value, &mut edits);
        }
        let dropped = tolerance::settle(&PROFILE, &mut value, reading.strict).map_err(ProfileFault::Shape)?;
        edits.extend(
            dropped
                .iter()
                .map(|one| json!({"op": "remove", "path": one.pointer})),
        );
        named.extend(dropped);
        found = PROFILE.examine(&value);
    }
    for (pointer, spelling) in found.respelt {
        edits.push(json!({"op": "replace", "path": pointer, "value": spelling}));
        if let Some(place) = value.pointer_mut(&pointer) {
            *place = spelling;
        }
    }
    let text = match edits.is_empty() {
        true => Cow::Borrowed(text),
        false => edited(text, edits)?.into(),
    };
    let dropped = named;
    Ok(Settled { text, value, dropped })
}

/// The text after the edits, which a JSON Patch makes: what they do not touch stays as it is.
fn edited(text: &str, edits: Vec<Value>) -> Result<String, ProfileFault> {
    // How many there are is bounded where they were found, as is the text.
    let limits = patch::Limits {
        operations: usize::MAX,
        size: usize::MAX,
        work: usize::MAX,
    };
    let edits = Value::Array(edits).to_string();
    let operations = patch::operations(edits.as_bytes(), limits.operations)
        .map_err(|_| ProfileFault::at("", "expected fewer members that are absent"))?;
    patch::apply(text, &operations, &limits).map_err(|fault| ProfileFault::at("", fault.to_string()))
}

const READ_AS_NAME: Why = Why::Unreadable(Cow::Borrowed("a name among the addresses, read as `fqdn`"));

/// Names of hosts among the IPv4 addresses become `fqdn`, of the profile and of its services; one that is there stays.
fn names(value: &mut Value, edits: &mut Vec<Value>) -> Vec<Dropped> {
    let mut found = Vec::new();
    name_of(value, "", "", edits, &mut found);
    let services = |value: &Value, list: &str| -> Vec<String> {
        match value.get(list) {
            Some(Value::Array(all)) => (0..all.len()).map(|at| at.to_string()).collect(),
            Some(Value::Object(all)) => all
                .keys()
                .map(|key| key.replace('~', "~0").replace('/', "~1"))
                .collect(),
            _ => Vec::new(),
        }
    };
    for list in ["nfServices", "nfServiceList"] {
        for key in services(value, list) {
            let pointer = format!("/{list}/{key}");
            if let Some(service) = value.pointer_mut(&pointer) {
                name_of(service, &pointer, &format!("/{list}/*"), edits, &mut found);
            }
        }
    }
    found
}

fn name_of(part: &mut Value, pointer: &str, member: &str, edits: &mut Vec<Value>, found: &mut Vec<Dropped>) {
    let is_name = |value: &Value| value.as_str().is_some_and(rules::host_name);
    let mut first = None;
    if let Some(Value::Array(list)) = part.get_mut("ipv4Addresses")
        && let Some(at) = list.iter().position(is_name)
    {
        first = list.get(at).cloned();
        list.retain(|one| !is_name(one));
        let path = format!("{pointer}/ipv4Addresses");
        edits.push(match list.is_empty() {
            true => json!({"op": "remove", "path": path}),
            false => json!({"op": "replace", "path": path, "value": list}),
        });
        found.push(Dropped {
            pointer: path,
            member: format!("{member}/ipv4Addresses"),
            why: READ_AS_NAME,
        });
    }
    if let Some(Value::Array(points)) = part.get_mut("ipEndPoints") {
        for (at, point) in points.iter_mut().enumerate() {
            let name = point.get("ipv4Address").filter(|value| is_name(value)).cloned();
            let (Some(name), Some(members)) = (name, point.as_object_mut()) else {
                continue;
            };
            members.remove("ipv4Address");
            let path = format!("{pointer}/ipEndPoints/{at}/ipv4Address");
            edits.push(json!({"op": "remove", "path": path}));
            found.push(Dropped {
                pointer: path,
                member: format!("{member}/ipEndPoints/*/ipv4Address"),
                why: READ_AS_NAME,
            });
            first.get_or_insert(name);
        }
    }
    let (Some(first), Some(members)) = (first, part.as_object_mut()) else {
        return;
    };
    if members
        .get("ipv4Addresses")
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty)
    {
        members.remove("ipv4Addresses");
    }
    if members.get("fqdn").is_none_or(Value::is_null) {
        edits.push(json!({"op": "add", "path": format!("{pointer}/fqdn"), "value": first}));
        members.insert("fqdn".to_owned(), first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entry;

    const HEAD: &str =
        r#""nfInstanceId":"4947a69a-f61b-4bc1-b9da-47c9c5d14b64","nfType":"PCF","nfStatus":"REGISTERED""#;
    const USUAL: Reading = Reading {
        limits: pattern::Limits {
            patterns: 256,
            bytes: 1 << 20,
        },
        strict: false,
        host_names: false,
    };

    fn read(rest: &str, reading: Reading) -> Result<(Value, Vec<String>), Vec<String>> {
        let text = format!("{{{HEAD},{rest}}}");
        match Entry::read(text.as_bytes(), &reading, |_| 30) {
            Ok((entry, dropped)) => {
                let kept = serde_json::from_slice(&entry.document()).unwrap();
                Ok((kept, dropped.into_iter().map(|one| one.member).collect()))
            }
            Err(ProfileFault::Shape(faults)) => Err(faults.into_iter().map(|fault| fault.pointer).collect()),
            Err(other) => panic!("{other}"),
        }
    }

    fn strict(rest: &str) -> Vec<String> {
        let reading = Reading {
            strict: true,
            ..USUAL
        };
        read(rest, reading).unwrap_err()
    }

    /// As some products register.
    #[test]
    fn null_and_empty_members_are_not_kept() {
        let service = r#"{"serviceInstanceId":"a","serviceName":"npcf-am-policy-control","versions":[{"apiVersionInUri":"v1","apiFullVersion":"1.0.0","expiry":"never"}],"scheme":"http","nfServiceStatus":"REGISTERED","ipEndPoints":[{"ipv4Address":"10.0.0.1","port":null}],"allowedNfTypes":[],"x":null}"#;
        let rest = format!(
            r#""fqdn":"pcf.example.com","plmnList":null,"ipv4Addresses":null,"priority":null,"customInfo":null,"nsiList":[],"sNssais":[],"pcfInfoList":{{}},"vendor" : {{"a":null,"n":1.0e2}},"nfServices":[{service}]"#
        );
        let (kept, dropped) = read(&rest, USUAL).unwrap();
        for absent in [
            "plmnList",
            "ipv4Addresses",
            "priority",
            "customInfo",
            "nsiList",
            "sNssais",
            "pcfInfoList",
        ] {
            assert!(kept.get(absent).is_none(), "{absent}: {kept}");
            assert!(dropped.contains(&format!("/{absent}")), "{absent}");
        }
        let service = &kept["nfServices"][0];
        assert_eq!(service["ipEndPoints"], json!([{"ipv4Address": "10.0.0.1"}]));
        assert_eq!(service["versions"][0].get("expiry"), None);
        assert!(service.get("allowedNfTypes").is_none() && service["x"].is_null());
        assert!(
            kept["vendor"].get("a").is_some(),
            "what is not known stays as it is"
        );
        assert_eq!(strict(r#""fqdn":"pcf.example.com","nsiList":[]"#), ["/nsiList"]);
    }

    #[test]
    fn what_others_depend_on_is_not_guessed() {
        for (rest, place) in [
            (r#""fqdn":"pcf.example.com","priority":-1"#, "/priority"),
            (
                r#""fqdn":"pcf.example.com","allowedNfTypes":"AMF""#,
                "/allowedNfTypes",
            ),
            (r#""fqdn":null"#, "/fqdn"),
            (r#""ipv4Addresses":["udm.5gc.example"]"#, "/ipv4Addresses/0"),
            (r#""fqdn":"pcf.core1""#, "/fqdn"),
        ] {
            assert_eq!(read(rest, USUAL).unwrap_err(), [place]);
        }
    }

    #[test]
    fn names_among_addresses_are_names_where_the_operator_wishes() {
        let wish = Reading {
            host_names: true,
            ..USUAL
        };
        let service = r#"{"serviceInstanceId":"a","serviceName":"npcf-am-policy-control","versions":[{"apiVersionInUri":"v1","apiFullVersion":"1.0.0"}],"scheme":"http","nfServiceStatus":"REGISTERED","ipEndPoints":[{"ipv4Address":"pcf","port":8000}]}"#;
        let rest = format!(r#""ipv4Addresses":["udm.5gc.example","10.0.0.7"],"nfServices":[{service}]"#);
        let (kept, dropped) = read(&rest, wish).unwrap();
        assert_eq!(
            (&kept["fqdn"], &kept["ipv4Addresses"]),
            (&json!("udm.5gc.example"), &json!(["10.0.0.7"]))
        );
        assert_eq!(kept["nfServices"][0]["fqdn"], "pcf");
        assert_eq!(kept["nfServices"][0]["ipEndPoints"], json!([{"port": 8000}]));
        assert_eq!(
            dropped,
            ["/ipv4Addresses", "/nfServices/*/ipEndPoints/*/ipv4Address"]
        );
        for name in ["amf", "pcf.core1"] {
            assert_eq!(
                read(&format!(r#""fqdn":"{name}""#), wish).unwrap().0["fqdn"],
                name
            );
        }
    }

    /// Several libraries refuse a whole answer for one of these.
    #[test]
    fn unusual_spellings_are_kept_as_every_consumer_reads_them() {
        let rest = r#""ipv6Addresses":["2001:DB8::1"],"load":6.0,"capacity":1e2,"recoveryTime":"2016-12-31T23:59:60Z","x":6.0"#;
        let (kept, dropped) = read(rest, USUAL).unwrap();
        assert_eq!(kept["ipv6Addresses"], json!(["2001:db8::1"]));
        assert_eq!((&kept["load"], &kept["capacity"]), (&json!(6), &json!(100)));
        assert_eq!(kept["recoveryTime"], "2016-12-31T23:59:59Z");
        assert!(kept["x"].is_f64() && dropped.is_empty());
        assert_eq!(strict(r#""fqdn":"a.example.com","load":6.5"#), ["/load"]);
        let (kept, dropped) = read(
            r#""fqdn":"a.example.com","recoveryTime":"2027-03-29_02:30:00Z""#,
            USUAL,
        )
        .unwrap();
        assert!(kept.get("recoveryTime").is_none());
        assert_eq!(dropped, ["/recoveryTime"]);
    }
}
