//! What a worker has for data of subscribers: where they are queried, and what of them is cached.

pub(crate) mod amf;
mod cache;
pub(crate) mod chf;
mod discovery;
#[cfg(feature = "ldap")]
pub(crate) mod ldap;
#[cfg(not(feature = "ldap"))]
#[path = "no_ldap.rs"]
pub(crate) mod ldap;
pub(crate) mod producers;
mod term;
pub(crate) mod udr;
mod versions;

pub(crate) use cache::PolicyDataCache;
pub(crate) use term::{Term, now_ms, signed_now_ms};
pub(crate) use versions::{Expected, Versions};

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use ahash::AHashSet;
use nrf_client::Nrfs;

use self::discovery::Discovered;
use self::ldap::{Access, Directory};
use crate::association::AssociationId;
use crate::config::Config;
use crate::outbound::{CHF, UDR};
use producers::Producers;

/// The sources of a worker.
pub(crate) struct Sources {
    /// None: policies read no policy data.
    pub(crate) udrs: Option<Producers>,
    /// None: policies read no policy counters.
    pub(crate) chfs: Option<Producers>,
    pub(crate) cache: RefCell<PolicyDataCache>,
    /// AMFs of UEs whose policies are delivered, and BSFs.
    pub(crate) discovered: Discovered,
    /// None: policies read no profiles.
    pub(crate) directory: Option<Directory>,
    /// Cached profiles.
    pub(crate) profiles: RefCell<PolicyDataCache>,
    /// Ends of subscriptions in flight.
    pub(crate) ends: Cell<usize>,
    /// Associations whose subscriptions are being renewed.
    pub(crate) renewing: RefCell<AHashSet<AssociationId>>,
}

impl Sources {
    pub(crate) fn new(config: &Config, nrfs: &Rc<Nrfs>, directory: Option<&Access>) -> Self {
        let settings = &config.pds;
        let validity = settings.discovery_validity.duration();
        let producers = |enabled: bool, service, query, roots: &[String]| {
            enabled.then(|| Producers::new(service, query, roots, nrfs, validity))
        };
        let (udr, chf) = (&settings.udr, &settings.chf);
        Self {
            // TS 29.510 table 6.2.3.2.3.1-1: UDRs with policy data.
            udrs: producers(udr.enabled, UDR, ("udrInfo", "&data-set=POLICY"), &udr.api_roots),
            chfs: producers(chf.enabled, CHF, ("chfInfo", ""), &chf.api_roots),
            cache: RefCell::new(PolicyDataCache::new(&settings.cache)),
            discovered: Discovered::default(),
            directory: directory.map(|access| Directory::new(&settings.ldap, access.clone())),
            profiles: RefCell::new(PolicyDataCache::new(&settings.cache)),
            ends: Cell::new(0),
            renewing: RefCell::default(),
        }
    }

    /// Whether associations have subscriptions to data of their subscribers.
    pub(crate) fn are_subscribed(&self, config: &Config) -> bool {
        self.udrs.is_some() || self.chfs.is_some() || config.pds.sy.enabled
    }
}
