//! Scalars: names of an enumeration, texts in a human format, numbers in their range.

use std::net::{SocketAddr, ToSocketAddrs as _};

use serde_json::Value;

use super::{Check, describe};
use crate::formats;
use crate::node::{self, Kind, Node};

impl Check<'_> {
    pub(super) fn enumeration(&mut self, node: &Node, schema: &Value, path: &str) -> Option<Value> {
        let allowed = describe::constants(self.schema, schema);
        let (Kind::Plain(text) | Kind::Quoted(text)) = &node.kind else {
            self.wrong_type(node, schema, path);
            return None;
        };
        let plain = matches!(node.kind, Kind::Plain(_));
        let meant = node.to_json();
        // A plain `5` or `true` may be a number or the text it was written as, whichever is allowed.
        if let Some(found) = allowed
            .iter()
            .copied()
            .find(|one| **one == meant || (plain && one.as_str() == Some(text)))
        {
            return Some(found.clone());
        }
        let names: Vec<String> = allowed.iter().map(|one| describe::plain(one)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let expected = describe::one_of_names("one of", text, &names);
        self.fault(
            node.place,
            path,
            format!("`{}` is unknown", node::shorten(text)),
            expected,
        );
        None
    }

    pub(super) fn scalar(
        &mut self,
        node: &Node,
        schema: &Value,
        types: &[&str],
        path: &str,
    ) -> Option<Value> {
        let (text, plain) = match &node.kind {
            Kind::Plain(text) => (text.as_str(), true),
            Kind::Quoted(text) => (text.as_str(), false),
            Kind::List(_) | Kind::Map(_) => return None,
        };
        let number = plain.then(|| node::as_number(text)).flatten();
        let allows = |name: &str| types.contains(&name);
        if let Some(number) = number.filter(|_| allows("number") || allows("integer")) {
            return self.number(node, &number, schema, types, path);
        }
        if let Some(yes) = plain
            .then(|| node::as_bool(text))
            .flatten()
            .filter(|_| allows("boolean"))
        {
            return Some(Value::Bool(yes));
        }
        if allows("string") && !(plain && node::is_null(text)) {
            return self.text(node, text, schema, path);
        }
        self.wrong_type(node, schema, path);
        None
    }

    fn text(&mut self, node: &Node, text: &str, schema: &Value, path: &str) -> Option<Value> {
        let expected = describe::phrase(self.schema, schema);
        let length = text.chars().count() as u64;
        let bound = |word: &str| schema.get(word).and_then(Value::as_u64);
        if bound("minLength").is_some_and(|least| length < least)
            || bound("maxLength").is_some_and(|most| length > most)
        {
            self.fault(
                node.place,
                path,
                format!("this text has {length} characters"),
                expected,
            );
            return None;
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && let Ok(pattern) = regex::Regex::new(pattern)
            && !pattern.is_match(text)
        {
            self.fault(
                node.place,
                path,
                format!("this is the text \"{}\"", node::shorten(text)),
                expected,
            );
            return None;
        }
        let format = schema.get("format").and_then(Value::as_str);
        if self.resolves_names
            && format == Some("socket-address")
            && is_own_address(path)
            && let Some(resolved) = resolved(text)
        {
            return match resolved {
                Ok(address) => Some(Value::String(address.to_string())),
                Err(what) => {
                    self.fault(
                        node.place,
                        path,
                        what,
                        "a name of this machine, or an IP address and port",
                    );
                    None
                }
            };
        }
        if let Some(format) = format
            && let Err(reason) = formats::check(format, text)
        {
            self.fault(
                node.place,
                path,
                format!("\"{}\" {reason}", node::shorten(text)),
                expected,
            );
            return None;
        }
        Some(Value::String(text.to_owned()))
    }

    fn number(
        &mut self,
        node: &Node,
        number: &serde_json::Number,
        schema: &Value,
        types: &[&str],
        path: &str,
    ) -> Option<Value> {
        let whole = number.is_u64() || number.is_i64();
        let range = describe::range(schema);
        // Every number has a nearest f64; bounds that need more than 53 bits are those of the integer types
        // themselves, which serde checks exactly.
        let value = number.as_f64().unwrap_or(f64::NAN);
        if (types.contains(&"number") || whole) && range.holds(value) {
            return Some(Value::Number(number.clone()));
        }
        self.wrong_type(node, schema, path);
        None
    }
}

/// Whether a setting is an address of the function's own: `listen`, `sctpListen[0]`, `admin`.
fn is_own_address(path: &str) -> bool {
    let mut keys = node::segments(path)
        .into_iter()
        .filter_map(|segment| match segment {
            node::Segment::Key(key) => Some(key),
            node::Segment::Index(_) => None,
        });
    keys.next_back()
        .is_some_and(|key| key == "admin" || key.to_ascii_lowercase().ends_with("listen"))
}

/// The first address of a name with a port, by the system's resolver; `None` for anything else.
fn resolved(text: &str) -> Option<Result<SocketAddr, String>> {
    let is_name = text.parse::<SocketAddr>().is_err() && text.contains(|c: char| c.is_ascii_alphabetic());
    let (host, port) = text.rsplit_once(':').filter(|_| is_name)?;
    let is_host = !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    // Port 0 stands for a free port, as with an address.
    let port: u16 = port.parse().ok().filter(|_| is_host)?;
    let addresses = (host, port).to_socket_addrs();
    Some(match addresses.map(|mut all| all.next()) {
        Ok(Some(address)) => Ok(address),
        Ok(None) => Err(format!("the name {host} has no address")),
        Err(error) => Err(format!("the name {host} cannot be resolved: {error}")),
    })
}
