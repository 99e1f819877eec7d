//! The AVPs that routing needs, found in one pass over the top level of a message.

use crate::avp::{Avp, Avps, WalkError};
use crate::known;
use crate::message::Message;

/// The AVPs that routing reads, as slices of the message. The pass also checks the frame of every top-level AVP, so a
/// relay that scanned a message may forward it.
///
/// Values are bytes: a router compares names, it does not read them. Where an AVP that may occur once occurs
/// more often, the first counts.
#[derive(Clone, Default, Debug)]
pub struct Routing<'a> {
    /// Session-Id.
    pub session_id: Option<&'a [u8]>,
    /// Origin-Host.
    pub origin_host: Option<&'a [u8]>,
    /// Origin-Realm.
    pub origin_realm: Option<&'a [u8]>,
    /// Destination-Host.
    pub destination_host: Option<&'a [u8]>,
    /// Destination-Realm.
    pub destination_realm: Option<&'a [u8]>,
    /// User-Name: the IMSI on S6a.
    pub user_name: Option<&'a [u8]>,
    /// Result-Code, when it has four bytes.
    pub result_code: Option<u32>,
    /// Experimental-Result, whole: read it with [`Routing::experimental_result`] when it matters.
    pub experimental_result: Option<&'a [u8]>,
    /// DRMP (RFC 7944), 0 the highest priority to 15 the lowest.
    pub priority: Option<u8>,
    /// MSISDN (TS 29.329) at the top level, in TBCD.
    pub msisdn: Option<&'a [u8]>,
    /// Public-Identity (TS 29.229) at the top level.
    pub public_identity: Option<&'a [u8]>,
    /// User-Identity (TS 29.329): a group with Public-Identity, MSISDN or External-Identifier.
    pub user_identity: Option<&'a [u8]>,
    /// Framed-IP-Address (RFC 7155).
    pub framed_ip: Option<&'a [u8]>,
    /// Framed-IPv6-Prefix (RFC 7155).
    pub framed_ipv6_prefix: Option<&'a [u8]>,
    /// The first Subscription-Id (RFC 8506): a group. There may be more: [`Routing::subscription_ids`].
    subscription_id: Option<Avps<'a>>,
    /// The first Route-Record, and what follows: [`Routing::route_records`].
    first_route_record: Option<Avps<'a>>,
    /// How many Route-Records there are.
    pub route_records: u32,
    /// Whether one of the Route-Records is our name, as given to [`Routing::scan`].
    pub loops: bool,
    /// Whether there is an OC-Supported-Features (RFC 7683).
    pub supports_overload: bool,
    /// Whether there is an OC-OLR (RFC 7683).
    pub overload_report: bool,
    /// Whether there is a Load (RFC 8583).
    pub load: bool,
}

impl<'a> Routing<'a> {
    /// Looks at every top-level AVP once. `own_host` is our name, for loop detection.
    ///
    /// # Errors
    /// At the first AVP that is framed wrong.
    pub fn scan<B: AsRef<[u8]>>(message: &'a Message<B>, own_host: &[u8]) -> Result<Self, WalkError<'a>> {
        Self::scan_as(message, |name| name.eq_ignore_ascii_case(own_host))
    }

    /// As [`Routing::scan`], for a node of several names: `is_own` says whether a Route-Record is ours.
    ///
    /// # Errors
    /// At the first AVP that is framed wrong.
    pub fn scan_as<B: AsRef<[u8]>>(
        message: &'a Message<B>,
        is_own: impl Fn(&[u8]) -> bool,
    ) -> Result<Self, WalkError<'a>> {
        let mut found = Self::default();
        let mut walk = message.avps();
        loop {
            let here = walk.clone();
            let Some(avp) = walk.next() else { return Ok(found) };
            let avp = avp?;
            match avp.vendor {
                0 => found.ietf(&avp, here, &is_own),
                known::VENDOR_3GPP => found.tgpp(&avp),
                _ => {}
            }
        }
    }

    #[inline]
    fn ietf(&mut self, avp: &Avp<'a>, here: Avps<'a>, is_own: impl Fn(&[u8]) -> bool) {
        match avp.code {
            263 => keep(&mut self.session_id, avp),
            264 => keep(&mut self.origin_host, avp),
            296 => keep(&mut self.origin_realm, avp),
            293 => keep(&mut self.destination_host, avp),
            283 => keep(&mut self.destination_realm, avp),
            1 => keep(&mut self.user_name, avp),
            268 if self.result_code.is_none() => {
                self.result_code = avp.data.try_into().ok().map(u32::from_be_bytes);
            }
            297 => keep(&mut self.experimental_result, avp),
            282 => {
                if self.route_records == 0 {
                    self.first_route_record = Some(here);
                }
                self.route_records += 1;
                self.loops |= is_own(avp.data);
            }
            301 if self.priority.is_none() => {
                // An invalid value counts as absent (RFC 7944 §9.1 gives 0 to 15).
                self.priority = match avp.data {
                    [0, 0, 0, priority @ 0..=15] => Some(*priority),
                    _ => None,
                };
            }
            8 => keep(&mut self.framed_ip, avp),
            97 => keep(&mut self.framed_ipv6_prefix, avp),
            443 if self.subscription_id.is_none() => self.subscription_id = Some(here),
            621 => self.supports_overload = true,
            623 => self.overload_report = true,
            650 => self.load = true,
            _ => {}
        }
    }

    #[inline]
    fn tgpp(&mut self, avp: &Avp<'a>) {
        match avp.code {
            701 => keep(&mut self.msisdn, avp),
            601 => keep(&mut self.public_identity, avp),
            700 => keep(&mut self.user_identity, avp),
            _ => {}
        }
    }

    /// Type and data of each Subscription-Id (RFC 8506 §8.46): 0 E.164, 1 IMSI, 2 SIP URI, 3 NAI. Broken
    /// ones are left out.
    pub fn subscription_ids(&self) -> impl Iterator<Item = (i32, &'a str)> + use<'a> {
        self.subscription_id
            .clone()
            .into_iter()
            .flatten()
            .map_while(Result::ok)
            .filter(|avp| avp.is(known::SUBSCRIPTION_ID))
            .filter_map(|avp| {
                let kind = avp.group().get(known::SUBSCRIPTION_ID_TYPE).ok()??;
                let data = avp.group().get(known::SUBSCRIPTION_ID_DATA).ok()??;
                Some((kind, data))
            })
    }

    /// The hosts that the request has passed, by its Route-Records.
    pub fn route_records(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.first_route_record
            .clone()
            .into_iter()
            .flatten()
            .map_while(Result::ok)
            .filter(|avp| avp.is(known::ROUTE_RECORD))
            .map(|avp| avp.data)
    }

    /// Vendor and code of the Experimental-Result.
    #[must_use]
    pub fn experimental_result(&self) -> Option<(u32, u32)> {
        let group = Avps::new(self.experimental_result?);
        let vendor = group.clone().get(known::VENDOR_ID).ok()??;
        let code = group.get(known::EXPERIMENTAL_RESULT_CODE).ok()??;
        Some((vendor, code))
    }
}

#[inline]
fn keep<'a>(place: &mut Option<&'a [u8]>, avp: &Avp<'a>) {
    if place.is_none() {
        *place = Some(avp.data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::MessageBuilder;

    #[test]
    fn one_pass_finds_what_routing_needs() {
        let mut builder = MessageBuilder::request(272, known::application::GX);
        builder
            .put(known::SESSION_ID, "pgw;1;2")
            .put(known::DRMP, 3)
            .put(known::DESTINATION_REALM, "home.example")
            .put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, 1]);
        for (kind, data) in [(1, "001010000000001"), (0, "49170")] {
            builder.group(known::SUBSCRIPTION_ID, |group| {
                group
                    .put(known::SUBSCRIPTION_ID_TYPE, kind)
                    .put(known::SUBSCRIPTION_ID_DATA, data);
            });
        }
        builder
            .put(known::ROUTE_RECORD, "a.example")
            .put(known::ROUTE_RECORD, "US.example");
        let message = builder.finish().unwrap();
        let routing = Routing::scan(&message, b"us.example").unwrap();
        assert_eq!(routing.session_id, Some(&b"pgw;1;2"[..]));
        assert_eq!(routing.destination_realm, Some(&b"home.example"[..]));
        assert_eq!(routing.destination_host, None);
        assert_eq!(routing.priority, Some(3));
        assert_eq!((routing.route_records, routing.loops), (2, true));
        assert_eq!(
            routing.subscription_ids().collect::<Vec<_>>(),
            [(1, "001010000000001"), (0, "49170")]
        );
        assert!(!Routing::scan(&message, b"other").unwrap().loops);
    }

    #[test]
    fn results_are_found_in_answers() {
        let mut builder = MessageBuilder::request(316, known::application::S6A);
        builder.group(known::EXPERIMENTAL_RESULT, |group| {
            group
                .put(known::VENDOR_ID, known::VENDOR_3GPP)
                .put(known::EXPERIMENTAL_RESULT_CODE, 5001);
        });
        let message = builder.finish().unwrap();
        let routing = Routing::scan(&message, b"").unwrap();
        assert_eq!(routing.experimental_result(), Some((10415, 5001)));
        assert_eq!(routing.result_code, None);
    }
}
