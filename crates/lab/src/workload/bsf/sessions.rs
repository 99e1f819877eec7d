//! PDU sessions and their bindings: everything follows from a number.

use std::net::{Ipv4Addr, Ipv6Addr};

use bytes::Bytes;

use super::COLLECTION;
use crate::workload::nrf::population::instance_id;

/// PCFs that register bindings.
const PCFS: u32 = 16;
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
        format!("pcf{:03}.pcf.example", number % PCFS)
    }

    /// Name and value of the session's address. Sessions have an IPv4 address or an IPv6 prefix, half of the
    /// subscribers the one, half the other.
    #[must_use]
    pub fn address(&self, number: u32) -> (&'static str, String) {
        if self.subscriber(number).is_multiple_of(2) {
            let address = Ipv4Addr::from_bits(FIRST_ADDRESS.to_bits().wrapping_add(number));
            ("ipv4Addr", address.to_string())
        } else {
            let (high, low) = ((number >> 16) as u16, number as u16);
            let prefix = Ipv6Addr::new(0x2001, 0xdb8, high, low, 0, 0, 0, 0);
            ("ipv6Prefix", format!("{prefix}/64"))
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
