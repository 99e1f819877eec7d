//! Subscribers that a router resolves one by one: their addresses, and the HSS of each.

use std::fmt::Write as _;
use std::io;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Validate};

use crate::subscribers::{FIRST_SUBSCRIBER, SubscriberRanges};

/// The MSISDN of the first subscriber.
pub const FIRST_MSISDN: u64 = 49_151_000_000_000;
/// Domain of public identities.
pub const DOMAIN: &str = "ims.mnc001.mcc001.3gppnetwork.org";
/// Numbers of a block.
const BLOCK: u64 = 65_536;
/// Subscribers that may be provisioned while a run goes on.
pub const MOST_PROVISIONED: u64 = 1_000_000;

/// Subscribers of full address resolution, and what requests name them by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Resolution {
    /// Subscribers, each with an IMSI, an MSISDN and a public identity; neighbours are at different HSSs.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub subscribers: u64,
    /// Share of ULRs that name a subscriber by its IMSI.
    pub by_imsi: Percent,
    /// Share of LIRs that name a subscriber by its MSISDN, as a tel URI.
    pub by_msisdn: Percent,
    /// Share of LIRs that name a subscriber by a SIP URI.
    pub by_name: Percent,
    /// Share of ULRs that name their HSS, which the router relays without a look-up.
    pub relayed: Percent,
    /// Addresses that are provisioned per second, three for each new subscriber, which requests name from then on: at the
    /// admin endpoint of the router, or at the subscriber database server.
    #[schemars(range(max = 10_000))]
    pub writes: u32,
    /// Database processors that the router asks, and that follow one subscriber database server; 0: the router has the subscribers
    /// itself.
    #[schemars(range(max = 32))]
    pub processors: u16,
}

impl Default for Resolution {
    fn default() -> Self {
        Self {
            subscribers: 1_000_000,
            by_imsi: Percent::new(100.0),
            by_msisdn: Percent::new(0.0),
            by_name: Percent::new(0.0),
            relayed: Percent::new(0.0),
            writes: 0,
            processors: 0,
        }
    }
}

/// What a subscriber is named by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address {
    /// Its IMSI.
    Imsi,
    /// Its MSISDN.
    Msisdn,
    /// Its public identity, a SIP URI.
    Name,
}

impl Address {
    /// All, in the order in which files of numbers have them.
    pub const ALL: [Self; 3] = [Self::Imsi, Self::Msisdn, Self::Name];

    /// Its word in the files of a subscriber database server.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Imsi => "imsi",
            Self::Msisdn => "msisdn",
            Self::Name => "name",
        }
    }

    /// Its word in the router's files.
    #[must_use]
    pub const fn entity(self) -> &'static str {
        match self {
            Self::Imsi => "imsi",
            Self::Msisdn => "msisdn",
            Self::Name => "impu",
        }
    }

    /// The number that stands for the first subscriber in such an address.
    #[must_use]
    pub const fn first(self) -> u64 {
        match self {
            Self::Imsi => FIRST_SUBSCRIBER,
            Self::Msisdn => FIRST_MSISDN,
            Self::Name => 0,
        }
    }

    /// The address of a subscriber, as the router's files have it.
    #[must_use]
    pub fn of(self, subscriber: u64) -> String {
        let number = self.first() + subscriber;
        match self {
            Self::Imsi => format!("{number:015}"),
            Self::Msisdn => number.to_string(),
            Self::Name => format!("sip:sub{number:012}@{DOMAIN}"),
        }
    }
}

/// The IMSI of the subscriber with this public identity.
#[must_use]
pub fn imsi_of(identity: &str) -> Option<u64> {
    let (digits, first) = match identity.strip_prefix("tel:+") {
        Some(digits) => (digits, FIRST_MSISDN),
        None => (identity.strip_prefix("sip:sub")?.split_once('@')?.0, 0),
    };
    let subscriber = digits.parse::<u64>().ok()?.checked_sub(first)?;
    FIRST_SUBSCRIBER.checked_add(subscriber)
}

impl Resolution {
    /// The HSS of each subscriber, also of those that are provisioned later.
    #[must_use]
    pub fn homes(&self, hss: u16) -> SubscriberRanges {
        let provisioned = if self.writes > 0 { MOST_PROVISIONED } else { 0 };
        SubscriberRanges {
            first: FIRST_SUBSCRIBER,
            size: 1,
            count: self.subscribers + provisioned,
            nodes: u64::from(hss),
        }
    }

    /// Whether requests name subscribers by their public identities.
    #[must_use]
    pub fn has_identities(&self) -> bool {
        self.by_msisdn.percent() + self.by_name.percent() > 0.0
    }

    /// The subscribers whose IMSIs are in a block of numbers that no subscriber is added to: blocks have 65,536 numbers from a
    /// multiple of it on.
    #[must_use]
    pub fn whole_block(&self) -> Range<u64> {
        let first_after = (FIRST_SUBSCRIBER + self.subscribers) / BLOCK * BLOCK;
        let after = first_after.saturating_sub(FIRST_SUBSCRIBER);
        let of_block = (FIRST_SUBSCRIBER + after).saturating_sub(BLOCK);
        of_block.saturating_sub(FIRST_SUBSCRIBER)..after
    }

    /// Writes these addresses of all subscribers, each by the `word` of its kind; `home` names the destination of one.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(
        &self,
        addresses: &[Address],
        word: fn(Address) -> &'static str,
        home: impl Fn(u64) -> String,
        out: &mut impl io::Write,
    ) -> io::Result<()> {
        let mut line = String::new();
        for address in addresses {
            for subscriber in 0..self.subscribers {
                line.clear();
                // Writing to a String cannot fail.
                let _ = writeln!(
                    line,
                    "{},{},{}",
                    word(*address),
                    address.of(subscriber),
                    home(subscriber)
                );
                out.write_all(line.as_bytes())?;
            }
        }
        out.flush()
    }
}

impl Validate for Resolution {
    fn validate(&self, faults: &mut Faults) {
        let shares = [self.by_imsi, self.by_msisdn, self.by_name, self.relayed];
        let sum: f64 = shares.iter().map(|share| share.percent()).sum();
        if (sum - 100.0).abs() > 0.01 {
            faults
                .at("byImsi")
                .say(format!("adds up to {sum}% with the other shares"), "100%");
        }
        if !(1..=100_000_000).contains(&self.subscribers) {
            faults.at("subscribers").say(
                format!("{} have no addresses of their own", self.subscribers),
                "1 to 100000000",
            );
        }
        if self.processors > 32 {
            faults
                .at("processors")
                .say("are more than a router asks", "at most 32");
        }
        if self.writes > 10_000 {
            faults
                .at("writes")
                .say("are more than one endpoint takes", "at most 10000 a second");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_block_has_no_subscriber_that_is_added_later() {
        for subscribers in [3_073, 20_000, 1_000_000] {
            let resolution = Resolution {
                subscribers,
                ..Resolution::default()
            };
            let range = resolution.whole_block();
            let block = |subscriber: u64| (FIRST_SUBSCRIBER + subscriber) / BLOCK;
            assert!(!range.is_empty() && range.end <= subscribers, "{range:?}");
            assert_eq!(block(range.start), block(range.end - 1));
            assert!(range.start == 0 || block(range.start - 1) < block(range.start));
            assert_eq!(block(range.end), block(range.end - 1) + 1);
            assert!(block(subscribers) > block(range.start));
        }
    }

    #[test]
    fn an_address_leads_to_the_hss_that_it_is_written_with() {
        let resolution = Resolution {
            subscribers: 3,
            ..Resolution::default()
        };
        let mut text = Vec::new();
        let home = |subscriber: u64| format!("hss{:03}", subscriber % 2);
        resolution
            .write(&Address::ALL, Address::entity, home, &mut text)
            .unwrap();
        let text = String::from_utf8(text).unwrap();
        let homes = resolution.homes(2);
        let mut count = 0;
        for line in text.lines() {
            let mut fields = line.split(',');
            let (entity, value) = (fields.next().unwrap(), fields.next().unwrap());
            let imsi = match entity {
                "imsi" => value.parse().ok(),
                "msisdn" => imsi_of(&format!("tel:+{value}")),
                _ => imsi_of(value),
            };
            let node = homes.node_of(imsi.unwrap()).unwrap();
            assert_eq!(fields.next().unwrap(), format!("hss{node:03}"), "{line}");
            count += 1;
        }
        assert_eq!(count, 9);
        for strange in [
            "",
            "tel:+1",
            "tel:49151000000000",
            "sip:alice@example",
            "sip:sub@x",
        ] {
            assert_eq!(imsi_of(strange), None, "{strange}");
        }
        assert_eq!(homes.node_of(FIRST_SUBSCRIBER + 3), None);
    }
}
