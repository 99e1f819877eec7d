//! The UEs that AFs have sessions for.

use std::net::{Ipv4Addr, Ipv6Addr};

use rand::Rng;
use rand::rngs::SmallRng;

/// What an AF says of a UE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ue {
    /// Its IPv4 address, …
    pub ipv4: Option<Ipv4Addr>,
    /// … which is unique within this domain (IP-Domain-Id).
    pub ip_domain: Option<String>,
    /// Its IPv6 prefix and the prefix's length.
    pub ipv6: Option<(Ipv6Addr, u8)>,
    /// The data network (Called-Station-Id).
    pub dnn: Option<String>,
    /// Its IMSI, as Subscription-Id.
    pub imsi: Option<u64>,
}

/// Where AFs get the next UE from.
pub trait Ues: Send {
    /// A UE for a new session; `None` when there is none now.
    fn draw(&mut self, random: &mut SmallRng) -> Option<Ue>;
}

/// UEs with consecutive addresses and IMSIs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UePool {
    /// How many.
    pub count: u32,
    /// Address of the first.
    pub ipv4: Ipv4Addr,
    /// Whether they are named by an IPv6 prefix (2001:db8:x:y::/64) instead.
    pub ipv6: bool,
    /// Data network of all.
    pub dnn: String,
    /// IMSI of the first.
    pub imsi: u64,
}

impl Default for UePool {
    fn default() -> Self {
        Self {
            count: 100_000,
            ipv4: Ipv4Addr::new(10, 0, 0, 1),
            ipv6: false,
            dnn: "ims".to_owned(),
            imsi: callmodel::subscribers::FIRST_SUBSCRIBER,
        }
    }
}

impl UePool {
    /// A UE by its number.
    #[must_use]
    pub fn ue(&self, number: u32) -> Ue {
        let (high, low) = ((number >> 16) as u16, number as u16);
        Ue {
            ipv4: (!self.ipv6).then(|| Ipv4Addr::from_bits(self.ipv4.to_bits().wrapping_add(number))),
            ip_domain: None,
            ipv6: self
                .ipv6
                .then(|| (Ipv6Addr::new(0x2001, 0xdb8, high, low, 0, 0, 0, 0), 64)),
            dnn: Some(self.dnn.clone()),
            imsi: Some(self.imsi + u64::from(number)),
        }
    }
}

impl Ues for UePool {
    fn draw(&mut self, random: &mut SmallRng) -> Option<Ue> {
        (self.count > 0).then(|| self.ue(random.random_range(0..self.count)))
    }
}
