//! IMSIs and MSISDNs in the forms in which AVPs have them.

use dsr_app::Digits;
use numbers::{Key, Kind};

use super::Address;
use super::name::{Uri, mcc_of_realm, uri};

/// Fewest digits of an IMSI: those of the country, the network and one of the subscriber (TS 23.003 §2.2).
pub(super) const LEAST_IMSI: usize = 6;
const MOST_IMSI: usize = 15;

pub(super) fn key(kind: Kind, digits: &Digits) -> Option<Address> {
    Key::new(kind, digits.as_bytes()).ok().map(Address::Number)
}

/// An IMSI alone, or the user of a NAI or SIP URI: `IMSI@ims.mncNNN.mccNNN.3gppnetwork.org` (TS 23.003 §13.3, §13.4B), behind
/// the digit that says how to authenticate (§14.3, §19.3.2), decorated for another network (§14.5, §19.3.3). In a realm
/// that is not of 3GPP an IMSI has 15 digits: shorter numbers there are as likely telephone numbers.
pub(super) fn imsi(text: &str) -> Option<Digits> {
    let (user, realm) = match uri(text) {
        Some(Uri::Sip { user, host, .. }) => (user, host),
        Some(Uri::Tel(_)) => return None,
        None => match text.split_once('@') {
            Some(parts) => parts,
            None => return plain(text),
        },
    };
    // `home!user@visited`.
    let (home, user) = user.rsplit_once('!').unwrap_or((realm, user));
    let mcc = mcc_of_realm(home);
    let is_behind = |rest: &[u8]| {
        // A shorter IMSI behind the digit has the length of one without: the realm says where it begins.
        let is_home = |digits: &[u8]| mcc.as_ref().is_some_and(|mcc| digits.starts_with(mcc.as_bytes()));
        rest.len() == MOST_IMSI || (is_home(rest) && !is_home(user.as_bytes()))
    };
    let digits = match user.as_bytes() {
        // EAP-AKA, EAP-SIM and EAP-AKA' (TS 23.003 §19.3.2); the other leading digits are of pseudonyms.
        [b'0' | b'1' | b'6', rest @ ..] if is_behind(rest) => Digits::parse(rest)?,
        user => Digits::parse(user)?,
    };
    let least = if mcc.is_some() { LEAST_IMSI } else { MOST_IMSI };
    (digits.as_bytes().len() >= least).then_some(digits)
}

fn plain(text: &str) -> Option<Digits> {
    Digits::parse(text.as_bytes()).filter(|digits| digits.as_bytes().len() >= LEAST_IMSI)
}

/// Digits of an international number with or without `+`, or that of a `tel:` (RFC 3966 §5.1.4) or `sip:` URI (RFC 3261
/// §19.1.6), where `+` says that it is international: others mean nothing without their context.
pub(super) fn msisdn(text: &str) -> Option<Digits> {
    let international = |number: &str| {
        let digits = number.strip_prefix('+')?;
        Digits::parse(digits.as_bytes())
    };
    match uri(text) {
        Some(Uri::Tel(number)) => international(&number),
        Some(Uri::Sip { user, .. }) => {
            // `%2B` is `+` (RFC 3261 §19.1.2).
            let plus = user.get(..3).filter(|start| start.eq_ignore_ascii_case("%2b"));
            match plus.and_then(|_| user.get(3..)) {
                Some(digits) => international(&format!("+{digits}")),
                None => international(user),
            }
        }
        None => Digits::parse(text.strip_prefix('+').unwrap_or(text).as_bytes()),
    }
}
