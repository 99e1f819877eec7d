//! Subscriptions per subscriber: bounded, so that one subscriber cannot use up `subscriptions.max`.

use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};

use ahash::AHashMap;
use model::NfInstanceId;

use crate::config::Subscriptions;

/// Owner of a subscription. The sender may claim any instance, so the instance counts together with the source address: a
/// sender that claims another's identity does not use up its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// `reqNfInstanceId`.
    pub instance: Option<NfInstanceId>,
    /// The network of its address.
    pub source: Option<IpAddr>,
}

/// The address that counts as one source: of IPv6 its /64, because a host may use any address of it.
#[must_use]
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 => v4,
    }
}

/// Subscriptions by owner and by source.
#[derive(Debug, Default)]
pub struct Shares {
    owners: AHashMap<Owner, usize>,
    sources: AHashMap<IpAddr, usize>,
}

impl Shares {
    /// Adds a subscription, if the share of its owner is not used up.
    ///
    /// # Errors
    /// The setting whose limit is reached.
    pub fn take(&mut self, owner: &Owner, settings: &Subscriptions) -> Result<(), &'static str> {
        if count(&self.owners, owner) >= settings.max_per_subscriber {
            return Err("the subscriber has as many subscriptions as subscriptions.maxPerSubscriber allows");
        }
        if owner
            .source
            .is_some_and(|source| count(&self.sources, &source) >= settings.max_per_source)
        {
            return Err("this address has as many subscriptions as subscriptions.maxPerSource allows");
        }
        self.add(owner);
        Ok(())
    }

    /// Adds an existing subscription.
    pub fn add(&mut self, owner: &Owner) {
        *self.owners.entry(*owner).or_default() += 1;
        if let Some(source) = owner.source {
            *self.sources.entry(source).or_default() += 1;
        }
    }

    /// Removes a subscription.
    pub fn give_back(&mut self, owner: &Owner) {
        less(&mut self.owners, owner);
        if let Some(source) = &owner.source {
            less(&mut self.sources, source);
        }
    }
}

fn count<K: Eq + Hash>(counts: &AHashMap<K, usize>, key: &K) -> usize {
    counts.get(key).copied().unwrap_or_default()
}

fn less<K: Eq + Hash>(counts: &mut AHashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(instance: Option<u128>, source: &str) -> Owner {
        Owner {
            instance: instance.map(|n| NfInstanceId(uuid::Uuid::from_u128(n))),
            source: Some(network_of(source.parse().unwrap())),
        }
    }

    #[test]
    fn shares_are_of_a_subscriber_and_of_a_source() {
        let settings = Subscriptions {
            max_per_subscriber: 2,
            max_per_source: 3,
            ..Subscriptions::default()
        };
        let mut shares = Shares::default();
        let one = owner(Some(1), "10.0.0.1");
        assert!(shares.take(&one, &settings).is_ok() && shares.take(&one, &settings).is_ok());
        assert!(
            shares
                .take(&one, &settings)
                .unwrap_err()
                .contains("maxPerSubscriber")
        );
        assert!(
            shares.take(&owner(Some(1), "10.0.0.2"), &settings).is_ok(),
            "the same name from elsewhere"
        );
        assert!(shares.take(&owner(None, "10.0.0.1"), &settings).is_ok());
        assert!(
            shares
                .take(&owner(Some(3), "10.0.0.1"), &settings)
                .unwrap_err()
                .contains("maxPerSource")
        );
        shares.give_back(&one);
        assert!(shares.take(&owner(Some(3), "10.0.0.1"), &settings).is_ok());
        for gone in [
            one,
            owner(Some(1), "10.0.0.2"),
            owner(None, "10.0.0.1"),
            owner(Some(3), "10.0.0.1"),
        ] {
            shares.give_back(&gone);
        }
        assert!(shares.owners.is_empty() && shares.sources.is_empty());
        shares.give_back(&one);
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_source() {
        assert_eq!(owner(None, "2001:db8::1"), owner(None, "2001:db8::ffff:1"));
        assert_ne!(owner(None, "2001:db8::1"), owner(None, "2001:db8:0:1::1"));
        assert_eq!(owner(None, "::ffff:10.0.0.1"), owner(None, "10.0.0.1"));
    }
}
