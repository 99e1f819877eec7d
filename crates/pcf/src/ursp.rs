//! UE policies as a UE reads them: the MANAGE UE POLICY COMMAND (TS 24.501 annex D) with URSP rules (TS 24.526 §5.2).

use std::net::IpAddr;

use serde_json::Value;

/// Message types (TS 24.501 §D.6.1).
const MANAGE_UE_POLICY_COMMAND: u8 = 1;
/// UE policy part type of URSP (TS 24.501 §D.6.2).
const URSP: u8 = 1;

/// Traffic descriptor components (TS 24.526 §5.2).
mod traffic {
    pub(super) const MATCH_ALL: u8 = 0x01;
    pub(super) const OS_APP: u8 = 0x08;
    pub(super) const IPV4_REMOTE: u8 = 0x10;
    pub(super) const IPV6_REMOTE: u8 = 0x21;
    pub(super) const PROTOCOL: u8 = 0x30;
    pub(super) const REMOTE_PORT: u8 = 0x50;
    pub(super) const REMOTE_PORTS: u8 = 0x51;
    pub(super) const DNN: u8 = 0x88;
    pub(super) const FQDN: u8 = 0x91;
}

/// Route selection descriptor components (TS 24.526 §5.2).
mod route {
    pub(super) const SLICE: u8 = 0x02;
    pub(super) const DNN: u8 = 0x04;
}

/// The command with these rules, in the form of `UrspRuleRequest` (TS 29.522 §5.11.2.3).
///
/// # Errors
/// What of a rule a UE cannot be given.
pub(crate) fn command(
    transaction: u8,
    plmn: &Value,
    section: u16,
    rules: &[Value],
) -> Result<Vec<u8>, String> {
    let mut contents = Vec::new();
    for rule in rules {
        with_length(&mut contents, |out| self::rule(out, rule))?;
    }
    let mut parts = Vec::new();
    // A section without parts is deleted (TS 24.501 §D.2.1.3).
    if !rules.is_empty() {
        let part = [&[URSP][..], &contents].concat();
        with_length(&mut parts, |out| extend(out, &part))?;
    }
    let instruction = [&section.to_be_bytes()[..], &parts].concat();
    let mut sublist = plmn_digits(plmn)?.to_vec();
    with_length(&mut sublist, |out| extend(out, &instruction))?;
    let mut list = Vec::new();
    with_length(&mut list, |out| extend(out, &sublist))?;
    let mut message = vec![transaction, MANAGE_UE_POLICY_COMMAND];
    with_length(&mut message, |out| extend(out, &list))?;
    Ok(message)
}

fn extend(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), String> {
    out.extend_from_slice(bytes);
    Ok(())
}

/// Appends what `fill` writes behind its length of two octets.
fn with_length(
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
) -> Result<(), String> {
    let mut inner = Vec::new();
    fill(&mut inner)?;
    let length = u16::try_from(inner.len()).map_err(|_| "longer than 65,535 octets".to_owned())?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&inner);
    Ok(())
}

/// MCC and MNC in three octets (TS 24.008 §10.5.1.3).
fn plmn_digits(plmn: &Value) -> Result<[u8; 3], String> {
    let digits = |name: &str| -> Option<Vec<u8>> {
        let text = plmn.get(name)?.as_str()?;
        text.chars()
            .map(|digit| digit.to_digit(10).and_then(|digit| u8::try_from(digit).ok()))
            .collect()
    };
    match (digits("mcc").as_deref(), digits("mnc").as_deref()) {
        (Some([a, b, c]), Some([d, e])) => Ok([b << 4 | a, 0xf0 | c, e << 4 | d]),
        (Some([a, b, c]), Some([d, e, f])) => Ok([b << 4 | a, f << 4 | c, e << 4 | d]),
        _ => Err("the PLMN has no MCC and MNC".to_owned()),
    }
}

fn octet(value: &Value, name: &str, usual: u8) -> Result<u8, String> {
    match value.get(name) {
        None => Ok(usual),
        Some(number) => number
            .as_u64()
            .and_then(|number| u8::try_from(number).ok())
            .ok_or_else(|| format!("{name}: expected 0 to 255")),
    }
}

fn rule(out: &mut Vec<u8>, rule: &Value) -> Result<(), String> {
    out.push(octet(rule, "relatPrecedence", 255)?);
    with_length(out, |out| match rule.get("trafficDesc") {
        Some(descriptor) => traffic_descriptor(out, descriptor),
        None => extend(out, &[traffic::MATCH_ALL]),
    })?;
    let routes = rule.get("routeSelParamSets").and_then(Value::as_array);
    with_length(out, |out| {
        for (place, one) in routes.into_iter().flatten().enumerate() {
            let usual = u8::try_from(place).unwrap_or(u8::MAX);
            with_length(out, |out| {
                out.push(octet(one, "precedence", usual)?);
                with_length(out, |out| route_descriptor(out, one))
            })?;
        }
        Ok(())
    })
}

fn texts<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v str> + use<'v> {
    let list = value.get(name).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

fn traffic_descriptor(out: &mut Vec<u8>, descriptor: &Value) -> Result<(), String> {
    let before = out.len();
    for (os, apps) in descriptor
        .get("appDescs")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let os = uuid::Uuid::try_parse(os).map_err(|_| format!("appDescs: {os} is not an OS Id (a UUID)"))?;
        let ids = apps.get("appIds").and_then(Value::as_object);
        for (id, _) in ids.into_iter().flatten() {
            out.push(traffic::OS_APP);
            out.extend_from_slice(os.as_bytes());
            text(out, id.as_bytes())?;
        }
    }
    for filter in texts(descriptor, "flowDescs") {
        flow(out, filter)?;
    }
    for domain in texts(descriptor, "domainDescs") {
        out.push(traffic::FQDN);
        text(out, &labels(domain)?)?;
    }
    for dnn in texts(descriptor, "dnns") {
        out.push(traffic::DNN);
        text(out, &labels(dnn)?)?;
    }
    match out.len() > before {
        true => Ok(()),
        false => Err("trafficDesc: expected appDescs, flowDescs, domainDescs or dnns".to_owned()),
    }
}

fn route_descriptor(out: &mut Vec<u8>, set: &Value) -> Result<(), String> {
    if let Some(slice) = set.get("snssai") {
        out.push(route::SLICE);
        let sst = octet(slice, "sst", 0)?;
        match slice.get("sd").and_then(Value::as_str) {
            Some(sd) => {
                let sd =
                    u32::from_str_radix(sd, 16).map_err(|_| "snssai: sd is not hexadecimal".to_owned())?;
                let [_, high, middle, low] = sd.to_be_bytes();
                out.extend_from_slice(&[4, sst, high, middle, low]);
            }
            None => out.extend_from_slice(&[1, sst]),
        }
    }
    if let Some(dnn) = set.get("dnn").and_then(Value::as_str) {
        out.push(route::DNN);
        text(out, &labels(dnn)?)?;
    }
    Ok(())
}

/// Bytes behind their length of one octet.
fn text(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), String> {
    let length = u8::try_from(bytes.len()).map_err(|_| "a name longer than 255 octets".to_owned())?;
    out.push(length);
    out.extend_from_slice(bytes);
    Ok(())
}

/// A name as labels, each behind its length (TS 23.003 §9.1).
fn labels(name: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(name.len() + 1);
    for label in name.split('.') {
        if label.is_empty() || label.len() > 63 || !label.is_ascii() {
            return Err(format!("{name}: expected labels of 1 to 63 characters"));
        }
        text(&mut out, label.as_bytes())?;
    }
    Ok(out)
}

/// An IPFilterRule (RFC 6733 §4.3.1) such as `permit out 17 from 198.51.100.0/24 80 to any`.
fn flow(out: &mut Vec<u8>, filter: &str) -> Result<(), String> {
    let wrong =
        || format!("flowDescs: {filter} is not a filter such as `permit out 17 from 198.51.100.1 80 to any`");
    let words: Vec<&str> = filter.split_whitespace().collect();
    let ["permit", "out", protocol, "from", address, rest @ ..] = words.as_slice() else {
        return Err(wrong());
    };
    if *protocol != "ip" {
        out.extend_from_slice(&[traffic::PROTOCOL, protocol.parse().map_err(|_| wrong())?]);
    }
    if *address != "any" {
        remote(out, address).ok_or_else(wrong)?;
    }
    let ports = rest.first().filter(|word| **word != "to");
    if let Some(ports) = ports {
        let port = |text: &str| text.parse::<u16>().map_err(|_| wrong());
        match ports.split_once('-') {
            Some((first, last)) => {
                out.push(traffic::REMOTE_PORTS);
                out.extend_from_slice(&port(first)?.to_be_bytes());
                out.extend_from_slice(&port(last)?.to_be_bytes());
            }
            None => {
                out.push(traffic::REMOTE_PORT);
                out.extend_from_slice(&port(ports)?.to_be_bytes());
            }
        }
    }
    Ok(())
}

fn remote(out: &mut Vec<u8>, address: &str) -> Option<()> {
    let (address, length) = match address.split_once('/') {
        Some((address, length)) => (address, Some(length.parse::<u8>().ok()?)),
        None => (address, None),
    };
    match address.parse().ok()? {
        IpAddr::V4(own) => {
            let length = length.unwrap_or(32);
            let mask = u32::MAX
                .checked_shl(32_u32.checked_sub(length.into())?)
                .unwrap_or(0);
            out.push(traffic::IPV4_REMOTE);
            out.extend_from_slice(&own.octets());
            out.extend_from_slice(&mask.to_be_bytes());
        }
        IpAddr::V6(own) => {
            let length = length.unwrap_or(128);
            out.push(traffic::IPV6_REMOTE);
            out.extend_from_slice(&own.octets());
            out.push(length.min(128));
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Written out by hand from the tables of TS 24.501 annex D and TS 24.526 §5.2.
    #[test]
    fn a_command_has_the_octets_of_the_standard() {
        let rules = [
            json!({"relatPrecedence": 255, "routeSelParamSets": [{"precedence": 1, "dnn": "internet",
            "snssai": {"sst": 1, "sd": "00000a"}}]}),
        ];
        let command = command(7, &json!({"mcc": "001", "mnc": "01"}), 2, &rules).unwrap();
        let expected = [
            &[7, 1, 0, 42][..],         // PTI, message type, length of the section management list
            &[0, 40, 0x00, 0xf1, 0x10], // length of the sublist, PLMN 001-01
            &[0, 35, 0, 2],             // length of the instruction, UPSC 2
            &[0, 31, 1],                // length of the UE policy part, type URSP
            &[0, 28, 255],              // length of the rule, precedence
            &[0, 1, 0x01],              // traffic descriptor: match-all
            &[0, 22],                   // length of the route selection descriptors
            &[0, 20, 1, 0, 17],         // length of one, precedence, length of its contents
            &[0x02, 4, 1, 0, 0, 0x0a],  // S-NSSAI
            &[0x04, 9, 8],              // DNN
            b"internet",
        ]
        .concat();
        assert_eq!(command, expected);
    }

    #[test]
    fn a_section_without_rules_is_deleted() {
        let command = command(0x81, &json!({"mcc": "310", "mnc": "410"}), 1, &[]).unwrap();
        assert_eq!(command, [0x81, 1, 0, 9, 0, 7, 0x13, 0x00, 0x14, 0, 2, 0, 1]);
    }

    #[test]
    fn traffic_is_described_by_its_remote_end() {
        let described = |descriptor: Value| {
            let mut out = Vec::new();
            traffic_descriptor(&mut out, &descriptor).map(|()| out)
        };
        assert_eq!(
            described(json!({"flowDescs": ["permit out 17 from 198.51.100.0/24 80-90 to any"]})).unwrap(),
            [
                0x30, 17, 0x10, 198, 51, 100, 0, 255, 255, 255, 0, 0x51, 0, 80, 0, 90
            ]
        );
        assert_eq!(
            described(json!({"domainDescs": ["a.example"], "dnns": ["ims"]})).unwrap(),
            [&[0x91, 10, 1, b'a', 7][..], b"example", &[0x88, 4, 3], b"ims"].concat()
        );
        for wrong in [
            json!({}),
            json!({"flowDescs": ["deny in ip from any to any"]}),
            json!({"flowDescs": ["permit out ip from 1.2.3.4/99 to any"]}),
            json!({"domainDescs": ["a..b"]}),
            json!({"appDescs": {"android": {"appIds": {"x": {}}}}}),
        ] {
            assert!(described(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
