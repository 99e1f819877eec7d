//! Topology hiding: what leaves for a foreign network names no host of ours, and what comes back finds them. [`scope`] does so for
//! clients of some networks in some applications, [`Hiding`] for untrusted peers; both by [`names`].
//!
//! | | towards an untrusted peer | from an untrusted peer |
//! |---|---|---|
//! | request | [`Hiding::request_out`] | [`Hiding::request_in`] |
//! | answer | [`Hiding::answer_out`] | [`Hiding::answer_in`] |

mod names;
mod scope;

use std::borrow::Cow;

use bytes::Bytes;
use diameter::proto::{Avp, AvpWriter, BuildError, Message, MessageMut, Routing, encode_one, known};

use crate::config::TopologyHiding;
use crate::edit::{Edit, edit};

use names::{Names, lower};
use scope::Scope;

/// All that is hidden.
#[derive(Debug)]
pub(crate) struct Hidings {
    /// From untrusted peers.
    pub(crate) untrusted: Option<Hiding>,
    scopes: Vec<Scope>,
}

impl Hidings {
    #[must_use]
    pub(crate) fn new(config: &TopologyHiding) -> Self {
        Self {
            untrusted: Hiding::new(config),
            scopes: config.scopes.iter().map(Scope::new).collect(),
        }
    }

    /// The number of the scope of a request's client, from 1; 0: none.
    #[inline]
    pub(crate) fn of_client(&self, application: u32, routing: &Routing<'_>) -> u8 {
        let mut scopes = self.scopes.iter();
        let position = scopes.position(|scope| scope.has_client(application, routing));
        // There are at most 255.
        position.map_or(0, |position| position as u8 + 1)
    }

    /// The scope of this number.
    #[inline]
    pub(crate) fn scope(&self, number: u8) -> Option<&Scope> {
        self.scopes.get(usize::from(number).checked_sub(1)?)
    }

    /// The scope of the client for which a request is.
    #[inline]
    pub(crate) fn for_client<B: AsRef<[u8]>>(&self, message: &Message<B>) -> Option<&Scope> {
        if self.scopes.is_empty() {
            return None;
        }
        let text = |value| Result::ok(value).flatten().unwrap_or_default();
        let realm: &str = text(message.get(known::DESTINATION_REALM));
        let host: &str = text(message.get(known::ORIGIN_HOST));
        let is_it = |scope: &&Scope| scope.is_for_client(message.application(), realm, host);
        self.scopes.iter().find(is_it)
    }

    /// The answer to a request that was hidden.
    pub(crate) fn answer_in<B: AsRef<[u8]>>(
        &self,
        message: &MessageMut,
        original: &Message<B>,
    ) -> Option<MessageMut> {
        match (self.for_client(original), &self.untrusted) {
            (Some(scope), _) => scope.answer_in(message, original),
            (None, Some(hiding)) => restored(message, original, &hiding.inside),
            // A reload has ended the hiding meanwhile.
            (None, None) => restored(message, original, &Names::default()),
        }
    }
}

/// The answer to a request that was hidden: its Session-Id and its Proxy-Infos are the original's again, and what the answer says of the
/// request names what that had.
fn restored<B: AsRef<[u8]>>(
    message: &MessageMut,
    original: &Message<B>,
    inside: &Names,
) -> Option<MessageMut> {
    let session = original.avps().find(known::SESSION_ID).ok().flatten();
    let mut proxies = AvpWriter::with_capacity(0);
    for avp in original.avps().map_while(Result::ok) {
        if avp.is(known::PROXY_INFO) {
            proxies.copy(&avp);
        }
    }
    let decide = |avp: &Avp<'_>| {
        if avp.is(known::SESSION_ID) {
            return session
                .as_ref()
                .map_or(Edit::Keep, |id| Edit::Data(Cow::Borrowed(id.data)));
        }
        // RFC 6733 §6.2: an answer has those of the request, in their order.
        if avp.is(known::PROXY_INFO) {
            return Edit::Drop;
        }
        let is_about_request = avp.is(known::FAILED_AVP) || avp.is(known::ERROR_MESSAGE);
        if is_about_request {
            inside.edit(avp)
        } else {
            Edit::Keep
        }
    };
    edit(message, decide, proxies.as_bytes()).ok()
}

/// A message with other names; none: it has none of the names. An error: it would get longer than a message can be, and must not go as
/// it is.
pub(crate) type Renamed = Result<Option<MessageMut>, BuildError>;

/// The message with changes.
fn change<'e>(message: &MessageMut, decide: impl Fn(&Avp<'_>) -> Edit<'e>) -> Renamed {
    let mut avps = message.avps().map_while(Result::ok);
    let is_changed = avps.any(|avp| !matches!(decide(&avp), Edit::Keep));
    is_changed.then(|| edit(message, decide, &[])).transpose()
}

/// Whether an AVP of a request names its sender, or goes back to an agent before us as that has sent it.
fn is_of_sender(avp: &Avp<'_>) -> bool {
    avp.is(known::ORIGIN_HOST)
        || avp.is(known::ORIGIN_REALM)
        || avp.is(known::ROUTE_RECORD)
        || avp.is(known::PROXY_INFO)
}

/// Whether a host or realm is this realm, or below it.
fn is_below(name: &[u8], realm: &[u8]) -> bool {
    match name.len().checked_sub(realm.len()) {
        Some(0) => name.eq_ignore_ascii_case(realm),
        Some(at) => {
            let (before, end) = name.split_at(at);
            end.eq_ignore_ascii_case(realm) && before.ends_with(b".")
        }
        None => false,
    }
}

/// The names, ready for lookup.
#[derive(Debug)]
pub(crate) struct Hiding {
    realms: Vec<Box<[u8]>>,
    /// The Route-Record that stands for ours, encoded; empty: paths are not hidden.
    path: Bytes,
    path_name: Box<[u8]>,
    /// Of hosts and HSSs.
    outside: Names,
    inside: Names,
    hss_pseudo: Box<[u8]>,
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
        let hosts = || config.hosts.iter();
        let hss = config.hss_hosts.iter();
        let hss = hss.map(|host| (host.as_str(), config.hss_pseudo_host.as_str()));
        Some(Self {
            realms: config.realms.iter().map(|realm| lower(realm)).collect(),
            path,
            path_name: lower(&config.path_pseudo_host),
            // The name of a host counts more than that of the HSSs.
            outside: Names::new(hss.chain(hosts().map(|host| (&*host.actual, &*host.pseudo)))),
            inside: Names::new(hosts().map(|host| (&*host.pseudo, &*host.actual))),
            hss_pseudo: config.hss_pseudo_host.as_bytes().into(),
        })
    }

    /// Whether that Route-Record is ours in disguise.
    #[must_use]
    pub(crate) fn is_own(&self, name: &[u8]) -> bool {
        !self.path_name.is_empty() && self.path_name.eq_ignore_ascii_case(name)
    }

    /// The name a host of ours has outside.
    fn pseudo(&self, host: &[u8]) -> Option<&[u8]> {
        self.outside.get(host)
    }

    /// Whether a host belongs to the network that is hidden.
    fn is_ours(&self, host: &[u8]) -> bool {
        self.pseudo(host).is_some() || self.realms.iter().any(|realm| is_below(host, realm))
    }

    /// A request of ours for a foreign network. `append` is the Route-Record it would get. None when nothing
    /// of it needs hiding; it then goes as it is.
    pub(crate) fn request_out<B: AsRef<[u8]>>(&self, message: &Message<B>, append: &[u8]) -> Renamed {
        let Some(origin) = message.get(known::ORIGIN_HOST).ok().flatten() else {
            return Ok(None);
        };
        let realm = message
            .get(known::ORIGIN_REALM)
            .ok()
            .flatten()
            .unwrap_or_default();
        if !self.is_ours(origin.as_bytes()) && !self.is_ours(realm.as_bytes()) {
            return Ok(None);
        }
        let hide_path = !self.path.is_empty();
        let decide = |avp: &Avp<'_>| -> Edit<'_> {
            if avp.is(known::ROUTE_RECORD) && hide_path && self.is_ours(avp.data) {
                return Edit::Drop;
            }
            if avp.is(known::DESTINATION_HOST) || avp.is(known::DESTINATION_REALM) {
                return Edit::Keep;
            }
            match self.rename(avp) {
                // The answer gets it back.
                Edit::Data(_) if avp.is(known::PROXY_INFO) => Edit::Drop,
                other => other,
            }
        };
        if hide_path {
            return edit(message, decide, &self.path).map(Some);
        }
        let renamed = self.outside.replace_in(append);
        edit(message, decide, renamed.as_deref().unwrap_or(append)).map(Some)
    }

    /// Names of ours in the AVPs that may hold them. Hosts of the hidden realms that have no name outside go, or get
    /// that of the path where the AVP has to be there.
    fn rename(&self, avp: &Avp<'_>) -> Edit<'_> {
        if let Edit::Data(data) = self.outside.edit(avp) {
            return Edit::Data(data);
        }
        if avp.is(known::REDIRECT_HOST) {
            return self.redirection(avp.data);
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
        if !self.is_ours(host) || self.path_name.is_empty() {
            return Edit::Keep;
        }
        let scheme = uri.get(..begin).unwrap_or_default();
        Edit::Data(Cow::Owned([scheme, &self.path_name, tail].concat()))
    }

    /// Whether a foreign network may not know that name: a host of ours has another one outside.
    #[must_use]
    pub(crate) fn is_hidden(&self, host: &[u8]) -> bool {
        self.pseudo(host)
            .is_some_and(|name| !name.eq_ignore_ascii_case(host))
    }

    /// A request of a foreign network, with the real names. None when it has no other.
    pub(crate) fn request_in(&self, message: &MessageMut) -> Renamed {
        let is_hss = |name: &[u8]| !self.hss_pseudo.is_empty() && self.hss_pseudo.eq_ignore_ascii_case(name);
        change(message, |avp| {
            if is_of_sender(avp) {
                Edit::Keep
            } else if avp.is(known::DESTINATION_HOST) && is_hss(avp.data) {
                Edit::Drop
            } else {
                self.inside.edit(avp)
            }
        })
    }

    /// An answer of ours for a foreign network. None when it names no host of ours.
    pub(crate) fn answer_out(&self, message: &MessageMut) -> Renamed {
        // An agent before us gets back what it has sent.
        change(message, |avp| match avp.is(known::PROXY_INFO) {
            true => Edit::Keep,
            false => self.rename(avp),
        })
    }
}
