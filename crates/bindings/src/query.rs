//! Which binding answers a question (TS 29.521 §4.2.4, TS 29.213 for Rx).

use std::net::Ipv4Addr;

use model::{Ipv6Prefix, Snssai};
use serde_json::Value;

use super::{PcfBinding, Place};

/// What is known of the session that is asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// IPv4 address of the UE.
    pub ipv4: Option<Ipv4Addr>,
    /// Domain of the IPv4 address.
    pub ip_domain: Option<String>,
    /// IPv6 address (a prefix of 128 bits) or prefix of the UE.
    pub ipv6: Option<Ipv6Prefix>,
    /// MAC address of the UE.
    pub mac: Option<[u8; 6]>,
    /// SUPI.
    pub supi: Option<String>,
    /// GPSI.
    pub gpsi: Option<String>,
    /// DNN.
    pub dnn: Option<String>,
    /// Slice.
    pub snssai: Option<Snssai>,
}

impl Query {
    /// The addresses to look up, in this order; none when only the subscriber is known.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let ipv4 = self.ipv4.map(|address| Place::V4(address, 32));
        ipv4.into_iter()
            .chain(self.ipv6.map(Place::V6))
            .chain(self.mac.map(Place::Mac))
    }

    /// Whether there is something to look up at all.
    #[must_use]
    pub fn is_searchable(&self) -> bool {
        self.places().next().is_some() || self.supi.is_some() || self.gpsi.is_some()
    }

    /// Whether a binding has everything that is known, the addresses apart from those it was found by.
    #[must_use]
    pub fn matches(&self, binding: &PcfBinding) -> bool {
        let document = &binding.0;
        let same = |wanted: &Option<String>, name: &str| {
            wanted
                .as_deref()
                .is_none_or(|wanted| document.text_of(name) == Some(wanted))
        };
        same(&self.supi, "supi")
            && same(&self.gpsi, "gpsi")
            && same(&self.ip_domain, "ipDomain")
            && self
                .dnn
                .as_deref()
                .is_none_or(|dnn| document.text_of("dnn").is_some_and(|own| same_dnn(own, dnn)))
            && self
                .snssai
                .is_none_or(|slice| document.member("snssai").and_then(slice_of) == Some(slice))
            && self.holds_addresses(binding)
    }

    /// Several addresses may be asked for at once: all are the session's.
    fn holds_addresses(&self, binding: &PcfBinding) -> bool {
        let document = &binding.0;
        let ipv4 = self.ipv4.is_none_or(|address| {
            document.text_of("ipv4Addr").and_then(|text| text.parse().ok()) == Some(address)
                || binding.further().any(
                    |place| matches!(place, Place::V4(_, length) if Place::V4(address, 32).cut(length) == place),
                )
        });
        let ipv6 = self.ipv6.is_none_or(|wanted| {
            let own = document
                .text_of("ipv6Prefix")
                .and_then(|text| text.parse::<Ipv6Prefix>().ok());
            own.is_some_and(|own| own.covers(&wanted))
                || binding
                    .further()
                    .any(|place| matches!(place, Place::V6(prefix) if prefix.covers(&wanted)))
        });
        let mac = self.mac.is_none_or(|wanted| {
            document.text_of("macAddr48").and_then(Place::mac) == Some(Place::Mac(wanted))
                || binding.further().any(|place| place == Place::Mac(wanted))
        });
        ipv4 && ipv6 && mac
    }
}

impl PcfBinding {
    /// Whether two sessions have the same DNN and slice, however these are written.
    #[must_use]
    pub fn same_pair(&self, other: &PcfBinding) -> bool {
        let same_dnns = match (self.0.text_of("dnn"), other.0.text_of("dnn")) {
            (Some(own), Some(other)) => same_dnn(own, other),
            (own, other) => own == other,
        };
        let slice = |binding: &PcfBinding| binding.0.member("snssai").and_then(slice_of);
        same_dnns && slice(self) == slice(other)
    }
}

/// A slice as JSON has it.
pub(super) fn slice_of(value: &Value) -> Option<Snssai> {
    serde_json::from_value(value.clone()).ok()
}

/// DNNs are compared without regard to case; one without its operator identifier stands for any (TS 23.003
/// §9A).
pub(super) fn same_dnn(own: &str, wanted: &str) -> bool {
    let network = |dnn: &str| {
        let lower = dnn.to_ascii_lowercase();
        match lower.find(".mnc") {
            Some(at) if lower.ends_with(".gprs") => (lower[..at].to_owned(), true),
            _ => (lower, false),
        }
    };
    own.eq_ignore_ascii_case(wanted) || {
        let ((own_network, own_full), (wanted_network, wanted_full)) = (network(own), network(wanted));
        own_network == wanted_network && own_full != wanted_full
    }
}

/// What a question leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Selection<'a> {
    /// No binding.
    None,
    /// This one.
    One(&'a PcfBinding),
    /// Several sessions fit, and they are not at one PCF: the question says too little.
    Ambiguous,
}

/// Chooses among bindings that match, the most recent first.
///
/// An address belongs to one session at a time: of two bindings with the same address in the same domain and
/// slice, the later is the session and the earlier was left behind. Sessions that differ may still be at one
/// PCF; the latest stands for all of them then.
#[must_use]
pub fn select<'a>(matching: &'a [PcfBinding], query: &Query) -> Selection<'a> {
    let Some((first, others)) = matching.split_first() else {
        return Selection::None;
    };
    let by_address = query.places().next().is_some();
    let told_apart = |other: &PcfBinding| {
        let differs = |name: &str| first.0.member(name) != other.0.member(name);
        if by_address {
            differs("ipDomain") || !first.same_pair(other)
        } else {
            !first.same_pcf(other)
        }
    };
    if others.iter().any(told_apart) {
        Selection::Ambiguous
    } else {
        Selection::One(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BindingId, Document};
    use serde_json::json;

    fn binding(more: &Value) -> PcfBinding {
        let mut value = json!({"supi": "imsi-1", "ipv4Addr": "10.0.0.1", "dnn": "internet", "snssai": {"sst": 1, "sd": "00000A"},
            "pcfFqdn": "pcf1.example.org"});
        json_patch::merge(&mut value, more);
        PcfBinding(Document::new(BindingId::random(), value, true))
    }

    #[test]
    fn everything_known_has_to_match() {
        let held = binding(
            &json!({"ipv6Prefix": "2001:db8::/64", "addMacAddrs": ["00-1b-21-3c-9d-f0"],
            "ipv4FrameRouteList": ["192.0.2.0/24"]}),
        );
        let ok = |change: fn(&mut Query)| {
            let mut query = Query::default();
            change(&mut query);
            query.matches(&held)
        };
        assert!(ok(|q| q.supi = Some("imsi-1".into())));
        assert!(!ok(|q| q.supi = Some("imsi-2".into())));
        assert!(!ok(|q| q.gpsi = Some("msisdn-1".into())));
        assert!(ok(|q| q.snssai = Some("1-00000a".parse().unwrap())));
        assert!(!ok(|q| q.snssai = Some("1".parse().unwrap())));
        assert!(ok(|q| q.dnn = Some("Internet.mnc001.mcc001.gprs".into())));
        assert!(!ok(|q| q.dnn = Some("ims".into())));
        assert!(ok(|q| q.ipv6 = "2001:db8::5/128".parse().ok()));
        assert!(!ok(|q| q.ipv6 = "2001:db8:0:1::5/128".parse().ok()));
        assert!(ok(|q| q.ipv4 = "192.0.2.77".parse().ok()));
        assert!(ok(|q| q.mac = Some([0, 0x1b, 0x21, 0x3c, 0x9d, 0xf0])));
        assert!(!ok(|q| q.ip_domain = Some("a".into())));
    }

    #[test]
    fn the_most_recent_or_ambiguous() {
        let by_address = Query {
            ipv4: "10.0.0.1".parse().ok(),
            ..Query::default()
        };
        let by_supi = Query {
            supi: Some("imsi-1".into()),
            ..Query::default()
        };
        let new = binding(&json!({"pcfFqdn": "pcf2.example.org"}));
        let old = binding(&json!({}));
        let elsewhere = binding(&json!({"ipDomain": "b"}));
        assert_eq!(select(&[], &by_supi), Selection::None);
        // The same slice and DNN in other words.
        let live =
            binding(&json!({"snssai": {"sst": 1, "sd": "00000a"}, "dnn": "Internet.mnc001.mcc001.gprs"}));
        assert_eq!(
            select(&[live.clone(), old.clone()], &by_address),
            Selection::One(&live)
        );
        assert_eq!(
            select(&[new.clone(), old.clone()], &by_address),
            Selection::One(&new)
        );
        assert_eq!(select(&[new, old.clone()], &by_supi), Selection::Ambiguous);
        assert_eq!(
            select(&[old.clone(), elsewhere.clone()], &by_address),
            Selection::Ambiguous
        );
        assert_eq!(select(&[old.clone(), elsewhere], &by_supi), Selection::One(&old));
    }
}
