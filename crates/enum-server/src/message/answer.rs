//! What a client gets.

use std::net::IpAddr;
use std::sync::Arc;

use domain::base::Message;
use domain::base::iana::{Class, Rcode, Rtype};
use domain::rdata::tsig::Time48;
use domain::tsig::{Key, ServerTransaction};

use super::query::plain_name;
use super::write::{Records, Reply, Writer};
use super::{NoQuery, Query};
use crate::metrics::Outcome;
use crate::resolve::{Resolution, records};
use crate::tables::{Digits, Tables, Tree};

/// How a query came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Udp,
    Tcp,
}

/// Octets of an answer over UDP to a client without EDNS (RFC 1035 §4.2.1).
const PLAIN_UDP: usize = 512;
/// Octets of a message over TCP.
const MOST_OCTETS: usize = u16::MAX as usize;

/// Answers queries; a worker has one, whose memory every answer uses.
#[derive(Default)]
pub(crate) struct Responder {
    writer: Writer,
}

/// The type of a query and what became of it, for the counters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Handled {
    pub(crate) kind: Option<Rtype>,
    pub(crate) outcome: Outcome,
    /// Whether it did not fit.
    pub(crate) is_truncated: bool,
}

/// Where a name is in a tree.
enum Position {
    Apex,
    Number(Digits),
    /// Below the apex, and the name of no number.
    Other,
}

impl Responder {
    /// Answers a message; without octets: nothing is sent.
    pub(crate) fn answer(
        &mut self,
        tables: &Tables,
        octets: &[u8],
        client: IpAddr,
        transport: Transport,
    ) -> (Handled, &[u8]) {
        let query = match Query::read(octets) {
            Ok(query) => query,
            Err(error) => return self.malformed(octets, error),
        };
        let limit = limit(tables, &query, transport);
        let signer = match signer(tables, &query) {
            Ok(signer) => signer,
            Err(error) => {
                let written = self.writer.tsig_error(&query, error, limit);
                return (handled(&query, Outcome::Signature, false), written);
            }
        };
        let is_signed = signer.is_some();
        let (outcome, reply) = reply(tables, &query, client, is_signed);
        let (is_truncated, written) = self.writer.write(&query, &reply, limit, signer);
        (handled(&query, outcome, is_truncated), written)
    }

    /// An empty, truncated answer: the client asks again over TCP, if it is the one that has asked.
    pub(crate) fn slip(&mut self, tables: &Tables, octets: &[u8]) -> Option<&[u8]> {
        let query = Query::read(octets).ok()?;
        let limit = limit(tables, &query, Transport::Udp);
        // A signature that does not fit gets no signature.
        let signer = signer(tables, &query).ok().flatten();
        Some(self.writer.write(&query, &Reply::truncated(), limit, signer).1)
    }

    fn malformed(&mut self, octets: &[u8], error: NoQuery) -> (Handled, &[u8]) {
        let (outcome, rcode) = match error {
            NoQuery::Silent => (Outcome::Dropped, None),
            NoQuery::Malformed => (Outcome::Malformed, Some(Rcode::FORMERR)),
            NoQuery::Opcode => (Outcome::NotImplemented, Some(Rcode::NOTIMP)),
        };
        let handled = Handled {
            kind: None,
            outcome,
            is_truncated: false,
        };
        match rcode {
            Some(rcode) => (handled, self.writer.header(octets, rcode)),
            None => (handled, &[]),
        }
    }
}

fn handled(query: &Query<'_>, outcome: Outcome, is_truncated: bool) -> Handled {
    Handled {
        kind: Some(query.kind),
        outcome,
        is_truncated,
    }
}

/// Most octets of the answer.
fn limit(tables: &Tables, query: &Query<'_>, transport: Transport) -> usize {
    match (transport, query.edns) {
        (Transport::Tcp, _) => MOST_OCTETS,
        (Transport::Udp, None) => PLAIN_UDP,
        // RFC 6891 §6.2.5: less than 512 means 512.
        (Transport::Udp, Some(edns)) => {
            usize::from(edns.udp_bytes).clamp(PLAIN_UDP, tables.udp_bytes.max(PLAIN_UDP))
        }
    }
}

pub(super) type Signer = ServerTransaction<Arc<Key>>;
pub(super) type SignatureError = domain::tsig::ServerError<Arc<Key>>;

/// Checks the signature of a query; its answer is signed likewise.
#[expect(clippy::result_large_err, reason = "the error is written at once")]
fn signer(tables: &Tables, query: &Query<'_>) -> Result<Option<Signer>, SignatureError> {
    if !query.is_signed {
        return Ok(None);
    }
    let mut octets = query.message.as_slice().to_vec();
    // Names compare without case (RFC 8945 §4.2), those of algorithms as well: the library has them in lower case.
    let name = query.algorithm.and_then(|at| plain_name(&octets, at));
    if let Some(name) = name.and_then(|name| octets.get_mut(name)) {
        name.make_ascii_lowercase();
    }
    let Ok(mut message) = Message::from_octets(octets) else {
        return Ok(None);
    };
    ServerTransaction::request(tables.keys.store(), &mut message, Time48::now())
}

fn reply<'t>(tables: &'t Tables, query: &Query<'_>, client: IpAddr, is_signed: bool) -> (Outcome, Reply<'t>) {
    if query.edns.is_some_and(|edns| edns.version > 0) {
        return (Outcome::Version, Reply::bad_version());
    }
    if !tables.admits(client) || tables.require_tsig && !is_signed {
        return (Outcome::Refused, Reply::code(Rcode::REFUSED));
    }
    // AXFR and IXFR are not served.
    let is_transfer = matches!(query.kind, Rtype::AXFR | Rtype::IXFR);
    let name = query.name();
    let mut trees = tables.trees.iter();
    let found = trees.find_map(|tree| Some((tree, below(name, tree.apex.as_slice())?)));
    match found {
        Some((tree, below)) if query.class == Class::IN && !is_transfer => {
            in_tree(tables, tree, below, query)
        }
        _ => (Outcome::Refused, Reply::code(Rcode::REFUSED)),
    }
}

fn in_tree<'t>(tables: &'t Tables, tree: &'t Tree, labels: &[u8], query: &Query<'_>) -> (Outcome, Reply<'t>) {
    let number = match position(tree, labels) {
        Position::Apex => return at_apex(tree, query.kind),
        Position::Other => return unknown(tables, tree, query),
        Position::Number(number) => number,
    };
    match Resolution::find(tables, tree, &number) {
        Ok(Resolution::Unknown) => unknown(tables, tree, query),
        Ok(Resolution::Incomplete | Resolution::Without) => no_data(tree),
        Ok(Resolution::NoProfile(_)) => (Outcome::NoProfile, Reply::code(Rcode::SERVFAIL)),
        Ok(Resolution::Aside) | Err(_) => (Outcome::Damaged, Reply::code(Rcode::SERVFAIL)),
        Ok(Resolution::Known(profile, source)) => match query.kind {
            Rtype::NAPTR => match records(profile, &source, &number) {
                Ok(records) if records.is_empty() => no_data(tree),
                Ok(records) => (
                    Outcome::Answered,
                    Reply::records(Records::Naptr(records, profile.ttl)),
                ),
                Err(_) => (Outcome::NoProfile, Reply::code(Rcode::SERVFAIL)),
            },
            Rtype::ANY => any(tree),
            _ => no_data(tree),
        },
    }
}

fn at_apex(tree: &Tree, kind: Rtype) -> (Outcome, Reply<'_>) {
    match kind {
        Rtype::SOA => (Outcome::Apex, Reply::records(Records::Soa(tree))),
        Rtype::NS => (Outcome::Apex, Reply::records(Records::Ns(tree))),
        Rtype::ANY => any(tree),
        _ => no_data(tree),
    }
}

/// RFC 8482 §4.2: what a client does with all types is unknown, and they are the largest answer.
fn any(tree: &Tree) -> (Outcome, Reply<'_>) {
    (Outcome::Any, Reply::records(Records::Hinfo(tree)))
}

fn unknown<'t>(tables: &Tables, tree: &'t Tree, query: &Query<'_>) -> (Outcome, Reply<'t>) {
    // The apex of another tree below makes a name that exists (RFC 8020 §2).
    let is_below = |other: &Tree| below(other.apex.as_slice(), query.name()).is_some();
    if tables.trees.iter().any(is_below) {
        return no_data(tree);
    }
    (Outcome::Unknown, Reply::negative(Rcode::NXDOMAIN, tree))
}

fn no_data(tree: &Tree) -> (Outcome, Reply<'_>) {
    (Outcome::NoData, Reply::negative(Rcode::NOERROR, tree))
}

/// The labels of a name above those of an apex, all as at the wire; `None` where the name does not end with the apex.
fn below<'n>(name: &'n [u8], apex: &[u8]) -> Option<&'n [u8]> {
    let (labels, end) = name.split_at_checked(name.len().checked_sub(apex.len())?)?;
    // Lengths are below 64, so that none of them is taken for a letter.
    if !end.eq_ignore_ascii_case(apex) {
        return None;
    }
    let mut begin = 0;
    while begin < labels.len() {
        begin += 1 + usize::from(*labels.get(begin)?);
    }
    (begin == labels.len()).then_some(labels)
}

/// The number of a name: a digit in each label below the apex, the last one first (RFC 6116 §3.2).
fn position(tree: &Tree, labels: &[u8]) -> Position {
    if labels.is_empty() {
        return Position::Apex;
    }
    let mut number = tree.digits;
    for label in labels.rchunks(2) {
        // A label of another length ends up as a pair that does not begin with 1, or as a single octet.
        let [1, digit] = label else {
            return Position::Other;
        };
        if number.push(*digit).is_none() {
            return Position::Other;
        }
    }
    Position::Number(number)
}
