//! What measures read of a message, found in one pass over it.

use diameter_proto::{Avp, Message, Routing, known};
use dsr_app::{Digits, identity};

use crate::record::Node;

/// An AVP that a message may have once. One that comes again with another value is a contradiction: a peer further on may
/// read the other one.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Once<'a> {
    first: Option<&'a [u8]>,
    /// How often it is there.
    pub(crate) count: u32,
    contradicts: bool,
}

impl<'a> Once<'a> {
    fn put(&mut self, data: &'a [u8]) {
        self.count += 1;
        match self.first {
            None => self.first = Some(data),
            Some(first) => self.contradicts |= first != data,
        }
    }

    /// The value.
    ///
    /// # Errors
    /// When it is there with different values.
    pub(crate) fn get(&self, name: &'static str) -> Result<Option<&'a [u8]>, String> {
        if self.contradicts {
            return Err(format!("{name} is there with different values"));
        }
        Ok(self.first)
    }

    /// Whether it is there with different values.
    pub(crate) const fn contradicts(&self) -> bool {
        self.contradicts
    }

    /// The first value, for lines.
    pub(crate) const fn shown(&self) -> Option<&'a [u8]> {
        self.first
    }
}

/// What measures read of a message.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) is_request: bool,
    pub(crate) application: u32,
    pub(crate) command: u32,
    /// Code of the first AVP of the IETF; none: the first AVP is a vendor's.
    pub(crate) first: Option<u32>,
    pub(crate) session_id: Once<'a>,
    pub(crate) origin_host: Once<'a>,
    pub(crate) origin_realm: Once<'a>,
    pub(crate) destination_host: Once<'a>,
    pub(crate) destination_realm: Once<'a>,
    pub(crate) user_name: Once<'a>,
    pub(crate) visited: Once<'a>,
    pub(crate) result: Once<'a>,
    pub(crate) request_type: Once<'a>,
    pub(crate) ulr_flags: Once<'a>,
    /// The subscriber, for lines: of the request, also for its answer. What decides reads [`Facts::subscriber`].
    pub(crate) imsi: Option<Digits>,
    /// Whether User-Names or Subscription-Ids name different subscribers.
    is_of_two: bool,
}

/// Subscription-Id-Type END_USER_IMSI (RFC 8506 §8.47).
const IMSI: [u8; 4] = [0, 0, 0, 1];
/// The least digits of an IMSI: those of its network and one more (TS 23.003 §2.2).
const LEAST_IMSI: usize = 6;

impl<'a> Facts<'a> {
    /// Reads a message. What follows an AVP that is framed wrong is not read; the router refuses such requests.
    pub(crate) fn new<B: AsRef<[u8]>>(message: &'a Message<B>) -> Self {
        let mut facts = Self {
            is_request: message.is_request(),
            application: message.application(),
            command: message.command(),
            first: None,
            session_id: Once::default(),
            origin_host: Once::default(),
            origin_realm: Once::default(),
            destination_host: Once::default(),
            destination_realm: Once::default(),
            user_name: Once::default(),
            visited: Once::default(),
            result: Once::default(),
            request_type: Once::default(),
            ulr_flags: Once::default(),
            imsi: None,
            is_of_two: false,
        };
        let names_subscriber = facts.names_subscriber();
        let mut named = Named::default();
        for (index, avp) in message.avps().map_while(Result::ok).enumerate() {
            if index == 0 && avp.vendor == 0 {
                facts.first = Some(avp.code);
            }
            let place = match (avp.vendor, avp.code) {
                (0, 263) => &mut facts.session_id,
                (0, 264) => &mut facts.origin_host,
                (0, 296) => &mut facts.origin_realm,
                (0, 293) => &mut facts.destination_host,
                (0, 283) => &mut facts.destination_realm,
                (0, 1) => &mut facts.user_name,
                (0, 268) => &mut facts.result,
                (0, 416) => &mut facts.request_type,
                (10415, 1405) => &mut facts.ulr_flags,
                (10415, 1407) => &mut facts.visited,
                (0, 443) => {
                    named.read_subscription(&avp);
                    continue;
                }
                // Of S6t and S6c (TS 29.336 §6.4.2).
                (10415, 3102) if names_subscriber => {
                    named.read_identifier(&avp);
                    continue;
                }
                _ => continue,
            };
            place.put(avp.data);
        }
        facts.find_subscriber(message, named);
        facts
    }

    /// As facts of the answer to a request: a subscriber and where it is are those of the request.
    pub(crate) fn answering(self, request: &Facts<'a>) -> Self {
        Self {
            imsi: request.imsi,
            is_of_two: request.is_of_two,
            visited: request.visited,
            ..self
        }
    }

    /// The subscriber.
    ///
    /// # Errors
    /// When different ones are named: a peer further on may read the other one.
    pub(crate) fn subscriber(&self) -> Result<Option<Digits>, &'static str> {
        match self.is_of_two {
            true => Err("names two subscribers"),
            false => Ok(self.imsi),
        }
    }

    /// Whether something is there with different values.
    pub(crate) fn contradicts(&self) -> bool {
        let places = [
            &self.session_id,
            &self.origin_host,
            &self.origin_realm,
            &self.destination_host,
            &self.destination_realm,
            &self.user_name,
            &self.visited,
            &self.result,
            &self.request_type,
            &self.ulr_flags,
        ];
        self.is_of_two || places.into_iter().any(Once::contradicts)
    }

    fn find_subscriber<B: AsRef<[u8]>>(&mut self, message: &'a Message<B>, named: Named) {
        let Named {
            mut identified,
            listed,
            is_broken,
        } = named;
        self.is_of_two = self.user_name.contradicts || is_broken || listed.differ || identified.differ;
        if !self.names_subscriber() {
            // A User-Name may be any name here, and counts where there is no other.
            self.imsi = match listed.first {
                Some(first) => first,
                None => Routing::scan(message, b"")
                    .ok()
                    .and_then(|routing| identity::imsi(&routing)),
            };
            return;
        }
        // User-Name counts (TS 29.272 §5.2.1.1.1); a Subscription-Id may not say otherwise.
        let name = self.user_name.first.map(imsi);
        self.imsi = name.or(identified.first).flatten();
        for other in [name, listed.first].into_iter().flatten() {
            identified.put(other);
        }
        self.is_of_two |= identified.differ;
    }

    /// Whether a User-Name of this application is an IMSI. On Gx, Rx and Gy it may be any name.
    pub(crate) const fn names_subscriber(&self) -> bool {
        // S6a, S13, SLg, SLh, S7a, S6c, SGd, S6t: TS 29.272 §7.2, TS 29.172 §7.3, TS 29.173 §6.2, TS 29.338 §5.3 and §6.3,
        // TS 29.336 §8.2.
        matches!(
            self.application,
            16_777_251
                | 16_777_252
                | 16_777_255
                | 16_777_291
                | 16_777_308
                | 16_777_312
                | 16_777_313
                | 16_777_345
        )
    }

    /// Whether it is a request of S6a with this command.
    pub(crate) const fn is_s6a(&self, command: u32) -> bool {
        self.application == diameter_proto::known::application::S6A && self.command == command
    }

    /// The kind of node that an ULR registers: without S6a/S6d-Indicator (bit 1 of ULR-Flags, TS 29.272 §7.3.7) an SGSN.
    pub(crate) fn registers_at(&self) -> Node {
        match self.ulr_flags.first {
            Some([.., last]) if last & 2 == 0 => Node::Sgsn,
            _ => Node::Mme,
        }
    }

    /// The Result-Code, when it has four bytes.
    pub(crate) fn result_code(&self) -> Option<u32> {
        let bytes: [u8; 4] = self.result.first?.try_into().ok()?;
        Some(u32::from_be_bytes(bytes))
    }
}

/// Subscribers in places of one kind; none in a place that should have an IMSI and has not.
#[derive(Default)]
struct Subscribers {
    first: Option<Option<Digits>>,
    differ: bool,
}

impl Subscribers {
    fn put(&mut self, name: Option<Digits>) {
        let first = *self.first.get_or_insert(name);
        self.differ |= first != name;
    }
}

/// The subscribers that the groups of a message name.
#[derive(Default)]
struct Named {
    /// In User-Identifier.
    identified: Subscribers,
    /// In Subscription-Id.
    listed: Subscribers,
    /// A Subscription-Id of an IMSI has two types or data, which may be read either way.
    is_broken: bool,
}

impl Named {
    fn read_identifier(&mut self, group: &Avp<'_>) {
        let names = group.group().map_while(Result::ok);
        names
            .filter(|name| name.is(known::USER_NAME))
            .for_each(|name| self.identified.put(imsi(name.data)));
    }

    fn read_subscription(&mut self, group: &Avp<'_>) {
        let (mut kind, mut data) = (Once::default(), Once::default());
        for avp in group.group().map_while(Result::ok) {
            if avp.is(known::SUBSCRIPTION_ID_TYPE) {
                kind.put(avp.data);
            } else if avp.is(known::SUBSCRIPTION_ID_DATA) {
                data.put(avp.data);
            }
        }
        self.is_broken |= kind.contradicts || data.contradicts;
        if kind.first == Some(&IMSI)
            && let Some(data) = data.first
        {
            self.listed.put(imsi(data));
        }
    }
}

/// 6 to 15 digits alone: no realm, and no digit that says how to authenticate.
fn imsi(text: &[u8]) -> Option<Digits> {
    Digits::parse(text).filter(|digits| digits.as_bytes().len() >= LEAST_IMSI)
}

/// Commands of S6a (TS 29.272 §7.2.2).
pub(crate) mod s6a {
    pub(crate) const ULR: u32 = 316;
    pub(crate) const CLR: u32 = 317;
    pub(crate) const AIR: u32 = 318;
    pub(crate) const IDR: u32 = 319;
    pub(crate) const DSR: u32 = 320;
    pub(crate) const PUR: u32 = 321;
    pub(crate) const RSR: u32 = 322;
    pub(crate) const NOR: u32 = 323;
}
