//! How an answer is written.

use std::mem;

use domain::base::iana::{Class, OptRcode, Rcode, TsigRcode};
use domain::base::message_builder::{AdditionalBuilder, PushError};
use domain::base::record::Ttl;
use domain::base::{CharStr, MessageBuilder};
use domain::rdata::tsig::Time48;
use domain::rdata::{Hinfo, Naptr};

use super::Query;
use super::answer::{SignatureError, Signer};
use super::target::Target;
use crate::tables::{self, Tree};

/// What an answer has.
pub(super) struct Reply<'t> {
    rcode: OptRcode,
    records: Option<Records<'t>>,
    /// The tree whose SOA proves that there is nothing (RFC 2308 §2).
    negative: Option<&'t Tree>,
    is_truncated: bool,
}

/// The records of the answer section.
pub(super) enum Records<'t> {
    Naptr(Vec<tables::Naptr<'t>>, u32),
    Soa(&'t Tree),
    Ns(&'t Tree),
    Hinfo(&'t Tree),
}

impl<'t> Reply<'t> {
    pub(super) fn code(rcode: Rcode) -> Self {
        Self {
            rcode: rcode.into(),
            records: None,
            negative: None,
            is_truncated: false,
        }
    }

    pub(super) fn bad_version() -> Self {
        Self {
            rcode: OptRcode::BADVERS,
            records: None,
            negative: None,
            is_truncated: false,
        }
    }

    /// The client asks again over TCP.
    pub(super) fn truncated() -> Self {
        Self {
            is_truncated: true,
            ..Self::code(Rcode::NOERROR)
        }
    }

    pub(super) fn records(records: Records<'t>) -> Self {
        Self {
            records: Some(records),
            ..Self::code(Rcode::NOERROR)
        }
    }

    pub(super) fn negative(rcode: Rcode, tree: &'t Tree) -> Self {
        Self {
            negative: Some(tree),
            ..Self::code(rcode)
        }
    }

    /// Whether it is the word of who has authority.
    fn is_authoritative(&self) -> bool {
        self.records.is_some() || self.negative.is_some()
    }
}

/// Octets of OPT without options.
const OPT: usize = 11;
/// Octets of a header.
const HEADER: usize = 12;
/// What RFC 8482 §4.2 has in place of all types.
const NO_ANY: &[u8] = b"RFC8482";

/// Writes answers into one piece of memory.
#[derive(Default)]
pub(super) struct Writer {
    octets: Vec<u8>,
}

impl Writer {
    fn builder(&mut self) -> MessageBuilder<Target> {
        let target = Target::new(mem::take(&mut self.octets));
        // Memory grows as it must: there is always room for a header.
        MessageBuilder::from_target(target).unwrap_or_else(|_| unreachable!("a vector has room for a header"))
    }

    /// Writes an answer of at most `limit` octets; says whether records did not fit.
    pub(super) fn write(
        &mut self,
        query: &Query<'_>,
        reply: &Reply<'_>,
        limit: usize,
        signer: Option<Signer>,
    ) -> (bool, &[u8]) {
        let signature = signer
            .as_ref()
            .map_or(0, |signer| usize::from(signer.key().compose_len()));
        let opt = if query.edns.is_some() { OPT } else { 0 };
        let room = limit.saturating_sub(signature + opt);
        let mut builder = self.builder();
        builder.set_push_limit(room);
        // The bound on names of keys leaves room for every question.
        let Ok((is_truncated, mut additional)) = sections(builder, query, reply) else {
            return (true, self.header(query.message.as_slice(), Rcode::SERVFAIL));
        };
        additional.clear_push_limit();
        // Both fit: their room was left.
        let done = opt_record(&mut additional, query, reply).and_then(|()| match signer {
            Some(signer) => signer.answer(&mut additional, Time48::now()),
            None => Ok(()),
        });
        self.octets = additional.finish().into_octets();
        if done.is_err() || self.octets.len() > limit {
            return (true, self.header(query.message.as_slice(), Rcode::SERVFAIL));
        }
        (is_truncated, &self.octets)
    }

    /// The header alone, for what cannot be read: never more than was sent.
    pub(super) fn header(&mut self, octets: &[u8], rcode: Rcode) -> &[u8] {
        self.octets.clear();
        let [first, second, flags, ..] = octets else {
            return &self.octets;
        };
        // QR, and opcode and RD as they were.
        let flags = 0x80 | flags & 0x79;
        self.octets
            .extend_from_slice(&[*first, *second, flags, rcode.to_int()]);
        self.octets.resize(HEADER, 0);
        &self.octets
    }

    /// Puts OPT between the question and what is behind it (RFC 6891 §6.1.1). Names behind it point to the question at most.
    fn insert_opt(&mut self, query: &Query<'_>) {
        // Behind the type and the class.
        let at = HEADER + query.name().len() + 4;
        let [high, low] = UDP_RECEIVED.to_be_bytes();
        let dnssec_ok = query.edns.is_some_and(|edns| edns.dnssec_ok);
        let opt = [0, 0, 41, high, low, 0, 0, u8::from(dnssec_ok) << 7, 0, 0, 0];
        if at <= self.octets.len() {
            self.octets.splice(at..at, opt);
            if let Some(count) = self.octets.get_mut(11) {
                *count += 1;
            }
        }
    }

    /// The answer to a signature that does not fit.
    pub(super) fn tsig_error(&mut self, query: &Query<'_>, error: SignatureError, limit: usize) -> &[u8] {
        let message = query.message;
        // A signature is over the whole message: the library leaves no room for OPT in front of it.
        let is_signed = error.error() == TsigRcode::BADTIME;
        // RFC 8945 §5.2.2: BADSIG. The library has FORMERR in its place, within NOTAUTH.
        let is_wrong = error.error() == TsigRcode::FORMERR;
        let builder = self.builder();
        match error.build_message(message, builder) {
            Ok(builder) => self.octets = builder.finish().into_octets(),
            Err(_) => return self.header(message.as_slice(), Rcode::SERVFAIL),
        }
        let is_not_authorised = self
            .octets
            .get(3)
            .is_some_and(|octet| octet & 0x0f == Rcode::NOTAUTH.to_int());
        // The record is the last one, and ends with the error and the length of nothing (RFC 8945 §4.2).
        let error = self.octets.len().saturating_sub(4);
        if let (true, true, Some(field)) =
            (is_wrong, is_not_authorised, self.octets.get_mut(error..error + 2))
        {
            field.copy_from_slice(&TsigRcode::BADSIG.to_int().to_be_bytes());
        }
        if query.edns.is_some() && !is_signed {
            self.insert_opt(query);
        }
        if self.octets.len() > limit {
            return self.header(message.as_slice(), Rcode::SERVFAIL);
        }
        &self.octets
    }
}

/// Question, answer and authority.
///
/// # Errors
/// When not even the question fits.
fn sections(
    builder: MessageBuilder<Target>,
    query: &Query<'_>,
    reply: &Reply<'_>,
) -> Result<(bool, AdditionalBuilder<Target>), PushError> {
    let mut question = builder.question();
    let header = query.message.header();
    let target = question.header_mut();
    target.set_id(header.id());
    target.set_qr(true);
    target.set_rd(header.rd());
    target.set_aa(reply.is_authoritative());
    target.set_rcode(reply.rcode.rcode());
    target.set_tc(reply.is_truncated);
    question.push((query.name, query.kind, query.class))?;
    let mut is_truncated = reply.is_truncated;
    let mut answer = question.answer();
    if let Some(records) = &reply.records {
        let pushed = match records {
            Records::Naptr(records, ttl) => {
                let ttl = Ttl::from_secs(*ttl);
                records
                    .iter()
                    .try_for_each(|record| answer.push((query.name, Class::IN, ttl, naptr(record))))
            }
            Records::Soa(tree) => answer.push((query.name, Class::IN, tree.ttl, &tree.soa)),
            Records::Ns(tree) => {
                let mut servers = tree.name_servers.iter();
                servers.try_for_each(|server| answer.push((query.name, Class::IN, tree.ttl, server)))
            }
            Records::Hinfo(tree) => answer.push((
                query.name,
                Class::IN,
                tree.negative_ttl,
                Hinfo::new(char_str(NO_ANY), char_str(b"")),
            )),
        };
        // RFC 2181 §9: a set of records is there as a whole, or not at all.
        if pushed.is_err() {
            answer.rewind();
            answer.header_mut().set_tc(true);
            is_truncated = true;
        }
    }
    let mut authority = answer.authority();
    if let Some(tree) = reply.negative {
        // RFC 2308 §3: with the lesser of both times.
        let ttl = tree.negative_ttl.min(tree.ttl);
        if authority.push((&tree.apex, Class::IN, ttl, &tree.soa)).is_err() {
            authority.rewind();
            authority.header_mut().set_tc(true);
            is_truncated = true;
        }
    }
    Ok((is_truncated, authority.additional()))
}

/// RFC 6891 §6.1.1: an answer has OPT when, and only when, its query has.
fn opt_record(
    additional: &mut AdditionalBuilder<Target>,
    query: &Query<'_>,
    reply: &Reply<'_>,
) -> Result<(), PushError> {
    let Some(edns) = query.edns else {
        return Ok(());
    };
    additional.opt(|opt| {
        opt.set_udp_payload_size(UDP_RECEIVED);
        opt.set_rcode(reply.rcode);
        opt.set_dnssec_ok(edns.dnssec_ok);
        Ok(())
    })
}

/// Octets of a query that this server reads over UDP, as OPT says it.
const UDP_RECEIVED: u16 = 1_232;

fn char_str(text: &[u8]) -> CharStr<&[u8]> {
    // The tables have no longer ones.
    CharStr::from_octets(text)
        .unwrap_or_else(|_| CharStr::from_octets(&[][..]).unwrap_or_else(|_| unreachable!()))
}

fn naptr<'r>(record: &'r tables::Naptr<'_>) -> Naptr<&'r [u8], &'r domain::base::Name<Vec<u8>>> {
    let template = record.template;
    Naptr::new(
        template.order,
        template.preference,
        char_str(template.flags.as_bytes()),
        char_str(template.service.as_bytes()),
        char_str(record.regexp.as_bytes()),
        record.replacement.as_ref(),
    )
}
