//! PDU sessions and their bindings: everything follows from a number.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use bytes::Bytes;
use rand::Rng;
use rand::rngs::SmallRng;

use super::COLLECTION;
use crate::workload::nrf::population::instance_id;
use crate::workload::rx::{Ue, Ues};

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

/// A binding that stands, as the BSF named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The session.
    pub number: u32,
    /// `bindingId`.
    pub id: Box<str>,
}

impl Sessions {
    /// Sessions of subscribers who have so many each.
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

    /// Who the session belongs to.
    #[must_use]
    pub fn supi(&self, number: u32) -> String {
        format!("imsi-{:015}", FIRST_IMSI + self.subscriber(number))
    }

    /// The host of the PCF that has the session.
    #[must_use]
    pub fn pcf(&self, number: u32) -> String {
        format!("pcf{:03}.{PCF_REALM}", number % PCFS)
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

    /// What an AF says of the session's UE.
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

    /// Path and query that find the binding by the address of the UE.
    #[must_use]
    pub fn query(&self, number: u32) -> String {
        let (kind, address) = self.address(number);
        let address = address.replace(':', "%3A").replace('/', "%2F");
        format!("{COLLECTION}?{kind}={address}&dnn={}", self.dnn(number))
    }
}

fn ipv4(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_ADDRESS.to_bits().wrapping_add(number))
}

fn ipv6(number: u32) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, (number >> 16) as u16, number as u16, 0, 0, 0, 0)
}

/// Sessions whose bindings stand for the whole run, for AFs to have sessions with.
#[derive(Clone, Debug)]
pub struct Standing {
    /// All sessions.
    pub sessions: Arc<Sessions>,
    /// Their numbers.
    pub numbers: Arc<[u32]>,
}

impl Ues for Standing {
    fn draw(&mut self, random: &mut SmallRng) -> Option<Ue> {
        if self.numbers.is_empty() {
            return None;
        }
        let drawn = random.random_range(0..self.numbers.len());
        self.numbers.get(drawn).map(|number| self.sessions.ue(*number))
    }
}
