//! A query as it is read: everything in it is a stranger's.

use std::ops::Range;

use domain::base::Message;
use domain::base::iana::{Class, Opcode, Rtype};
use domain::base::name::{ParsedName, ToLabelIter as _};
use domain::base::opt::{Opt, OptRecord};

/// Additional records of a query. OPT and TSIG are two.
const MOST_ADDITIONAL: u16 = 8;
/// Octets of a header.
const HEADER: usize = 12;

/// A query that can be answered.
pub(crate) struct Query<'m> {
    pub(crate) message: &'m Message<[u8]>,
    pub(crate) name: ParsedName<&'m [u8]>,
    pub(crate) kind: Rtype,
    pub(crate) class: Class,
    pub(crate) edns: Option<Edns>,
    pub(crate) is_signed: bool,
    /// Where the name of the signature's algorithm begins.
    pub(crate) algorithm: Option<usize>,
}

/// What a client says of itself (RFC 6891 §6.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Edns {
    pub(crate) udp_bytes: u16,
    pub(crate) version: u8,
    pub(crate) dnssec_ok: bool,
}

/// Why octets are not a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoQuery {
    /// They are dropped: an answer would go to somebody who has not asked, perhaps for ever.
    Silent,
    /// FORMERR.
    Malformed,
    /// NOTIMP.
    Opcode,
}

impl<'m> Query<'m> {
    /// Reads a message.
    pub(crate) fn read(octets: &'m [u8]) -> Result<Self, NoQuery> {
        let message = Message::from_slice(octets).map_err(|_| NoQuery::Silent)?;
        let header = message.header();
        if header.qr() {
            return Err(NoQuery::Silent);
        }
        if header.opcode() != Opcode::QUERY {
            return Err(NoQuery::Opcode);
        }
        let counts = message.header_counts();
        let question = message.sole_question().map_err(|_| NoQuery::Malformed)?;
        // RFC 1995 §3: the SOA that the client has.
        let most_authority = u16::from(question.qtype() == Rtype::IXFR);
        let has_others = counts.ancount() > 0 || counts.nscount() > most_authority;
        if has_others || counts.arcount() > MOST_ADDITIONAL {
            return Err(NoQuery::Malformed);
        }
        // A pointer in the first name points into the header.
        plain_name(octets, HEADER).ok_or(NoQuery::Malformed)?;
        let (edns, is_signed) = additional(message)?;
        let algorithm = if is_signed { algorithm(message) } else { None };
        Ok(Self {
            message,
            kind: question.qtype(),
            class: question.qclass(),
            name: *question.qname(),
            edns,
            is_signed,
            algorithm,
        })
    }

    /// The name as at the wire. It is written out there.
    pub(crate) fn name(&self) -> &'m [u8] {
        let end = HEADER + usize::from(self.name.compose_len());
        self.message.as_slice().get(HEADER..end).unwrap_or_default()
    }
}

/// Where a name is that is written out, without its root: labels, and no pointer.
pub(super) fn plain_name(octets: &[u8], begin: usize) -> Option<Range<usize>> {
    let mut end = begin;
    loop {
        match octets.get(end)? {
            0 => return Some(begin..end),
            length @ 1..=63 => end += 1 + usize::from(*length),
            _ => return None,
        }
    }
}

/// Where the data of the last record begins.
fn algorithm(message: &Message<[u8]>) -> Option<usize> {
    let last = message.additional().ok()?.last()?.ok()?;
    // It is the last of the message, behind its length.
    let end = message.as_slice().len();
    let length = usize::from(last.rdlen());
    let begin = end.checked_sub(length)?;
    let field = message.as_slice().get(begin.checked_sub(2)?..begin)?;
    (field == last.rdlen().to_be_bytes()).then_some(begin)
}

/// OPT, and whether the last record is TSIG.
fn additional(message: &Message<[u8]>) -> Result<(Option<Edns>, bool), NoQuery> {
    let section = message.additional().map_err(|_| NoQuery::Malformed)?;
    let (mut edns, mut is_signed) = (None, false);
    for record in section {
        let record = record.map_err(|_| NoQuery::Malformed)?;
        // RFC 8945 §5.1: it is the last one, and the only one.
        if is_signed {
            return Err(NoQuery::Malformed);
        }
        match record.rtype() {
            Rtype::TSIG => is_signed = true,
            Rtype::OPT => {
                // RFC 6891 §6.1.1: one, of the root.
                if edns.is_some() || !record.owner().is_root() {
                    return Err(NoQuery::Malformed);
                }
                let opt = record
                    .to_record::<Opt<_>>()
                    .ok()
                    .flatten()
                    .ok_or(NoQuery::Malformed)?;
                let opt = OptRecord::from(opt);
                edns = Some(Edns {
                    udp_bytes: opt.udp_payload_size(),
                    version: opt.version(),
                    dnssec_ok: opt.dnssec_ok(),
                });
            }
            _ => {}
        }
    }
    Ok((edns, is_signed))
}
