//! Where to listen and whom to reach.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::FormatError;

/// Addresses to listen on: one `address:port`, or a list of them; an empty list listens nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listen(pub Vec<SocketAddr>);

impl Listen {
    /// Listens on this port of the loopback interface.
    #[must_use]
    pub fn local(port: u16) -> Self {
        Self(vec![SocketAddr::from(([127, 0, 0, 1], port))])
    }

    /// The addresses in their order.
    pub fn iter(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.0.iter().copied()
    }

    /// The first address.
    #[must_use]
    pub fn first(&self) -> Option<SocketAddr> {
        self.0.first().copied()
    }
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self(vec![address])
    }
}

impl Serialize for Listen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [only] => serializer.collect_str(only),
            several => serializer.collect_seq(several),
        }
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            One(SocketAddr),
            Several(Vec<SocketAddr>),
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::One(address) => Self(vec![address]),
            Written::Several(addresses) => Self(addresses),
        })
    }
}

impl JsonSchema for Listen {
    fn schema_name() -> Cow<'static, str> {
        "Listen".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "format": "socket-addresses",
            "anyOf": [
                { "type": "string", "format": "socket-address" },
                { "type": "array", "uniqueItems": true, "items": { "type": "string", "format": "socket-address" } }
            ]
        })
    }
}

/// A host by name or address, and a port: `db.example.net:3306`, `[::1]:3306`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// Name or address, without brackets.
    pub host: String,
    /// Port, not 0.
    pub port: u16,
}

impl FromStr for HostPort {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let (host, port) = text.rsplit_once(':').ok_or(FormatError("has no port"))?;
        let port = match port.parse::<u16>() {
            Ok(port) if port != 0 => port,
            _ => return Err(FormatError("has no port from 1 to 65535")),
        };
        if let Some(inner) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            inner
                .parse::<Ipv6Addr>()
                .map_err(|_| FormatError("has something in brackets that is no IPv6 address"))?;
            return Ok(Self {
                host: inner.to_owned(),
                port,
            });
        }
        let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if host.is_empty() || host.len() > 253 || !host.chars().all(letters) {
            return Err(FormatError("has no host name or address before the port"));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            _ => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl HostPort {
    fn from_number(number: f64) -> Result<Self, String> {
        Err(format!("{number} is not host and port"))
    }
}

super::written_as_text!(HostPort, "host-port", "string", from_number);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports() {
        for good in ["db.example.net:3306", "10.0.0.1:1", "[::1]:3306"] {
            assert_eq!(good.parse::<HostPort>().unwrap().to_string(), good);
        }
        for bad in ["", ":1", "a", "a:0", "a:65536", "::1:80", "[x]:1", "a b:1"] {
            assert!(bad.parse::<HostPort>().is_err(), "{bad}");
        }
    }
}
