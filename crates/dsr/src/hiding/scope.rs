//! Names that hosts and realms of ours have for clients of some networks, in some applications.

use ahash::AHashSet;
use diameter::proto::{Avp, Message, MessageMut, Routing, known};

use super::names::{Names, lower};
use super::{Renamed, change, is_below, is_of_sender, restored};
use crate::config::HidingScope;
use crate::edit::{Edit, edit};

/// A scope, ready for lookup.
#[derive(Debug)]
pub(crate) struct Scope {
    /// Empty: all.
    applications: AHashSet<u32>,
    /// Realms of clients; empty: all.
    networks: Vec<Box<[u8]>>,
    outside: Names,
    inside: Names,
}

impl Scope {
    pub(crate) fn new(config: &HidingScope) -> Self {
        let names = || config.names.iter();
        Self {
            applications: config.applications.iter().copied().collect(),
            networks: config.networks.iter().map(|realm| lower(realm)).collect(),
            outside: Names::new(names().map(|host| (&*host.actual, &*host.pseudo))),
            inside: Names::new(names().map(|host| (&*host.pseudo, &*host.actual))),
        }
    }

    fn has(&self, application: u32, realm: &[u8]) -> bool {
        let mut networks = self.networks.iter();
        (self.applications.is_empty() || self.applications.contains(&application))
            && (self.networks.is_empty() || networks.any(|network| is_below(realm, network)))
    }

    /// Whether a request comes from a client of its networks, and not from a host that is hidden.
    pub(crate) fn has_client(&self, application: u32, routing: &Routing<'_>) -> bool {
        self.has(application, routing.origin_realm.unwrap_or_default())
            && routing
                .origin_host
                .is_none_or(|host| self.outside.get(host).is_none())
    }

    /// Whether a request for this realm is for a client of its networks, from a host that is hidden.
    pub(crate) fn is_for_client(&self, application: u32, realm: &str, host: &str) -> bool {
        self.has(application, realm.as_bytes()) && self.outside.get(host.as_bytes()).is_some()
    }

    /// A request of a client, with the real names; none: it has no other. Its own names stay, and so does what agents before us
    /// get back as they have sent it.
    pub(crate) fn request_in(&self, message: &MessageMut) -> Renamed {
        change(message, |avp| match is_of_sender(avp) {
            true => Edit::Keep,
            false => self.inside.edit(avp),
        })
    }

    /// An answer for a client, without the real names; none: it has none.
    pub(crate) fn answer_out(&self, message: &MessageMut) -> Renamed {
        change(message, |avp| match avp.is(known::PROXY_INFO) {
            true => Edit::Keep,
            false => self.outside.edit(avp),
        })
    }

    /// A request for a client, without the real names. `append` is the Route-Record that it gets. A Proxy-Info that has one is left
    /// out: the answer gets it back.
    pub(crate) fn request_out<B: AsRef<[u8]>>(&self, message: &Message<B>, append: &[u8]) -> Renamed {
        let decide = |avp: &Avp<'_>| {
            if avp.is(known::DESTINATION_HOST) || avp.is(known::DESTINATION_REALM) {
                return Edit::Keep;
            }
            match self.outside.edit(avp) {
                Edit::Data(_) if avp.is(known::PROXY_INFO) => Edit::Drop,
                other => other,
            }
        };
        let renamed = self.outside.replace_in(append);
        edit(message, decide, renamed.as_deref().unwrap_or(append)).map(Some)
    }

    /// The answer of a client to a request that was hidden.
    pub(crate) fn answer_in<B: AsRef<[u8]>>(
        &self,
        message: &MessageMut,
        original: &Message<B>,
    ) -> Option<MessageMut> {
        restored(message, original, &self.inside)
    }
}
