//! Who is at which address of a capture.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use ahash::AHashMap;
use bytes::Bytes;
use capture::Captured;
use diameter::proto::{Message, known};
use serde::Serialize;

use crate::config::Config;

/// Bound on addresses with a name.
const MAX_NAMES: usize = 65_536;
/// Capabilities exchange, watchdog and disconnection: their Origin-Host is the neighbour's own (RFC 6733 §5.3 to §5.5).
const OF_NEIGHBOURS: [u32; 3] = [257, 280, 282];

/// An address with the name of its peer, as an operator gives it: `192.0.2.1=HOST` or `192.0.2.1:3868=HOST`.
#[derive(Clone, Debug)]
pub struct Named {
    address: Address,
    host: Arc<str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Address {
    Host(IpAddr),
    Port(SocketAddr),
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').filter(|(_, host)| !host.is_empty());
        let (address, host) = parts.ok_or_else(|| format!("`{text}`; use ADDRESS=HOST"))?;
        let port = address.parse().map(Address::Port);
        let address = port.or_else(|_| address.parse().map(Address::Host));
        let address =
            address.map_err(|_| format!("`{text}`: the address is not one of IP, with or without a port"))?;
        let host = host.into();
        Ok(Self { address, host })
    }
}

/// A peer of the report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// Its address.
    pub address: String,
    /// Its name; absent: nothing names it, and its requests are those of an unlisted peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// Names by address.
pub(super) struct Names {
    given: Vec<Named>,
    learned: AHashMap<SocketAddr, Arc<str>>,
    /// Of the configuration; without a name for a host with several peers, which differ by their ports alone.
    ports: AHashMap<SocketAddr, Arc<str>>,
    hosts: AHashMap<IpAddr, Option<Arc<str>>>,
    /// Names of the router itself.
    own: Vec<String>,
    /// Senders of requests.
    senders: BTreeMap<SocketAddr, Option<Arc<str>>>,
}

impl Names {
    pub(super) fn new(config: &Config, given: &[Named]) -> Self {
        let (mut ports, mut hosts) = (AHashMap::new(), AHashMap::new());
        for peer in &config.peers {
            let name: Arc<str> = peer.host.as_str().into();
            for address in &peer.addresses {
                ports.insert(*address, name.clone());
                let known = hosts.entry(address.ip()).or_insert_with(|| Some(name.clone()));
                if known.as_ref().is_some_and(|known| *known != name) {
                    *known = None;
                }
            }
        }
        Self {
            given: given.to_vec(),
            learned: AHashMap::new(),
            ports,
            hosts,
            own: config.local_nodes.iter().map(|node| node.host.clone()).collect(),
            senders: BTreeMap::new(),
        }
    }

    /// Learns names from messages of neighbours, and from comments of traces that a router has written.
    pub(super) fn learn(&mut self, captured: &Captured<'_>) {
        let comment = of_trace(captured).map(|(comes, peer)| match comes {
            true => (captured.from, captured.to, peer),
            false => (captured.to, captured.from, peer),
        });
        if let Some((theirs, ours, peer)) = comment {
            self.put(theirs, peer);
            self.put(ours, "");
            return;
        }
        let Ok(message) = Message::parse(Bytes::copy_from_slice(captured.bytes)) else {
            return;
        };
        if message.application() == 0
            && OF_NEIGHBOURS.contains(&message.command())
            && let Ok(Some(host)) = message.get(known::ORIGIN_HOST)
        {
            self.put(captured.from, host);
        }
    }

    fn put(&mut self, address: SocketAddr, host: &str) {
        if self.learned.len() < MAX_NAMES {
            self.learned.entry(address).or_insert_with(|| host.into());
        }
    }

    /// The name of the sender of a request: empty for the router itself. One without a name gets its address, which is in no
    /// home realm.
    pub(super) fn of(&mut self, address: SocketAddr, unnamed: &mut u64) -> Arc<str> {
        let name = self.find(address);
        *unnamed += u64::from(name.is_none());
        if self.senders.len() < MAX_NAMES {
            self.senders.entry(address).or_insert_with(|| name.clone());
        }
        match name {
            Some(name) if self.is_own(&name) => "".into(),
            Some(name) => name,
            None => address.to_string().into(),
        }
    }

    /// Whether two addresses are those of one node.
    pub(super) fn are_one(&self, one: SocketAddr, other: SocketAddr) -> bool {
        let both = self.find(one).zip(self.find(other));
        both.is_some_and(|(one, other)| {
            one.eq_ignore_ascii_case(&other) || self.is_own(&one) && self.is_own(&other)
        })
    }

    /// Senders of requests, with their names.
    pub(super) fn shown(&self) -> Vec<Shown> {
        let row = |(address, name): (&SocketAddr, &Option<Arc<str>>)| Shown {
            address: address.to_string(),
            host: name.as_ref().map(|name| match &**name {
                "" => "this router".to_owned(),
                name => name.to_owned(),
            }),
        };
        self.senders.iter().map(row).collect()
    }

    fn is_own(&self, name: &str) -> bool {
        name.is_empty() || self.own.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn find(&self, address: SocketAddr) -> Option<Arc<str>> {
        let given = |wanted: Address| self.given.iter().find(|named| named.address == wanted);
        let given = given(Address::Port(address)).or_else(|| given(Address::Host(address.ip())));
        if let Some(named) = given {
            return Some(named.host.clone());
        }
        let known = self.learned.get(&address).or_else(|| self.ports.get(&address));
        known.or_else(|| self.hosts.get(&address.ip())?.as_ref()).cloned()
    }
}

/// Whether a message comes in, and from which peer, or goes out, and to which: by the comment of a router's trace.
pub(super) fn of_trace<'c>(captured: &Captured<'c>) -> Option<(bool, &'c str)> {
    let (way, peer) = captured.comment?.rsplit_once(' ')?;
    // Samples of findings name measures before it.
    let way = way.rsplit_once("; ").map_or(way, |(_, way)| way);
    match way {
        "request in" | "answer in" => Some((true, peer)),
        "request out" | "answer out" => Some((false, peer)),
        _ => None,
    }
}
