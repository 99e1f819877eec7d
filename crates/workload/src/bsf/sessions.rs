//! PDU sessions and their bindings: everything follows from a number.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use bytes::Bytes;
use rand::Rng;
use rand::rngs::SmallRng;

use super::COLLECTION;
use crate::rx::{Ue, Ues};
use simulators::network::population::instance_id;

/// PCFs that register bindings.
pub const PCFS: u32 = 16;
/// Their realm; they are `pcf000.pcf.example` and so on.
pub const PCF_REALM: &str = "pcf.example";
/// Data networks of the sessions of one subscriber.
const DNNS: [&str; 2] = ["ims", "internet"];
/// IMSI of the first subscriber, in MCC 001 and MNC 01.
const FIRST_IMSI: u64 = 1_010_000_000_000;
/// Address of the first session.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);

/// PDU sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sessions {
    per_subscriber: u32,
    /// Identities of the PCFs.
    pcfs: Vec<String>,
}

/// An existing binding, with the id that the BSF gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The session.
    pub number: u32,
    /// `bindingId`.
    pub id: Box<str>,
}

impl Sessions {
    /// Sessions of subscribers, each with this number of sessions.
    #[must_use]
    pub fn new(per_subscriber: u32) -> Self {
        Self {
            per_subscriber: per_subscriber.clamp(1, DNNS.len() as u32),
            pcfs: (0..PCFS).map(|number| instance_id(0xb5, number)).collect(),
        }
    }

    fn subscriber(&self, number: u32) -> u64 {
        u64::from(number / self.per_subscriber)
    }

    fn dnn(&self, number: u32) -> &'static str {
        DNNS[(number % self.per_subscriber) as usize % DNNS.len()]
    }

    /// The subscriber of the session.
    #[must_use]
    pub fn supi(&self, number: u32) -> String {
        format!("imsi-{:015}", FIRST_IMSI + self.subscriber(number))
    }

    /// The host of the PCF that has the session.
    #[must_use]
    pub fn pcf(&self, number: u32) -> String {
        format!("pcf{:03}.{PCF_REALM}", number % PCFS)
    }

    /// NF instance ids of the PCFs, in the order of their numbers.
    #[must_use]
    pub fn pcf_ids(&self) -> &[String] {
        &self.pcfs
    }

    /// Name and value of the session's address. Sessions have an IPv4 address or an IPv6 prefix, half of the
    /// subscribers the one, half the other.
    #[must_use]
    pub fn address(&self, number: u32) -> (&'static str, String) {
        if self.subscriber(number).is_multiple_of(2) {
            ("ipv4Addr", ipv4(number).to_string())
        } else {
            ("ipv6Prefix", format!("{}/64", ipv6(number)))
        }
    }

    /// The AVPs of the session's UE in an AF's request.
    #[must_use]
    pub fn ue(&self, number: u32) -> Ue {
        let subscriber = self.subscriber(number);
        let has_ipv4 = subscriber.is_multiple_of(2);
        Ue {
            ipv4: has_ipv4.then(|| ipv4(number)),
            ip_domain: None,
            ipv6: (!has_ipv4).then(|| (ipv6(number), 64)),
            dnn: Some(self.dnn(number).to_owned()),
            imsi: Some(FIRST_IMSI + subscriber),
        }
    }

    /// The body of a registration (`PcfBinding`, TS 29.521 §5.6.2.2).
    #[must_use]
    pub fn body(&self, number: u32) -> Bytes {
        let (kind, address) = self.address(number);
        let host = self.pcf(number);
        let body = format!(
            concat!(
                r#"{{"supi":"{supi}","gpsi":"msisdn-{msisdn:012}","{kind}":"{address}","dnn":"{dnn}","#,
                r#""pcfFqdn":"{host}","pcfIpEndPoints":[{{"ipv4Address":"127.0.0.1","transport":"TCP","port":8040}}],"#,
                r#""pcfDiamHost":"{host}","pcfDiamRealm":"pcf.example","snssai":{{"sst":1,"sd":"000001"}},"#,
                r#""pcfId":"{pcf}"}}"#
            ),
            supi = self.supi(number),
            msisdn = 491_500_000_000 + self.subscriber(number),
            kind = kind,
            address = address,
            dnn = self.dnn(number),
            host = host,
            pcf = self.pcfs[(number % PCFS) as usize],
        );
        body.into()
    }

    /// The identity of a binding that is written into the store before the load.
    #[must_use]
    pub fn id(number: u32) -> uuid::Uuid {
        let (high, low) = (mix(u64::from(number)), mix(u64::from(number) ^ 0x5bd1_e995));
        uuid::Builder::from_random_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes()).into_uuid()
    }

    /// Path and query that find the binding by the address of the UE.
    #[must_use]
    pub fn query(&self, number: u32) -> String {
        let (kind, address) = self.address(number);
        let address = address.replace(':', "%3A").replace('/', "%2F");
        format!("{COLLECTION}?{kind}={address}&dnn={}", self.dnn(number))
    }
}

/// The finaliser of splitmix64: numbers in a row become scattered ones, as identities are.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn ipv4(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_ADDRESS.to_bits().wrapping_add(number))
}

fn ipv6(number: u32) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, (number >> 16) as u16, number as u16, 0, 0, 0, 0)
}

/// Numbers of sessions at even distances: millions of them need no list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// The first.
    pub first: u32,
    /// From one to the next.
    pub step: u32,
    /// How many.
    pub count: u32,
}

impl Numbers {
    /// The one at this position; any number for a position beyond the last.
    #[must_use]
    pub fn at(&self, position: u32) -> u32 {
        self.first.wrapping_add(self.step.wrapping_mul(position))
    }

    /// All of them in order.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..self.count).map(move |position| self.at(position))
    }

    /// Removes and returns the first.
    pub fn pop(&mut self) -> Option<u32> {
        self.count = self.count.checked_sub(1)?;
        let first = self.first;
        self.first = self.at(1);
        Some(first)
    }

    /// Those from this position on.
    #[must_use]
    pub fn from(&self, position: u32) -> Self {
        let position = position.min(self.count);
        Self {
            first: self.at(position),
            step: self.step,
            count: self.count - position,
        }
    }

    /// Those before this position.
    #[must_use]
    pub fn to(&self, position: u32) -> Self {
        Self {
            count: self.count.min(position),
            ..*self
        }
    }

    /// The share of one of several threads that take turns.
    #[must_use]
    pub fn share(&self, of: u32, among: u32) -> Self {
        let among = among.max(1);
        Self {
            first: self.at(of),
            step: self.step.wrapping_mul(among),
            count: (self.count + among - 1).saturating_sub(of) / among,
        }
    }
}

/// Sessions whose bindings exist for the whole run, for the sessions of AFs.
#[derive(Clone, Debug)]
pub struct Standing {
    /// All sessions.
    pub sessions: Arc<Sessions>,
    /// Their numbers.
    pub numbers: Numbers,
}

impl Ues for Standing {
    fn draw(&mut self, random: &mut SmallRng) -> Option<Ue> {
        let Numbers { count, .. } = self.numbers;
        (count > 0).then(|| self.sessions.ue(self.numbers.at(random.random_range(0..count))))
    }
}
