//! Topology hiding: what leaves for a foreign network names no host of ours, and what comes back finds them.
//!
//! | | towards an untrusted peer | from an untrusted peer |
//! |---|---|---|
//! | request | [`Hiding::request_out`] | [`Hiding::request_in`] |
//! | answer | [`Hiding::answer_out`] | [`Hiding::answer_in`] |

use std::borrow::Cow;

use ahash::{AHashMap, AHashSet};
use bytes::Bytes;
use diameter::proto::{Avp, Message, MessageMut, Routing, encode_one, known};

use crate::config::TopologyHiding;
use crate::edit::{Edit, edit};
use crate::routing::find_lower;

type Names = AHashMap<Box<[u8]>, Box<[u8]>>;

/// The names, ready for lookup.
#[derive(Debug)]
pub(crate) struct Hiding {
    realms: Vec<Box<[u8]>>,
    /// The Route-Record that stands for ours, encoded; empty: paths are not hidden.
    path: Bytes,
    path_name: Box<[u8]>,
    outside: Names,
    inside: Names,
    hss: AHashMap<Box<[u8]>, ()>,
    hss_pseudo: Box<[u8]>,
}

fn lower(name: &str) -> Box<[u8]> {
    name.to_ascii_lowercase().into_bytes().into()
}

impl Hiding {
    /// None when nothing is to be hidden.
    #[must_use]
    pub(crate) fn new(config: &TopologyHiding) -> Option<Self> {
        if config.path_pseudo_host.is_empty() && config.hosts.is_empty() && config.hss_hosts.is_empty() {
            return None;
        }
        let path = match config.path_pseudo_host.as_str() {
            "" => Bytes::new(),
            name => encode_one(known::ROUTE_RECORD, name),
        };
        let given = |name: &str| name.as_bytes().into();
        let hosts = || config.hosts.iter();
        Some(Self {
            realms: config.realms.iter().map(|realm| lower(realm)).collect(),
            path,
            path_name: lower(&config.path_pseudo_host),
            outside: hosts()
                .map(|host| (lower(&host.actual), given(&host.pseudo)))
                .collect(),
            inside: hosts()
                .map(|host| (lower(&host.pseudo), given(&host.actual)))
                .collect(),
            hss: config
                .hss_hosts
                .iter()
                .map(|host| lower(host))
                .collect::<AHashSet<_>>()
                .into_iter()
                .map(|host| (host, ()))
                .collect(),
            hss_pseudo: given(&config.hss_pseudo_host),
        })
    }

    /// Whether that Route-Record is ours in disguise.
    #[must_use]
    pub(crate) fn is_own(&self, name: &[u8]) -> bool {
        !self.path_name.is_empty() && self.path_name.eq_ignore_ascii_case(name)
    }

    /// The name a host of ours has outside.
    fn pseudo(&self, host: &[u8]) -> Option<&[u8]> {
        find_lower(&self.outside, host)
            .map(|name| &**name)
            .or_else(|| find_lower(&self.hss, host).map(|()| &*self.hss_pseudo))
    }

    /// Whether a host belongs to the network that is hidden.
    fn is_ours(&self, host: &[u8]) -> bool {
        let below = |realm: &[u8]| match host.len().checked_sub(realm.len()) {
            Some(0) => host.eq_ignore_ascii_case(realm),
            Some(at) => host[at..].eq_ignore_ascii_case(realm) && host[at - 1] == b'.',
            None => false,
        };
        self.pseudo(host).is_some() || self.realms.iter().any(|realm| below(realm))
    }

    /// A Session-Id that begins with a host of ours, with its name outside; and the way back.
    fn session<'s>(id: &'s [u8], rename: impl Fn(&[u8]) -> Option<&'s [u8]>) -> Option<Vec<u8>> {
        let end = id.iter().position(|byte| *byte == b';')?;
        let (host, rest) = id.split_at(end);
        Some([rename(host)?, rest].concat())
    }

    /// A request of ours for a foreign network. `append` is the Route-Record it would get. None when nothing
    /// of it needs hiding, or it would get too long; it then goes as it is.
    #[must_use]
    pub(crate) fn request_out<B: AsRef<[u8]>>(
        &self,
        message: &Message<B>,
        append: &[u8],
    ) -> Option<MessageMut> {
        let origin = message.get(known::ORIGIN_HOST).ok()??;
        let realm = message
            .get(known::ORIGIN_REALM)
            .ok()
            .flatten()
            .unwrap_or_default();
        if !self.is_ours(origin.as_bytes()) && !self.is_ours(realm.as_bytes()) {
            return None;
        }
        let hide_path = !self.path.is_empty();
        let decide = |avp: &Avp<'_>| -> Edit<'_> {
            if avp.is(known::ROUTE_RECORD) && hide_path && self.is_ours(avp.data) {
                return Edit::Drop;
            }
            self.rename(avp)
        };
        let append = if hide_path { &self.path } else { append };
        edit(message, decide, append).ok()
    }

    /// Names of ours in the AVPs that may hold them. Hosts of the hidden realms that have no name outside go, or get
    /// that of the path where the AVP has to be there.
    fn rename(&self, avp: &Avp<'_>) -> Edit<'_> {
        if avp.is(known::REDIRECT_HOST) {
            return self.redirection(avp.data);
        }
        let is_name =
            avp.is(known::ORIGIN_HOST) || avp.is(known::ROUTE_RECORD) || avp.is(known::ERROR_REPORTING_HOST);
        if is_name && let Some(name) = self.pseudo(avp.data) {
            return Edit::Data(Cow::Borrowed(name));
        }
        if avp.is(known::SESSION_ID)
            && let Some(end) = avp.data.iter().position(|byte| *byte == b';')
            && let Some(name) = self.pseudo(&avp.data[..end])
        {
            return Edit::Data(Cow::Owned([name, &avp.data[end..]].concat()));
        }
        let is_path = avp.is(known::ROUTE_RECORD) || avp.is(known::ERROR_REPORTING_HOST);
        if is_path && !self.path.is_empty() && self.is_ours(avp.data) && !self.is_own(avp.data) {
            return Edit::Drop;
        }
        Edit::Keep
    }

    /// A Redirect-Host, `aaa://host:port;…`: a host of ours that has no name outside is reached at the name of the path.
    fn redirection(&self, uri: &[u8]) -> Edit<'_> {
        let Some(begin) = uri.windows(3).position(|part| part == b"://").map(|at| at + 3) else {
            return Edit::Keep;
        };
        let rest = uri.get(begin..).unwrap_or_default();
        let end = rest
            .iter()
            .position(|byte| matches!(byte, b':' | b';'))
            .unwrap_or(rest.len());
        let (host, tail) = rest.split_at(end);
        let name = match self.pseudo(host) {
            Some(name) => name,
            None if self.is_ours(host) && !self.path_name.is_empty() => &self.path_name,
            None => return Edit::Keep,
        };
        let scheme = uri.get(..begin).unwrap_or_default();
        Edit::Data(Cow::Owned([scheme, name, tail].concat()))
    }

    /// Whether a foreign network may not know that name: a host of ours has another one outside.
    #[must_use]
    pub(crate) fn is_hidden(&self, host: &[u8]) -> bool {
        self.pseudo(host)
            .is_some_and(|name| !name.eq_ignore_ascii_case(host))
    }

    /// A request of a foreign network, for hosts it knows by other names. None when it names none of them.
    #[must_use]
    pub(crate) fn request_in(&self, message: &MessageMut, routing: &Routing<'_>) -> Option<MessageMut> {
        let actual = |name: &[u8]| find_lower(&self.inside, name).map(|name| &**name);
        let is_hss = |name: &[u8]| !self.hss_pseudo.is_empty() && self.hss_pseudo.eq_ignore_ascii_case(name);
        let host = routing.destination_host;
        let session = routing.session_id.and_then(|id| Self::session(id, actual));
        if session.is_none() && !host.is_some_and(|host| is_hss(host) || actual(host).is_some()) {
            return None;
        }
        let decide = |avp: &Avp<'_>| {
            if avp.is(known::DESTINATION_HOST) {
                if is_hss(avp.data) {
                    return Edit::Drop;
                }
                if let Some(name) = actual(avp.data) {
                    return Edit::Data(Cow::Borrowed(name));
                }
            }
            match &session {
                Some(session) if avp.is(known::SESSION_ID) => Edit::Data(Cow::Borrowed(session)),
                _ => Edit::Keep,
            }
        };
        edit(message, decide, &[]).ok()
    }

    /// An answer of ours for a foreign network. None when it names no host of ours.
    #[must_use]
    pub(crate) fn answer_out(&self, message: &MessageMut) -> Option<MessageMut> {
        let names = message
            .avps()
            .map_while(Result::ok)
            .any(|avp| !matches!(self.rename(&avp), Edit::Keep));
        names
            .then(|| edit(message, |avp| self.rename(avp), &[]).ok())
            .flatten()
    }

    /// The answer to a request that was hidden: its Session-Id is the original's again.
    #[must_use]
    pub(crate) fn answer_in<B: AsRef<[u8]>>(
        message: &MessageMut,
        original: &Message<B>,
    ) -> Option<MessageMut> {
        let session = original.avps().find(known::SESSION_ID).ok()??.data;
        let decide = |avp: &Avp<'_>| match avp.is(known::SESSION_ID) {
            true => Edit::Data(Cow::Borrowed(session)),
            false => Edit::Keep,
        };
        edit(message, decide, &[]).ok()
    }
}
