//! Capabilities of a node in CER and CEA (RFC 6733 §5.3), and the applications that two nodes have in common.

use std::net::IpAddr;

use crate::avp::encode_one;
use crate::build::{MessageBuilder, Origin};
use crate::fault::{Fault, ResultCode};
use crate::kind::{AddressValue, DiameterIdentity, Tag};
use crate::known::{self, application};
use crate::message::Message;

/// An application as announced.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ApplicationId {
    /// Application-Id.
    pub id: u32,
    /// The vendor, when it is announced in a Vendor-Specific-Application-Id.
    pub vendor: Option<u32>,
    /// Whether it is announced for accounting.
    pub accounting: bool,
}

impl ApplicationId {
    /// An application of the IETF for authentication and authorisation.
    #[must_use]
    pub const fn auth(id: u32) -> Self {
        Self {
            id,
            vendor: None,
            accounting: false,
        }
    }

    /// An application of 3GPP.
    #[must_use]
    pub const fn tgpp(id: u32) -> Self {
        Self {
            id,
            vendor: Some(known::VENDOR_3GPP),
            accounting: false,
        }
    }

    /// What a relay announces.
    pub const RELAY: Self = Self::auth(application::RELAY);
}

/// Capabilities of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Origin-Host and Origin-Realm.
    pub origin: Origin,
    /// Host-IP-Address.
    pub addresses: Vec<IpAddr>,
    /// Vendor-Id of the implementation.
    pub vendor_id: u32,
    /// Product-Name.
    pub product: String,
    /// Origin-State-Id.
    pub origin_state_id: Option<u32>,
    /// Firmware-Revision.
    pub firmware: Option<u32>,
    /// Supported-Vendor-Id.
    pub supported_vendors: Vec<u32>,
    /// The applications, in all the ways to announce them.
    pub applications: Vec<ApplicationId>,
    /// Whether TLS is offered in Inband-Security-Id.
    pub inband_tls: bool,
}

/// A CER with more addresses, vendors or applications than this is invalid: real nodes have far fewer.
const MAX_ITEMS: usize = 256;
/// The octets of a DiameterIdentity at most: those of a domain name (RFC 1035 §2.3.4).
pub const MAX_IDENTITY: usize = 255;

impl Capabilities {
    /// A node of these names without applications.
    #[must_use]
    pub fn new(host: impl Into<String>, realm: impl Into<String>) -> Self {
        Self {
            origin: Origin::new(host, realm),
            addresses: Vec::new(),
            vendor_id: 0,
            product: "Signalbox".to_owned(),
            origin_state_id: None,
            firmware: None,
            supported_vendors: Vec::new(),
            applications: Vec::new(),
            inband_tls: false,
        }
    }

    /// The same node, announcing these applications and the vendors they belong to.
    #[must_use]
    pub fn with_applications(mut self, applications: impl IntoIterator<Item = ApplicationId>) -> Self {
        self.applications.extend(applications);
        let mut vendors: Vec<u32> = self.applications.iter().filter_map(|app| app.vendor).collect();
        vendors.extend(&self.supported_vendors);
        vendors.sort_unstable();
        vendors.dedup();
        self.supported_vendors = vendors;
        self
    }

    /// Appends the AVPs that CER and CEA share, except Result-Code.
    pub fn write(&self, message: &mut MessageBuilder) {
        message
            .put(known::ORIGIN_HOST, &self.origin.host)
            .put(known::ORIGIN_REALM, &self.origin.realm);
        for address in &self.addresses {
            message.put(known::HOST_IP_ADDRESS, (*address).into());
        }
        message
            .put(known::VENDOR_ID, self.vendor_id)
            .put(known::PRODUCT_NAME, &self.product);
        message.maybe(known::ORIGIN_STATE_ID, self.origin_state_id);
        for vendor in &self.supported_vendors {
            message.put(known::SUPPORTED_VENDOR_ID, *vendor);
        }
        for application in &self.applications {
            Self::write_application(application, message);
        }
        if self.inband_tls {
            message.put(known::INBAND_SECURITY_ID, 1);
        }
        message.maybe(known::FIRMWARE_REVISION, self.firmware);
    }

    fn write_application(application: &ApplicationId, message: &mut MessageBuilder) {
        let tag = if application.accounting {
            known::ACCT_APPLICATION_ID
        } else {
            known::AUTH_APPLICATION_ID
        };
        let Some(vendor) = application.vendor else {
            message.put(tag, application.id);
            return;
        };
        message.group(known::VENDOR_SPECIFIC_APPLICATION_ID, |group| {
            group.put(known::VENDOR_ID, vendor).put(tag, application.id);
        });
        // A peer whose requests name no vendor looks for the application without one as well.
        if is_named_without_vendor(application) {
            message.put(tag, application.id);
        }
    }

    /// Reads a CER or CEA.
    ///
    /// # Errors
    /// When a required AVP is missing, or one is not what it should be.
    pub fn read<B: AsRef<[u8]>>(message: &Message<B>) -> Result<Self, Fault> {
        let host = identity(message, known::ORIGIN_HOST)?;
        let mut found = Self::new(host, identity(message, known::ORIGIN_REALM)?);
        // An error CEA may lack these AVPs, and some peers leave them out of others as well.
        found.vendor_id = message.get(known::VENDOR_ID)?.unwrap_or_default();
        found.product = message.get(known::PRODUCT_NAME)?.unwrap_or_default().to_owned();
        found.origin_state_id = message.get(known::ORIGIN_STATE_ID)?;
        found.firmware = message.get(known::FIRMWARE_REVISION)?;
        for avp in message.avps() {
            let avp = avp?;
            if avp.is(known::HOST_IP_ADDRESS) {
                if let AddressValue::Ip(ip) = avp.read::<crate::kind::Address>()? {
                    keep(&mut found.addresses, ip)?;
                }
            } else if avp.is(known::SUPPORTED_VENDOR_ID) {
                keep(
                    &mut found.supported_vendors,
                    avp.read::<crate::kind::Unsigned32>()?,
                )?;
            } else if avp.is(known::AUTH_APPLICATION_ID) || avp.is(known::ACCT_APPLICATION_ID) {
                let application = ApplicationId {
                    id: avp.read::<crate::kind::Unsigned32>()?,
                    vendor: None,
                    accounting: avp.is(known::ACCT_APPLICATION_ID),
                };
                keep(&mut found.applications, application)?;
            } else if avp.is(known::VENDOR_SPECIFIC_APPLICATION_ID) {
                let group = avp.group();
                let vendor = Some(group.clone().require(known::VENDOR_ID)?);
                for (tag, accounting) in [
                    (known::AUTH_APPLICATION_ID, false),
                    (known::ACCT_APPLICATION_ID, true),
                ] {
                    if let Some(id) = group.clone().get(tag)? {
                        keep(
                            &mut found.applications,
                            ApplicationId {
                                id,
                                vendor,
                                accounting,
                            },
                        )?;
                    }
                }
            } else if avp.is(known::INBAND_SECURITY_ID) {
                found.inband_tls |= avp.read::<crate::kind::Unsigned32>()? == 1;
            }
        }
        found.join_forms();
        Ok(found)
    }

    /// An application that is announced with its vendor and without it is one.
    fn join_forms(&mut self) {
        let named: Vec<u32> = self
            .applications
            .iter()
            .filter(|app| is_named_without_vendor(app))
            .map(|app| app.id)
            .collect();
        let is_double =
            |app: &ApplicationId| app.vendor.is_none() && !app.accounting && named.contains(&app.id);
        self.applications.retain(|app| !is_double(app));
    }

    /// Whether this node announced itself as a relay.
    #[must_use]
    pub fn is_relay(&self) -> bool {
        self.applications.iter().any(|app| app.id == application::RELAY)
    }

    /// Whether requests of that application may be sent to this node.
    #[must_use]
    pub fn serves(&self, id: u32) -> bool {
        self.applications
            .iter()
            .any(|app| app.id == id || app.id == application::RELAY)
    }

    /// The application ids that both announced; a relay has all applications in common with any node (§2.4).
    ///
    /// # Errors
    /// `DIAMETER_NO_COMMON_APPLICATION` when there is none.
    pub fn common(&self, other: &Self) -> Result<Vec<u32>, Fault> {
        let ids = |of: &Self, with: &Self| {
            let mut ids: Vec<u32> = of
                .applications
                .iter()
                .map(|app| app.id)
                .filter(|&id| with.serves(id))
                .collect();
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        let common = if other.is_relay() {
            ids(self, other)
        } else {
            ids(other, self)
        };
        if common.is_empty() {
            return Err(Fault::new(
                ResultCode::NO_COMMON_APPLICATION,
                format!(
                    "{} and {} announce no application in common",
                    self.origin.host, other.origin.host
                ),
            ));
        }
        Ok(common)
    }
}

/// Whether an application of a vendor is announced without it as well.
fn is_named_without_vendor(app: &ApplicationId) -> bool {
    let is_policy = application::NAMED_WITHOUT_VENDOR.contains(&app.id);
    is_policy && app.vendor == Some(known::VENDOR_3GPP) && !app.accounting
}

/// The value of an AVP that names a node or realm: an FQDN in ASCII (RFC 6733 §4.3.1), so of at most [`MAX_IDENTITY`]
/// octets. The Failed-AVP holds the beginning of a longer one, so that the length of an answer does not depend on the
/// request.
fn identity<B: AsRef<[u8]>>(message: &Message<B>, tag: Tag<DiameterIdentity>) -> Result<&str, Fault> {
    let value = message.require(tag)?;
    let what = if value.len() > MAX_IDENTITY {
        "is longer than 255 octets"
    } else if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        "is not a name in ASCII"
    } else {
        return Ok(value);
    };
    let beginning = value
        .get(..value.floor_char_boundary(MAX_IDENTITY))
        .unwrap_or_default();
    let reason = format!("AVP {} {what}", tag.key);
    Err(Fault::new(ResultCode::INVALID_AVP_VALUE, reason).about(encode_one(tag, beginning)))
}

fn keep<T>(list: &mut Vec<T>, item: T) -> Result<(), Fault> {
    if list.len() >= MAX_ITEMS {
        return Err(Fault::new(
            ResultCode::AVP_OCCURS_TOO_MANY_TIMES,
            format!("more than {MAX_ITEMS} addresses, vendors or applications"),
        ));
    }
    list.push(item);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: &str, applications: &[ApplicationId]) -> Capabilities {
        let mut node = Capabilities::new(host, "realm").with_applications(applications.iter().copied());
        node.addresses = vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        node
    }

    #[test]
    fn capabilities_survive_the_wire() {
        let mut sent = node(
            "a",
            &[
                ApplicationId::auth(4),
                ApplicationId {
                    id: 3,
                    vendor: None,
                    accounting: true,
                },
                ApplicationId::tgpp(16_777_251),
            ],
        );
        (sent.origin_state_id, sent.firmware, sent.inband_tls) = (Some(7), Some(1), true);
        let mut builder = MessageBuilder::request(257, 0);
        sent.write(&mut builder);
        assert_eq!(Capabilities::read(&builder.finish().unwrap()).unwrap(), sent);
    }

    #[test]
    fn policy_applications_are_announced_with_and_without_their_vendor() {
        let sent = node(
            "pcf",
            &[
                ApplicationId::tgpp(application::RX),
                ApplicationId::tgpp(application::S6A),
            ],
        );
        let mut builder = MessageBuilder::request(257, 0);
        sent.write(&mut builder);
        let message = builder.finish().unwrap();
        let bare = message.avps().map(Result::unwrap);
        let bare = bare.filter(|avp| avp.is(known::AUTH_APPLICATION_ID));
        let bare: Vec<u32> = bare
            .map(|avp| avp.read::<crate::kind::Unsigned32>().unwrap())
            .collect();
        assert_eq!(bare, [application::RX]);
        // Both forms are one application.
        assert_eq!(Capabilities::read(&message).unwrap(), sent);
        let mut builder = MessageBuilder::request(257, 0);
        node("af", &[ApplicationId::auth(application::RX)]).write(&mut builder);
        let read = Capabilities::read(&builder.finish().unwrap()).unwrap();
        assert_eq!(read.common(&sent).unwrap(), [application::RX]);
    }

    #[test]
    fn a_name_that_cannot_be_is_refused_with_its_beginning() {
        let long = "x".repeat(60_000);
        for (host, realm) in [
            (long.as_str(), "realm"),
            ("a", long.as_str()),
            (&long[..256], "realm"),
            ("a\nb", "realm"),
            ("a", "r\u{1b}[2J"),
            ("é", "realm"),
        ] {
            let mut other = Capabilities::new(host, realm);
            other.addresses = vec!["192.0.2.1".parse().unwrap()];
            let mut builder = MessageBuilder::request(257, 0);
            other.write(&mut builder);
            let fault = Capabilities::read(&builder.finish().unwrap()).unwrap_err();
            assert_eq!(fault.code, ResultCode::INVALID_AVP_VALUE, "{}", fault.reason);
            assert!(fault.failed_avp.is_some_and(|avp| avp.len() <= 8 + 256));
            assert!(fault.reason.len() < 100, "{}", fault.reason);
        }
        let mut builder = MessageBuilder::request(257, 0);
        node(&long[..255], &[ApplicationId::RELAY]).write(&mut builder);
        assert!(Capabilities::read(&builder.finish().unwrap()).is_ok());
    }

    #[test]
    fn applications_in_common() {
        let hss = node(
            "hss",
            &[ApplicationId::tgpp(16_777_251), ApplicationId::tgpp(16_777_216)],
        );
        let mme = node(
            "mme",
            &[ApplicationId::tgpp(16_777_251), ApplicationId::tgpp(16_777_252)],
        );
        let dra = node("dra", &[ApplicationId::RELAY]);
        let pcrf = node("pcrf", &[ApplicationId::tgpp(16_777_238)]);
        assert_eq!(hss.common(&mme).unwrap(), [16_777_251]);
        assert_eq!(dra.common(&mme).unwrap(), [16_777_251, 16_777_252]);
        assert_eq!(mme.common(&dra).unwrap(), [16_777_251, 16_777_252]);
        assert_eq!(dra.common(&dra).unwrap(), [application::RELAY]);
        assert_eq!(
            pcrf.common(&mme).unwrap_err().code,
            ResultCode::NO_COMMON_APPLICATION
        );
    }

    #[test]
    fn a_cer_without_a_name_names_what_is_missing() {
        let mut builder = MessageBuilder::request(257, 0);
        builder.put(known::ORIGIN_HOST, "a");
        let fault = Capabilities::read(&builder.finish().unwrap()).unwrap_err();
        assert_eq!(fault.code, ResultCode::MISSING_AVP);
    }
}
