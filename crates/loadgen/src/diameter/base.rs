//! The identity of a simulated node, and the messages between neighbours (RFC 6733 §5.3 to §5.5).

use std::net::{IpAddr, Ipv4Addr};

use diameter_proto::known::{self, VENDOR_3GPP, command};
use diameter_proto::{CommandFlags, MessageBuilder, MessageRef, Origin, ResultCode};

/// Application ids from here on belong to vendors (RFC 6733 §11.3).
const FIRST_VENDOR_APPLICATION: u32 = 0x0100_0000;

/// Identity of a simulated node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// Its host and realm.
    pub origin: Origin,
    /// Its applications; those of vendors are 3GPP's.
    pub applications: Vec<u32>,
}

impl Introduction {
    /// A node of this name that speaks one application.
    #[must_use]
    pub fn new(host: impl Into<String>, realm: impl Into<String>, application: u32) -> Self {
        Self {
            origin: Origin::new(host, realm),
            applications: vec![application],
        }
    }

    /// Appends a CER.
    pub fn put_capabilities_request(&self, local: Option<IpAddr>, out: &mut Vec<u8>) {
        let mut cer = neighbour_request(command::CAPABILITIES_EXCHANGE, 1);
        self.put_capabilities(local, &mut cer);
        append(cer, out);
    }

    /// Appends the CEA to a CER: success when there is an application in common.
    pub fn put_capabilities_answer(
        &self,
        cer: MessageRef<'_>,
        local: Option<IpAddr>,
        out: &mut Vec<u8>,
    ) -> bool {
        let common = self.has_common_application(cer);
        let code = if common {
            ResultCode::SUCCESS
        } else {
            ResultCode::NO_COMMON_APPLICATION
        };
        let mut cea = MessageBuilder::answer(&cer);
        cea.put(known::RESULT_CODE, code.0);
        self.put_capabilities(local, &mut cea);
        append(cea, out);
        common
    }

    fn put_capabilities(&self, local: Option<IpAddr>, message: &mut MessageBuilder) {
        message
            .put(known::ORIGIN_HOST, &self.origin.host)
            .put(known::ORIGIN_REALM, &self.origin.realm)
            .put(
                known::HOST_IP_ADDRESS,
                local.unwrap_or(Ipv4Addr::LOCALHOST.into()).into(),
            )
            .put(known::VENDOR_ID, VENDOR_3GPP)
            .put(known::PRODUCT_NAME, "Signalbox lab")
            .put(known::SUPPORTED_VENDOR_ID, VENDOR_3GPP);
        for application in &self.applications {
            if *application >= FIRST_VENDOR_APPLICATION && *application != known::application::RELAY {
                message.group(known::VENDOR_SPECIFIC_APPLICATION_ID, |group| {
                    group
                        .put(known::VENDOR_ID, VENDOR_3GPP)
                        .put(known::AUTH_APPLICATION_ID, *application);
                });
            } else {
                message.put(known::AUTH_APPLICATION_ID, *application);
            }
        }
    }

    /// Whether the sender of this CER or CEA speaks an application of ours, or relays.
    pub fn has_common_application(&self, message: MessageRef<'_>) -> bool {
        let fits = |id: u32| id == known::application::RELAY || self.applications.contains(&id);
        message.walk().map_while(Result::ok).any(|avp| {
            if avp.is(known::VENDOR_SPECIFIC_APPLICATION_ID) {
                let inner = avp.group().get(known::AUTH_APPLICATION_ID);
                return inner.ok().flatten().is_some_and(fits);
            }
            avp.is(known::AUTH_APPLICATION_ID)
                && avp.read::<diameter_proto::kind::Unsigned32>().is_ok_and(fits)
        })
    }

    /// Appends a DWR.
    pub fn put_watchdog_request(&self, hop_by_hop: u32, out: &mut Vec<u8>) {
        let mut dwr = neighbour_request(command::DEVICE_WATCHDOG, hop_by_hop);
        dwr.put(known::ORIGIN_HOST, &self.origin.host)
            .put(known::ORIGIN_REALM, &self.origin.realm);
        append(dwr, out);
    }

    /// Appends an answer with no AVP but a result: DWA, DPA, STA, RAA …
    pub fn put_result(&self, request: MessageRef<'_>, code: ResultCode, out: &mut Vec<u8>) {
        let mut answer = MessageBuilder::answer(&request);
        if code.is_protocol_error() {
            *answer.flags_mut() = answer.flags_mut().with(CommandFlags::ERROR);
        }
        answer.result(code, &self.origin);
        append(answer, out);
    }

    /// Appends an answer with no AVP but an experimental result of 3GPP (RFC 6733 §7.6).
    pub fn put_experimental_result(&self, request: MessageRef<'_>, code: u32, out: &mut Vec<u8>) {
        let mut answer = MessageBuilder::answer(&request);
        answer
            .group(known::EXPERIMENTAL_RESULT, |group| {
                group
                    .put(known::VENDOR_ID, known::VENDOR_3GPP)
                    .put(known::EXPERIMENTAL_RESULT_CODE, code);
            })
            .put(known::ORIGIN_HOST, &self.origin.host)
            .put(known::ORIGIN_REALM, &self.origin.realm);
        append(answer, out);
    }
}

fn neighbour_request(code: u32, hop_by_hop: u32) -> MessageBuilder {
    let mut request = MessageBuilder::request(code, known::application::COMMON);
    *request.flags_mut() = CommandFlags::REQUEST;
    request.identifiers(hop_by_hop, hop_by_hop);
    request
}

/// Appends a built message. No message of the lab comes near the bound of the length.
pub fn append(builder: MessageBuilder, out: &mut Vec<u8>) {
    if let Ok(message) = builder.finish() {
        out.extend_from_slice(message.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diameter_proto::Message;
    use diameter_proto::known::application;

    #[test]
    fn neighbours_find_what_they_have_in_common() {
        let (mut cer, mut cea) = (Vec::new(), Vec::new());
        let mme = Introduction::new("mme.example", "example", application::S6A);
        mme.put_capabilities_request(None, &mut cer);
        let cer = Message::parse(&cer[..]).unwrap();
        assert_eq!((cer.command(), cer.flags().to_string()), (257, "R".to_owned()));
        for (application, common, code) in [
            (application::S6A, true, 2001),
            (application::RX, false, 5010),
            (application::RELAY, false, 5010),
        ] {
            let other = Introduction::new("other.example", "example", application);
            cea.clear();
            assert_eq!(other.put_capabilities_answer(cer, None, &mut cea), common);
            let cea = Message::parse(&cea[..]).unwrap();
            assert_eq!(cea.require(known::RESULT_CODE).unwrap(), code);
            assert_eq!(
                mme.has_common_application(cea),
                application != self::application::RX
            );
        }
    }
}
