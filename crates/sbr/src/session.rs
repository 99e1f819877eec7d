//! A session as the repository keeps it.

use std::net::Ipv4Addr;
use std::time::Duration;

use model::Ipv6Prefix;
use store::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use crate::prefix;

/// The longest Session-Id that has a record: that of a key in a database.
pub const MAX_SESSION_ID: usize = store::MAX_KEY;

pub(crate) const BY_BINDING: Index = Index(0);
pub(crate) const BY_IMSI: Index = Index(1);
pub(crate) const BY_MSISDN: Index = Index(2);
pub(crate) const BY_IPV4: Index = Index(3);
pub(crate) const BY_PREFIX: Index = Index(4);
pub(crate) const BY_EXPIRY: Index = Index(5);

/// One end of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Party {
    /// Its Diameter identity.
    pub host: String,
    /// Its realm.
    pub realm: String,
}

/// The keys by which a session binds its subscriber to its server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// As [`binding_key`].
    pub key: Vec<u8>,
    /// IMSI; empty: not known.
    pub imsi: String,
    /// MSISDN; empty: not known.
    pub msisdn: String,
    /// IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// IPv6 prefixes.
    pub prefixes: Vec<Ipv6Prefix>,
    /// When the first session of this binding began, in microseconds since 1970.
    pub since: u64,
    /// How often the binding has moved to another server since then.
    pub moves: u16,
    /// Whether an older binding of the subscriber has won: the session keeps its server, and new ones do not follow it.
    pub has_yielded: bool,
}

/// Addresses that the client of a session reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// IPv6 prefixes.
    pub prefixes: Vec<Ipv6Prefix>,
    /// Whether the session has them no more; else it has them instead of those before.
    pub are_released: bool,
}

impl Binding {
    /// Takes what a client reports; whether that changes anything. Of a family that is not reported, the addresses stay.
    pub fn report(&mut self, reported: &Addresses) -> bool {
        let before = (self.ipv4, self.prefixes.clone());
        if reported.are_released {
            self.ipv4 = self.ipv4.filter(|own| Some(*own) != reported.ipv4);
            self.prefixes.retain(|own| !reported.prefixes.contains(own));
        } else {
            self.ipv4 = reported.ipv4.or(self.ipv4);
            if !reported.prefixes.is_empty() {
                self.prefixes.clone_from(&reported.prefixes);
            }
        }
        before != (self.ipv4, self.prefixes.clone())
    }
}

/// The key under which the sessions of a subscriber in a pool of servers meet. A subscriber that is known by its IMSI is an `i` and
/// the IMSI; others begin with another byte.
#[must_use]
pub fn binding_key(subscriber: &[u8], pool: &str) -> Vec<u8> {
    [subscriber, b"/", pool.as_bytes()].concat()
}

/// The IMSI in a [`binding_key`]: its sessions are among those of the IMSI, and need no entry of their own.
pub(crate) fn imsi_in(key: &[u8]) -> Option<&[u8]> {
    let rest = key.strip_prefix(b"i")?;
    let imsi = rest
        .split(|byte| *byte == b'/')
        .next()
        .filter(|imsi| imsi.len() < rest.len())?;
    (!imsi.is_empty() && imsi.iter().all(u8::is_ascii_digit)).then_some(imsi)
}

/// A Diameter session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// Session-Id (RFC 6733 §8.8).
    pub id: Vec<u8>,
    /// Application id.
    pub application: u32,
    /// Who began it.
    pub client: Party,
    /// Who serves it.
    pub server: Party,
    /// Called-Station-Id; empty: none.
    pub apn: String,
    /// The pool that its server was chosen from; empty: it was found by the binding of another session.
    pub pool: String,
    /// The rule by which it has its server, in words.
    pub rule: String,
    /// Its subscriber, where it binds it.
    pub binding: Option<Binding>,
    /// When it began, in microseconds since 1970.
    pub began: u64,
    /// When it expires unless it is used, in microseconds since 1970.
    pub expires: u64,
}

impl Session {
    /// The session, used at this time (microseconds since 1970), which stays for this time without use.
    #[must_use]
    pub fn used(mut self, now: u64, lifetime: Duration) -> Self {
        self.expires = now.saturating_add(micros(lifetime));
        self
    }

    /// Whether it is the same session as another one with its Session-Id: of one application, client and subscriber.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.binds(other.application, &other.client, other.bound())
    }

    /// Whether it is of this application and client, and of the subscriber with this [`binding_key`]; none: it binds no subscriber.
    #[must_use]
    pub fn binds(&self, application: u32, client: &Party, key: Option<&[u8]>) -> bool {
        self.is_of(application, client) && self.bound() == key
    }

    fn bound(&self) -> Option<&[u8]> {
        self.binding.as_ref().map(|binding| binding.key.as_slice())
    }

    /// Makes it the one that is known, which its request repeats: as it began, by its rule where its server is the same, with its
    /// binding, and with the addresses that its client has reported since.
    pub(crate) fn repeats(&mut self, known: &Self) {
        self.began = known.began;
        if self.server.host == known.server.host {
            self.rule.clone_from(&known.rule);
        }
        self.binding.clone_from(&known.binding);
    }

    /// Whether it is of this application and client.
    #[must_use]
    pub fn is_of(&self, application: u32, client: &Party) -> bool {
        self.application == application && self.client.host.eq_ignore_ascii_case(&client.host)
    }

    /// Whether its use is written at this time: an eighth of the time until it is stale is over.
    #[must_use]
    pub fn is_due(&self, now: u64, lifetime: Duration, stale: Duration) -> bool {
        let left = self.expires.saturating_sub(now);
        left < micros(lifetime).saturating_sub(micros(stale) / 8)
    }
}

/// Microseconds of a time.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Record for Session {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "sbr_session",
        indexes: &[
            IndexSchema::many("binding"),
            IndexSchema::many("imsi"),
            IndexSchema::many("msisdn"),
            IndexSchema::many("ipv4"),
            IndexSchema::many("prefix").multi(),
            IndexSchema::many("expiry").ordered(),
        ],
        by_modified: false,
        sql: None,
    };
    const EXPIRY: Option<Index> = Some(BY_EXPIRY);

    fn key(&self) -> Key {
        Key::from_slice(&self.id)
    }

    fn index(&self, keys: &mut IndexKeys) {
        let Some(binding) = &self.binding else { return };
        if !binding.has_yielded && imsi_in(&binding.key) != Some(binding.imsi.as_bytes()) {
            keys.add(BY_BINDING, &binding.key);
        }
        for (index, digits) in [(BY_IMSI, &binding.imsi), (BY_MSISDN, &binding.msisdn)] {
            if !digits.is_empty() {
                keys.add(index, digits.as_bytes());
            }
        }
        if let Some(ipv4) = binding.ipv4 {
            keys.add(BY_IPV4, &ipv4.octets());
        }
        for one in &binding.prefixes {
            keys.add(BY_PREFIX, &prefix::key(one));
        }
    }

    fn expires(&self) -> Option<u64> {
        Some(self.expires)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(FORMAT);
        out.extend(self.application.to_be_bytes());
        out.extend(self.began.to_be_bytes());
        out.extend(self.expires.to_be_bytes());
        let (client, server) = (&self.client, &self.server);
        let texts = [&client.host, &client.realm, &server.host, &server.realm];
        for text in texts.into_iter().chain([&self.apn, &self.pool, &self.rule]) {
            put(out, text.as_bytes());
        }
        let Some(binding) = &self.binding else { return };
        out.extend(binding.since.to_be_bytes());
        out.extend(binding.moves.to_be_bytes());
        out.push(u8::from(binding.has_yielded));
        put(out, &binding.key);
        put(out, binding.imsi.as_bytes());
        put(out, binding.msisdn.as_bytes());
        put(
            out,
            binding
                .ipv4
                .map(|ipv4| ipv4.octets())
                .as_ref()
                .map_or(&[], |octets| octets),
        );
        for one in &binding.prefixes {
            out.push(one.length());
            out.extend(one.address().octets());
        }
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        read(key, value).ok_or_else(|| DecodeError("the bytes are not a session".to_owned()))
    }
}

/// A session that was found by the binding of another one, such as that of an AF: in a table of its own, so that their number
/// does not count for the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found(pub Session);

impl Record for Found {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "sbr_found_session",
        indexes: &[IndexSchema::many("expiry").ordered()],
        by_modified: false,
        sql: None,
    };
    const EXPIRY: Option<Index> = Some(Index(0));

    fn key(&self) -> Key {
        self.0.key()
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn expires(&self) -> Option<u64> {
        self.0.expires()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        Session::decode(key, value).map(Self)
    }
}

impl From<Session> for Found {
    fn from(session: Session) -> Self {
        Self(session)
    }
}

impl From<Found> for Session {
    fn from(found: Found) -> Self {
        found.0
    }
}

/// The first byte of a record.
const FORMAT: u8 = 2;

/// A text of at most 65,535 bytes with its length: a Diameter identity has 255, an APN 100.
pub(crate) fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend(length.to_be_bytes());
    out.extend(&bytes[..usize::from(length)]);
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

pub(crate) fn bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u16::from_be_bytes(take(rest, 2)?.try_into().ok()?);
    take(rest, usize::from(length))
}

pub(crate) fn text(rest: &mut &[u8]) -> Option<String> {
    // A text may have been cut within a character: a record that cannot be read would hold up its subscriber.
    Some(String::from_utf8_lossy(bytes(rest)?).into_owned())
}

pub(crate) fn party(rest: &mut &[u8]) -> Option<Party> {
    Some(Party {
        host: text(rest)?,
        realm: text(rest)?,
    })
}

pub(crate) fn number(rest: &mut &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(take(rest, 8)?.try_into().ok()?))
}

fn read(key: &[u8], value: &[u8]) -> Option<Session> {
    let mut rest = value.strip_prefix(&[FORMAT])?;
    let rest = &mut rest;
    let application = u32::from_be_bytes(take(rest, 4)?.try_into().ok()?);
    let (began, expires) = (number(rest)?, number(rest)?);
    let (client, server) = (party(rest)?, party(rest)?);
    Some(Session {
        id: key.to_vec(),
        application,
        client,
        server,
        apn: text(rest)?,
        pool: text(rest)?,
        rule: text(rest)?,
        binding: match rest.is_empty() {
            true => None,
            false => Some(binding(rest)?),
        },
        began,
        expires,
    })
}

fn binding(rest: &mut &[u8]) -> Option<Binding> {
    let since = number(rest)?;
    let moves = u16::from_be_bytes(take(rest, 2)?.try_into().ok()?);
    let has_yielded = match take(rest, 1)? {
        [0] => false,
        [1] => true,
        _ => return None,
    };
    let key = bytes(rest)?.to_vec();
    let (imsi, msisdn) = (text(rest)?, text(rest)?);
    let ipv4 = match bytes(rest)? {
        [] => None,
        octets => Some(<[u8; 4]>::try_from(octets).ok()?.into()),
    };
    let mut prefixes = Vec::new();
    while let Some(length) = take(rest, 1) {
        let octets: [u8; 16] = take(rest, 16)?.try_into().ok()?;
        prefixes.push(Ipv6Prefix::new(octets.into(), *length.first()?));
    }
    Some(Binding {
        key,
        imsi,
        msisdn,
        ipv4,
        prefixes,
        since,
        moves,
        has_yielded,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole() -> Session {
        Session {
            id: b"pgw.example;1;2".to_vec(),
            application: 16_777_238,
            client: Party {
                host: "pgw.example".to_owned(),
                realm: "epc.example".to_owned(),
            },
            server: Party {
                host: "pcrf1.example".to_owned(),
                realm: "pcc.example".to_owned(),
            },
            apn: "internet".to_owned(),
            pool: "all".to_owned(),
            rule: "chosen".to_owned(),
            binding: Some(Binding {
                key: binding_key(b"001010000000001", "all"),
                imsi: "001010000000001".to_owned(),
                msisdn: "491701234567".to_owned(),
                ipv4: Some([10, 0, 0, 1].into()),
                prefixes: vec![
                    "2001:db8:0:1::/64".parse().unwrap(),
                    "2001:db8:8::/56".parse().unwrap(),
                ],
                since: 3,
                moves: 2,
                has_yielded: true,
            }),
            began: 5,
            expires: 7,
        }
    }

    fn again(session: &Session) -> Result<Session, DecodeError> {
        let mut bytes = Vec::new();
        session.encode(&mut bytes);
        Session::decode(&session.key(), &bytes)
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let bare = Binding {
            key: b"x/".to_vec(),
            ..Binding::default()
        };
        for binding in [whole().binding, Some(bare), None] {
            let session = Session { binding, ..whole() };
            assert_eq!(again(&session), Ok(session));
        }
    }

    #[test]
    fn a_subscriber_with_an_imsi_has_no_entry_by_its_binding() {
        let has_entry = |key: Vec<u8>| {
            let binding = whole().binding.map(|binding| Binding {
                key,
                has_yielded: false,
                ..binding
            });
            let mut keys = IndexKeys::default();
            Session { binding, ..whole() }.index(&mut keys);
            keys.iter().any(|(index, _)| index == BY_BINDING)
        };
        assert!(!has_entry(binding_key(b"i001010000000001", "all/of it")));
        for other in [
            &b"i001010000000002"[..],
            b"m491701234567",
            b"001010000000001",
            b"i",
            b"",
            b"ix",
        ] {
            assert!(has_entry(binding_key(other, "all")), "{other:?}");
        }
    }

    #[test]
    fn a_client_reports_addresses_that_come_and_go() {
        let mut binding = whole().binding.unwrap();
        let unchanged = Addresses {
            ipv4: binding.ipv4,
            ..Addresses::default()
        };
        assert!(!binding.report(&unchanged));
        let other = Addresses {
            ipv4: Some([10, 0, 0, 2].into()),
            ..Addresses::default()
        };
        let release = |addresses: &Addresses| Addresses {
            are_released: true,
            ..addresses.clone()
        };
        // Another address than that of the session is not released.
        assert!(!binding.report(&release(&other)));
        assert!(binding.report(&other));
        assert_eq!((binding.ipv4, binding.prefixes.len()), (other.ipv4, 2));
        assert!(binding.report(&release(&other)));
        assert_eq!((binding.ipv4, binding.prefixes.len()), (None, 2));
        let prefix = Addresses {
            prefixes: vec!["2001:db8:9::/64".parse().unwrap()],
            ..Addresses::default()
        };
        assert!(binding.report(&prefix));
        assert_eq!(binding.prefixes, prefix.prefixes);
        assert!(binding.report(&release(&prefix)) && binding.prefixes.is_empty());
    }

    #[test]
    fn its_use_is_written_seldom() {
        let stale = Duration::from_secs(80);
        let session = whole().used(1_000_000, stale);
        assert_eq!(session.expires, 81_000_000);
        assert!(!session.is_due(10_000_000, stale, stale));
        assert!(session.is_due(11_000_001, stale, stale));
        // One that is asked about when it is stale stays for longer.
        let session = whole().used(1_000_000, 2 * stale);
        assert!(!session.is_due(10_000_000, 2 * stale, stale));
        assert!(session.is_due(11_000_001, 2 * stale, stale));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_session_or_refused(value in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Session::decode(b"a", &value);
        }

        #[test]
        fn a_cut_record_is_refused_or_another(at in 0usize..200) {
            let mut bytes = Vec::new();
            whole().encode(&mut bytes);
            bytes.truncate(at.min(bytes.len().saturating_sub(1)));
            prop_assert_ne!(Session::decode(&whole().key(), &bytes).ok(), Some(whole()));
        }
    }
}
