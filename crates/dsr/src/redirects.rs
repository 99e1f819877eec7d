//! Routes that redirect indications have left behind (RFC 6733 §6.1.8, §6.13, §6.14). Pure: time is an argument.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use ahash::RandomState;
use bounded::{Cache, Limits};
use diameter::proto::{Message, Routing, known};

/// Redirect-Host-Usage: for which requests a cached route holds (RFC 6733 §6.13).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Usage {
    AllSession,
    AllUser,
    RealmAndApplication,
    AllRealm,
    AllApplication,
    AllHost,
}

impl Usage {
    /// Those that decide before a server is chosen, in the order of §6.13, the most specific first.
    const BEFORE_ROUTING: [Self; 5] = [
        Self::AllSession,
        Self::AllUser,
        Self::RealmAndApplication,
        Self::AllRealm,
        Self::AllApplication,
    ];

    /// That of the AVP's value; none for DONT_CACHE and for values without a meaning.
    const fn from_value(value: i32) -> Option<Self> {
        Some(match value {
            1 => Self::AllSession,
            2 => Self::AllRealm,
            3 => Self::RealmAndApplication,
            4 => Self::AllApplication,
            5 => Self::AllHost,
            6 => Self::AllUser,
            _ => return None,
        })
    }
}

/// What a request has to have in common with the one that was redirected: a hash of it, with keys of this process, so
/// that a lookup copies no name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key(Usage, [u64; 2]);

impl Key {
    fn new(usage: Usage, application: u32, parts: [&[u8]; 2]) -> Self {
        static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
        let each = |keys: &RandomState| keys.hash_one((application, parts));
        let [one, other] = &*KEYS;
        Self(usage, [each(one), each(other)])
    }

    /// The key of a request; none when it lacks what the usage is about.
    fn of(usage: Usage, application: u32, request: &Routing<'_>) -> Option<Self> {
        let realm = || request.destination_realm.map(<[u8]>::to_ascii_lowercase);
        Some(match usage {
            Usage::AllSession => Self::new(usage, 0, [request.session_id?, b""]),
            Usage::AllUser => Self::new(usage, 0, [request.user_name?, b""]),
            Usage::RealmAndApplication => Self::new(usage, application, [&realm()?, b""]),
            Usage::AllRealm => Self::new(usage, 0, [&realm()?, b""]),
            Usage::AllApplication => Self::new(usage, application, [b"", b""]),
            Usage::AllHost => return None,
        })
    }

    fn of_host(host: &str) -> Self {
        Self::new(Usage::AllHost, 0, [&host.as_bytes().to_ascii_lowercase(), b""])
    }
}

/// A route of a redirect indication.
#[derive(Clone, Debug)]
pub(crate) struct CachedRoute {
    key: Key,
    /// The hosts that the indication names.
    hosts: Arc<[Box<[u8]>]>,
    until: Instant,
}

/// Bound on the Redirect-Hosts that are tried.
const MAX_HOSTS: usize = 8;

impl CachedRoute {
    /// The route that a redirect indication of `from` wants to have cached; none: it wants none.
    pub(crate) fn new<B: AsRef<[u8]>>(
        indication: &Message<B>,
        request: &Routing<'_>,
        application: u32,
        from: &str,
        now: Instant,
    ) -> Option<Self> {
        let usage = indication.get(known::REDIRECT_HOST_USAGE).ok()??;
        let usage = Usage::from_value(usage)?;
        let seconds = indication.get(known::REDIRECT_MAX_CACHE_TIME).ok()??;
        let key = match usage {
            Usage::AllHost => Key::of_host(from),
            _ => Key::of(usage, application, request)?,
        };
        let hosts: Arc<[Box<[u8]>]> = redirect_hosts(indication).map(Box::from).collect();
        let until = now.checked_add(Duration::from_secs(u64::from(seconds)))?;
        (seconds > 0 && !hosts.is_empty()).then_some(Self { key, hosts, until })
    }
}

/// The cached routes of one worker.
#[derive(Debug)]
pub(crate) struct Redirects {
    routes: Cache<Key, CachedRoute>,
}

impl Redirects {
    /// None yet, and at most this number.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            routes: Cache::new(Limits::entries(max)),
        }
    }

    /// Changes the bound.
    pub(crate) fn configure(&mut self, max: usize) {
        self.routes.set_limits(Limits::entries(max));
    }

    /// Whether there is none: the quick way past everything else.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// Caches a route. Returns the number of routes that were evicted for it.
    pub(crate) fn learn(&mut self, route: CachedRoute) -> u64 {
        let before = self.routes.stats().evictions;
        self.routes.insert(route.key, route);
        self.routes.stats().evictions - before
    }

    /// Forgets routes whose time is over.
    pub(crate) fn expire(&mut self, now: Instant) {
        if !self.routes.is_empty() {
            self.routes.retain(|_, route| route.until > now);
        }
    }

    /// The hosts for a request that names no host.
    pub(crate) fn find(
        &self,
        application: u32,
        request: &Routing<'_>,
        now: Instant,
    ) -> Option<Arc<[Box<[u8]>]>> {
        let mut usages = Usage::BEFORE_ROUTING.into_iter();
        usages.find_map(|usage| self.get(&Key::of(usage, application, request)?, now))
    }

    /// The hosts for requests that would go to this one.
    pub(crate) fn instead_of(&self, host: &str, now: Instant) -> Option<Arc<[Box<[u8]>]>> {
        self.get(&Key::of_host(host), now)
    }

    fn get(&self, key: &Key, now: Instant) -> Option<Arc<[Box<[u8]>]>> {
        let route = self.routes.get_if(key, |route| route.until > now)?;
        Some(route.hosts.clone())
    }
}

/// The hosts that an answer redirects to: `aaa://host:port;transport=…` (RFC 6733 §4.3.1).
pub(crate) fn redirect_hosts<B: AsRef<[u8]>>(answer: &Message<B>) -> impl Iterator<Item = &[u8]> {
    answer
        .avps()
        .map_while(Result::ok)
        .filter(|avp| avp.is(known::REDIRECT_HOST))
        .take(MAX_HOSTS)
        .filter_map(|avp| {
            let (scheme, host) = avp
                .data
                .split_at_checked(avp.data.iter().position(|byte| *byte == b'/')?)?;
            // The scheme of a URI is case-insensitive (RFC 3986 §3.1).
            let is_diameter = scheme.eq_ignore_ascii_case(b"aaa:") || scheme.eq_ignore_ascii_case(b"aaas:");
            let host = host.strip_prefix(b"//").filter(|_| is_diameter)?;
            host.split(|byte| matches!(byte, b':' | b';')).next()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use diameter::proto::{MessageBuilder, MessageMut};

    const S6A: u32 = 16_777_251;

    fn request(session: &str, realm: &str, user: &str) -> MessageMut {
        let mut builder = MessageBuilder::request(316, S6A);
        builder
            .put(known::SESSION_ID, session)
            .put(known::DESTINATION_REALM, realm)
            .put(known::USER_NAME, user);
        builder.finish().unwrap()
    }

    fn route(usage: i32, seconds: u32, request: &MessageMut, now: Instant) -> Option<CachedRoute> {
        let mut builder = MessageBuilder::answer(request);
        builder
            .put(known::REDIRECT_HOST, "aaa://new.example:3868;transport=tcp")
            .put(known::REDIRECT_HOST_USAGE, usage)
            .put(known::REDIRECT_MAX_CACHE_TIME, seconds);
        let indication = builder.finish().unwrap();
        let routing = Routing::scan(request, b"").unwrap();
        CachedRoute::new(&indication, &routing, S6A, "Agent.example", now)
    }

    #[test]
    fn hosts_are_found_in_every_form_of_their_uri() {
        let of = |uri: &[u8]| {
            let mut builder = MessageBuilder::answer(&request("s1", "home.example", "u1"));
            builder.put_raw(
                known::REDIRECT_HOST.key,
                diameter::proto::AvpFlags::MANDATORY,
                uri,
            );
            let indication = builder.finish().unwrap();
            let hosts: Vec<_> = redirect_hosts(&indication).map(<[u8]>::to_vec).collect();
            String::from_utf8(hosts.concat()).unwrap()
        };
        for uri in [
            "aaa://new.example",
            "AAA://new.example:3868",
            "aaas://new.example;transport=tcp",
        ] {
            assert_eq!(of(uri.as_bytes()), "new.example", "{uri}");
        }
        for uri in [
            "",
            "new.example",
            "aaa:/new.example",
            "http://new.example",
            "/",
            "aaa:",
        ] {
            assert_eq!(of(uri.as_bytes()), "", "{uri}");
        }
    }

    #[test]
    fn each_usage_holds_for_its_requests() {
        let now = Instant::now();
        let first = request("s1", "home.example", "u1");
        // The same session, user, realm in another case, none of them.
        let others = [
            request("s1", "other.example", "u2"),
            request("s2", "other.example", "u1"),
            request("s2", "HOME.example", "u2"),
            request("s2", "other.example", "u2"),
        ];
        let expected = [
            (1, [true, false, false, false], true),
            (2, [false, false, true, false], true),
            (3, [false, false, true, false], false),
            (4, [true; 4], false),
            (5, [false; 4], false),
            (6, [false, true, false, false], true),
        ];
        for (usage, fits, fits_another_application) in expected {
            let mut redirects = Redirects::new(10);
            redirects.learn(route(usage, 60, &first, now).unwrap());
            let finds = |message: &MessageMut, application: u32, at: Instant| {
                let routing = Routing::scan(message, b"").unwrap();
                redirects.find(application, &routing, at).is_some()
            };
            let found = [0, 1, 2, 3].map(|at| finds(&others[at], S6A, now));
            assert_eq!(found, fits, "usage {usage}");
            assert_eq!(finds(&first, 4, now), fits_another_application, "usage {usage}");
            let host = redirects.instead_of("agent.EXAMPLE", now);
            assert_eq!(host.is_some(), usage == 5, "usage {usage}");
            assert!(!finds(&first, S6A, now + Duration::from_secs(60)));
        }
        assert!(route(0, 60, &first, now).is_none(), "DONT_CACHE");
        assert!(route(4, 0, &first, now).is_none(), "no time to cache");
    }

    #[test]
    fn the_most_specific_route_counts_and_the_number_is_bounded() {
        let now = Instant::now();
        let first = request("s1", "home.example", "u1");
        let mut redirects = Redirects::new(4);
        redirects.learn(route(4, 60, &first, now).unwrap());
        let mut session = route(1, 60, &first, now).unwrap();
        session.hosts = Arc::new([Box::from(*b"session.example")]);
        redirects.learn(session);
        let routing = Routing::scan(&first, b"").unwrap();
        let hosts = redirects.find(S6A, &routing, now).unwrap();
        assert_eq!(&*hosts[0], b"session.example");
        let mut evicted = 0;
        for n in 0..10 {
            let other = request(&n.to_string(), "home.example", "u1");
            evicted += redirects.learn(route(1, 60, &other, now).unwrap());
        }
        assert_eq!(evicted, 8);
        redirects.expire(now + Duration::from_secs(60));
        assert!(redirects.is_empty());
    }
}
