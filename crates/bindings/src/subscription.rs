//! Subscriptions to bindings (TS 29.521 §5.6.2.4), and their notifications (§5.6.2.5 to §5.6.2.8).

use records::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};
use serde_json::{Map, Value, json};

use super::document::identity_key;
use super::query::{same_dnn, slice_of};
use super::{Document, PcfBinding, UeBinding};

/// A subscription to the bindings of one subscriber, and the NF set of which any instance takes its
/// notifications, where the consumer has said so.
#[derive(Clone, Debug, PartialEq)]
pub struct Subscription(pub Document, pub Option<String>);

/// What has happened to bindings of PDU sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionChange {
    /// They were registered, and each is the first of its slice and DNN, or it is to be said that they are there.
    Began,
    /// They were registered or are at another PCF, and the slice and DNN had sessions before.
    Joined,
    /// They were deregistered, and the slice and DNN have further sessions.
    Left,
    /// They were deregistered, each as the last of its slice and DNN.
    Ended,
}

/// Begins a stored subscription that has a set: the length of its id and the id follow, then the document. No
/// document begins so.
const WITH_SET: u8 = 2;

impl Subscription {
    /// By `supi`.
    pub const SUPI: Index = Index(0);

    fn wants(&self, event: &str) -> bool {
        self.0.texts_of("events").any(|wanted| wanted == event)
    }

    /// The slice and DNN pairs it is about; none: all.
    fn pairs(&self) -> impl Iterator<Item = &Value> {
        let more = self.0.member("addSnssaiDnnPairs").and_then(Value::as_array);
        self.0
            .member("snssaiDnnPairs")
            .into_iter()
            .chain(more.into_iter().flatten())
    }

    fn is_about(&self, session: &PcfBinding) -> bool {
        let mut pairs = self.pairs().peekable();
        pairs.peek().is_none() || pairs.any(|pair| is_pair(pair, session))
    }

    /// Whether it asks for slices and DNNs that get their first session or lose their last one.
    #[must_use]
    pub fn wants_pairs(&self) -> bool {
        self.0
            .texts_of("events")
            .any(|event| event.starts_with("SNSSAI_DNN_"))
    }

    /// The notification of registered or deregistered bindings of PDU sessions; `None` when it is not subscribed to.
    #[must_use]
    pub fn sessions_body(&self, sessions: &[&PcfBinding], change: SessionChange) -> Option<Value> {
        let about: Vec<&PcfBinding> = sessions
            .iter()
            .copied()
            .filter(|one| self.is_about(one))
            .collect();
        if about.is_empty() {
            return None;
        }
        let mut events = Vec::new();
        let (session_event, pair_event) = match change {
            SessionChange::Began | SessionChange::Joined => (
                "PCF_PDU_SESSION_BINDING_REGISTRATION",
                "SNSSAI_DNN_BINDING_REGISTRATION",
            ),
            SessionChange::Left | SessionChange::Ended => (
                "PCF_PDU_SESSION_BINDING_DEREGISTRATION",
                "SNSSAI_DNN_BINDING_DEREGISTRATION",
            ),
        };
        if self.wants(session_event) {
            let infos: Vec<Value> = about.iter().map(|one| session_info(&one.0)).collect();
            events.push(json!({"event": session_event, "pcfForPduSessInfos": infos}));
        }
        if self.wants(pair_event) && matches!(change, SessionChange::Began | SessionChange::Ended) {
            let mut pairs: Vec<&PcfBinding> = Vec::new();
            for one in about {
                if !pairs.iter().any(|known| known.same_pair(one)) {
                    pairs.push(one);
                }
            }
            let pairs: Vec<Value> = pairs
                .iter()
                .map(|one| json!({"snssai": one.0.member("snssai"), "dnn": one.0.member("dnn")}))
                .collect();
            events.push(json!({"event": pair_event, "matchSnssaiDnns": pairs}));
        }
        self.body(events)
    }

    /// The notification of a registered or deregistered binding of a UE.
    #[must_use]
    pub fn ue_body(&self, ue: &UeBinding, come: bool) -> Option<Value> {
        let event = match come {
            true => "PCF_UE_BINDING_REGISTRATION",
            false => "PCF_UE_BINDING_DEREGISTRATION",
        };
        if !self.wants(event) {
            return None;
        }
        let mut info = copied(&ue.0, &["pcfId", "pcfSetId", "bindLevel"]);
        for (from, to) in [
            ("pcfForUeFqdn", "pcfFqdn"),
            ("pcfForUeIpEndPoints", "pcfIpEndPoints"),
        ] {
            if let Some(value) = ue.0.member(from) {
                info.insert(to.to_owned(), value.clone());
            }
        }
        self.body(vec![json!({"event": event, "pcfForUeInfo": info})])
    }

    fn body(&self, events: Vec<Value>) -> Option<Value> {
        (!events.is_empty()).then(|| {
            json!({"notifCorreId": self.0.text_of("notifCorreId").unwrap_or_default(), "eventNotifs": events})
        })
    }
}

fn is_pair(pair: &Value, session: &PcfBinding) -> bool {
    let dnn = pair.get("dnn").and_then(Value::as_str).unwrap_or_default();
    pair.get("snssai").and_then(slice_of) == session.0.member("snssai").and_then(slice_of)
        && session.0.text_of("dnn").is_some_and(|own| same_dnn(own, dnn))
}

fn copied(document: &Document, names: &[&str]) -> Map<String, Value> {
    let present = names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), document.member(name)?.clone())));
    present.collect()
}

/// `PcfForPduSessionInfo` of a binding.
fn session_info(document: &Document) -> Value {
    let mut info = copied(
        document,
        &[
            "dnn",
            "snssai",
            "pcfFqdn",
            "pcfIpEndPoints",
            "ipv4Addr",
            "ipDomain",
            "pcfId",
            "pcfSetId",
            "bindLevel",
        ],
    );
    for (one, more, to) in [
        ("ipv6Prefix", "addIpv6Prefixes", "ipv6Prefixes"),
        ("macAddr48", "addMacAddrs", "macAddrs"),
    ] {
        let all: Vec<&str> = document
            .text_of(one)
            .into_iter()
            .chain(document.texts_of(more))
            .collect();
        if !all.is_empty() {
            info.insert(to.to_owned(), json!(all));
        }
    }
    Value::Object(info)
}

impl Record for Subscription {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "bsf_subscription",
        indexes: &[IndexSchema::many("supi")],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        self.0.key()
    }

    fn index(&self, keys: &mut IndexKeys) {
        if let Some(supi) = self.0.text_of("supi") {
            keys.add(Self::SUPI, &identity_key(supi));
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let set = self.1.as_deref().unwrap_or_default();
        if let Ok(length @ 1..) = u8::try_from(set.len()) {
            out.extend([WITH_SET, length]);
            out.extend_from_slice(set.as_bytes());
        }
        self.0.encode(out);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let [WITH_SET, length, rest @ ..] = value else {
            return Document::decode(key, value).map(|document| Self(document, None));
        };
        let wrong = || DecodeError("a subscription ends in the middle".to_owned());
        let (set, document) = rest.split_at_checked(usize::from(*length)).ok_or_else(wrong)?;
        let set = String::from_utf8(set.to_vec()).map_err(|_| wrong())?;
        Document::decode(key, document).map(|document| Self(document, Some(set)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BindingId;

    #[test]
    fn the_set_is_kept_beside_the_document() {
        for packed in [true, false] {
            let document = Document::new(BindingId([3; 16]), json!({"supi": "imsi-1"}), packed);
            for set in [None, Some("set1.nefset.5gc.mnc001.mcc001".to_owned())] {
                let one = Subscription(document.clone(), set);
                let mut stored = Vec::new();
                one.encode(&mut stored);
                assert_eq!(Subscription::decode(&[3; 16], &stored), Ok(one));
            }
        }
        assert!(Subscription::decode(&[3; 16], &[WITH_SET, 9, b'a']).is_err());
    }
}
