//! What RFC 6733 requires of the requests of the base protocol, beyond what reading them needs.

use crate::avp::{Avp, AvpWriter, encode_one};
use crate::dictionary::Dictionary;
use crate::fault::{Fault, ResultCode};
use crate::kind::{Kind, Tag};
use crate::known::{self, command};
use crate::message::Message;

/// Values of Inband-Security-Id (§6.10).
const NO_INBAND_SECURITY: u32 = 0;
const INBAND_TLS: u32 = 1;

/// Checks a CER: its flags (§3), the AVPs of its grammar (§5.3.1), its Vendor-Specific-Application-Ids (§6.11) and
/// its Inband-Security-Ids (§6.10), which count on a connection without TLS. `offers_tls` says whether TLS would
/// follow the CEA there.
///
/// # Errors
/// The Result-Code and Failed-AVP of the CEA.
pub fn check_cer<B: AsRef<[u8]>>(cer: &Message<B>, clear: bool, offers_tls: bool) -> Result<(), Fault> {
    cer.check_flags()?;
    check_occurrences(cer)?;
    present(cer, known::ORIGIN_HOST)?;
    present(cer, known::ORIGIN_REALM)?;
    present(cer, known::VENDOR_ID)?;
    present(cer, known::PRODUCT_NAME)?;
    let mut security = None;
    for avp in cer.avps() {
        let avp = avp?;
        if avp.is(known::VENDOR_SPECIFIC_APPLICATION_ID) {
            check_application(&avp)?;
        } else if avp.is(known::INBAND_SECURITY_ID) {
            let value = avp.read::<crate::kind::Unsigned32>()?;
            // Without the AVP, or with NO_INBAND_SECURITY or TLS that we offer, there is one in common.
            let is_common = value == NO_INBAND_SECURITY || (value == INBAND_TLS && offers_tls);
            security = Some(security.unwrap_or(false) || is_common);
        }
    }
    if clear && security == Some(false) {
        let reason = "the peer wants security after the capabilities exchange that is not offered here";
        return Err(Fault::new(ResultCode::NO_COMMON_SECURITY, reason));
    }
    Ok(())
}

/// Checks that a CER has a Host-IP-Address (RFC 6733 §5.3.1). Some peers leave it out now and then, and nothing but a
/// display depends on it, so the caller decides whether that is tolerated.
///
/// # Errors
/// The Result-Code and Failed-AVP of the CEA.
pub fn check_host_address<B: AsRef<[u8]>>(cer: &Message<B>) -> Result<(), Fault> {
    match cer.avps().find(known::HOST_IP_ADDRESS)? {
        Some(_) => Ok(()),
        None => Err(Fault::missing(known::HOST_IP_ADDRESS)),
    }
}

/// No AVP is there more often than the grammar of its command permits (§7.1.5): the first beyond is the Failed-AVP.
fn check_occurrences<B: AsRef<[u8]>>(request: &Message<B>) -> Result<(), Fault> {
    let dictionary = Dictionary::standard();
    let Some(command) = dictionary.command(request.command(), request.application()) else {
        return Ok(());
    };
    let rules = &command.request.rules;
    let mut counts = vec![0u32; rules.len()];
    for avp in request.avps() {
        let avp = avp?;
        let Some(index) = rules.iter().position(|rule| rule.key == avp.key()) else {
            continue;
        };
        counts[index] += 1;
        if counts[index] > rules[index].max {
            let reason = format!("AVP {} is there more often than the command permits", avp.key());
            return Err(Fault::new(ResultCode::AVP_OCCURS_TOO_MANY_TIMES, reason).about(avp.padded()));
        }
    }
    Ok(())
}

/// Exactly one of Auth-Application-Id and Acct-Application-Id is in a Vendor-Specific-Application-Id (§6.11).
fn check_application(avp: &Avp<'_>) -> Result<(), Fault> {
    let auth = avp.group().find(known::AUTH_APPLICATION_ID)?;
    let acct = avp.group().find(known::ACCT_APPLICATION_ID)?;
    let (code, failed, what) = match (auth, acct) {
        (Some(auth), Some(acct)) => {
            let mut both = AvpWriter::with_capacity(24);
            both.copy(&auth).copy(&acct);
            (ResultCode::AVP_OCCURS_TOO_MANY_TIMES, both.into_bytes(), "both")
        }
        (None, None) => {
            let mut neither = AvpWriter::with_capacity(24);
            neither
                .put(known::AUTH_APPLICATION_ID, 0)
                .put(known::ACCT_APPLICATION_ID, 0);
            (ResultCode::MISSING_AVP, neither.into_bytes(), "neither")
        }
        _ => return Ok(()),
    };
    let reason = format!(
        "a Vendor-Specific-Application-Id has {what} of Auth-Application-Id and Acct-Application-Id, one is right"
    );
    Err(Fault::new(code, reason).about(failed))
}

/// Checks a DWR or DPR: its flags (§3) and the AVPs of its grammar (§5.4.1, §5.5.1).
pub(super) fn check_base<B: AsRef<[u8]>>(request: &Message<B>) -> Result<(), Fault> {
    request.check_flags()?;
    check_occurrences(request)?;
    present(request, known::ORIGIN_HOST)?;
    present(request, known::ORIGIN_REALM)?;
    if request.command() == command::DISCONNECT_PEER
        && let Some(cause) = present(request, known::DISCONNECT_CAUSE)?
        && !(0..=2).contains(&cause)
    {
        let reason = format!("Disconnect-Cause {cause} is none of 0, 1 and 2");
        let failed = encode_one(known::DISCONNECT_CAUSE, cause);
        return Err(Fault::new(ResultCode::INVALID_AVP_VALUE, reason).about(failed));
    }
    Ok(())
}

/// The value of an AVP that has to be there.
fn present<K: Kind, B: AsRef<[u8]>>(
    message: &Message<B>,
    tag: Tag<K>,
) -> Result<Option<K::Value<'_>>, Fault> {
    match message.get(tag)? {
        None => Err(Fault::missing(tag)),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    /// The result of a CER with these AVPs behind its names, and the codes in the Failed-AVP.
    fn judged(avps: &str, clear: bool, offers_tls: bool) -> (u32, Vec<u32>) {
        let cer = format!("CER {{ Origin-Host = \"a\" Origin-Realm = \"r\" {avps} }}");
        outcome(|message| check_cer(message, clear, offers_tls), &cer)
    }

    fn outcome(check: impl Fn(&Message) -> Result<(), Fault>, text: &str) -> (u32, Vec<u32>) {
        let message = text::parse(text, Dictionary::standard()).unwrap();
        match check(&message) {
            Ok(()) => (2001, Vec::new()),
            Err(fault) => {
                let failed = fault.failed_avp.unwrap_or_default();
                let codes = crate::avp::Avps::new(&failed).flatten().map(|avp| avp.code);
                (fault.code.0, codes.collect())
            }
        }
    }

    const REST: &str = "Host-IP-Address = 192.0.2.1 Vendor-Id = 1 Product-Name = \"x\"";

    #[test]
    fn a_cer_has_what_its_grammar_requires() {
        let of = |avps: &str| judged(avps, true, false);
        assert_eq!(of(REST), (2001, vec![]));
        assert_eq!(of("Vendor-Id = 1 Product-Name = \"x\""), (2001, vec![]));
        let strict = |avps: &str| {
            let cer = format!("CER {{ Origin-Host = \"a\" Origin-Realm = \"r\" {avps} }}");
            outcome(check_host_address, &cer)
        };
        assert_eq!(strict("Vendor-Id = 1 Product-Name = \"x\""), (5005, vec![257]));
        assert_eq!(strict(REST), (2001, vec![]));
        assert_eq!(
            of("Host-IP-Address = ::1 Product-Name = \"x\""),
            (5005, vec![266])
        );
        assert_eq!(of("Host-IP-Address = ::1 Vendor-Id = 1"), (5005, vec![269]));
    }

    #[test]
    fn an_avp_that_may_be_there_once_is_there_once() {
        let of = |avps: &str| judged(&format!("{REST} {avps}"), true, false);
        assert_eq!(of("Origin-Host = \"b\""), (5009, vec![264]));
        assert_eq!(of("Origin-Realm = \"b\""), (5009, vec![296]));
        assert_eq!(of("Product-Name = \"y\""), (5009, vec![269]));
        assert_eq!(of("Origin-State-Id = 1 Origin-State-Id = 1"), (5009, vec![278]));
        let many = "Host-IP-Address = 192.0.2.2 Supported-Vendor-Id = 1 Supported-Vendor-Id = 2";
        assert_eq!(of(many).0, 2001);
        let dwr = "DWR { Origin-Host = \"a\" Origin-Realm = \"r\" Origin-Realm = \"r\" }";
        assert_eq!(outcome(check_base, dwr), (5009, vec![296]));
    }

    #[test]
    fn an_application_of_a_vendor_is_of_one_kind() {
        let of = |inside: &str| {
            let avps = format!("{REST} Vendor-Specific-Application-Id = {{ Vendor-Id = 10415 {inside} }}");
            judged(&avps, true, false)
        };
        assert_eq!(of("Auth-Application-Id = 4"), (2001, vec![]));
        assert_eq!(of("Acct-Application-Id = 3"), (2001, vec![]));
        assert_eq!(of(""), (5005, vec![258, 259]));
        assert_eq!(
            of("Auth-Application-Id = 4 Acct-Application-Id = 3"),
            (5009, vec![258, 259])
        );
    }

    #[test]
    fn tls_alone_needs_tls() {
        let tls = format!("{REST} Inband-Security-Id = 1");
        let either = format!("{REST} Inband-Security-Id = 1 Inband-Security-Id = 0");
        assert_eq!(judged(&tls, true, false).0, 5017);
        assert_eq!(judged(&tls, true, true).0, 2001);
        assert_eq!(judged(&tls, false, false).0, 2001);
        assert_eq!(judged(&either, true, false).0, 2001);
        // A mechanism that is not defined is none in common.
        let other = format!("{REST} Inband-Security-Id = 5");
        assert_eq!(judged(&other, true, true).0, 5017);
    }

    #[test]
    fn watchdogs_and_disconnections_have_what_their_grammars_require() {
        let of = |text: &str| outcome(check_base, text);
        let names = "Origin-Host = \"a\" Origin-Realm = \"r\"";
        assert_eq!(of(&format!("DWR {{ {names} }}")).0, 2001);
        assert_eq!(of("DWR { Origin-Realm = \"r\" }"), (5005, vec![264]));
        assert_eq!(of("DWR { Origin-Host = \"a\" }"), (5005, vec![296]));
        assert_eq!(of(&format!("DPR {{ {names} }}")), (5005, vec![273]));
        assert_eq!(of(&format!("DPR {{ {names} Disconnect-Cause = 2 }}")).0, 2001);
        assert_eq!(
            of(&format!("DPR {{ {names} Disconnect-Cause = 7 }}")),
            (5004, vec![273])
        );
    }
}
