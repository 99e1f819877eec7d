//! What measures read of a message, found in one pass over its top level.

use diameter_proto::{Message, Routing};
use dsr_app::{Digits, identity};

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
    /// The subscriber: of the request, also for its answer.
    pub(crate) imsi: Option<Digits>,
    /// Whether User-Names or Subscription-Ids name different subscribers.
    pub(crate) is_of_two: bool,
}

/// Subscription-Id-Type END_USER_IMSI (RFC 8506 §8.47).
const IMSI: i32 = 1;

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
            imsi: None,
            is_of_two: false,
        };
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
                (10415, 1407) => &mut facts.visited,
                _ => continue,
            };
            place.put(avp.data);
        }
        facts.subscriber(message);
        facts
    }

    fn subscriber<B: AsRef<[u8]>>(&mut self, message: &Message<B>) {
        let Ok(routing) = Routing::scan(message, b"") else {
            return;
        };
        self.imsi = identity::imsi(&routing);
        let listed = routing.subscription_ids().filter(|(kind, _)| *kind == IMSI);
        let listed = listed.map(|(_, data)| Digits::parse(data.as_bytes()));
        let is_other = |imsi: Digits| Some(imsi) != self.imsi;
        let named = self
            .names_subscriber()
            .then(|| self.imsi_of_user_name())
            .flatten();
        self.is_of_two = self.user_name.contradicts
            || listed.into_iter().any(|one| one != self.imsi)
            || named.is_some_and(is_other);
    }

    /// Whether a User-Name of this application is an IMSI. On Gx, Rx and Gy it may be any name.
    pub(crate) const fn names_subscriber(&self) -> bool {
        // S6a, S13, SLh, S6c, S6t: TS 29.272 §7.2, TS 29.173 §6.2, TS 29.338 §5.3.
        matches!(
            self.application,
            16_777_251 | 16_777_252 | 16_777_291 | 16_777_312
        )
    }

    fn imsi_of_user_name(&self) -> Option<Digits> {
        Digits::parse(self.user_name.first?)
    }

    /// Whether it is a request of S6a with this command.
    pub(crate) const fn is_s6a(&self, command: u32) -> bool {
        self.application == diameter_proto::known::application::S6A && self.command == command
    }

    /// The Result-Code, when it has four bytes.
    pub(crate) fn result_code(&self) -> Option<u32> {
        let bytes: [u8; 4] = self.result.first?.try_into().ok()?;
        Some(u32::from_be_bytes(bytes))
    }
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
