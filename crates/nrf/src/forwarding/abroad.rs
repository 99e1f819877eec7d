//! Ids of subscriptions that are at the NRF of another network: the consumer changes and ends them here (TS 29.510
//! §5.2.2.5.3, §5.2.2.6.3). Such an id begins with the PLMN (§6.1.6.2.16, `subscriptionId`); behind it is where the
//! subscription is, so that every NRF of a set knows, also after a restart.

use std::fmt::Write as _;

use model::PlmnId;
use sbi::headers::{SbiHeader, TargetApiRoot};

/// Longest id that is read.
const LONGEST: usize = 2_048;

/// A subscription at the NRF of another network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Abroad {
    /// The API root of that NRF.
    pub(crate) root: TargetApiRoot,
    /// Its id there.
    pub(crate) id: String,
}

impl Abroad {
    /// The id that the consumer gets.
    pub(crate) fn shown(&self, plmn: &PlmnId) -> String {
        let mut shown = plmn.to_digits() + "-";
        for byte in format!("{} {}", self.root, self.id).bytes() {
            // Writing to a String cannot fail.
            let _ = write!(shown, "{byte:02x}");
        }
        shown
    }

    /// Reads the id that a consumer sends; `None` for those of this NRF's own subscriptions.
    pub(crate) fn parse(shown: &str) -> Option<Self> {
        let (plmn, place) = shown.split_once('-').filter(|_| shown.len() <= LONGEST)?;
        if !(5..=6).contains(&plmn.len()) || !plmn.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let mut bytes = Vec::with_capacity(place.len() / 2);
        for pair in place.as_bytes().chunks(2) {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
            bytes.push(u8::from_str_radix(pair, 16).ok()?);
        }
        let place = String::from_utf8(bytes).ok()?;
        let (root, id) = place.split_once(' ')?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let plain = !id.is_empty() && id != "." && id != ".." && id.bytes().all(is_plain);
        Some(Self {
            root: TargetApiRoot::parse(root).ok().filter(|_| plain)?,
            id: id.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_say_where_a_subscription_is() {
        let abroad = Abroad {
            root: TargetApiRoot::parse("https://nrf.example.org:8443/a").unwrap(),
            id: "4947a69a-f61b".into(),
        };
        let shown = abroad.shown(&"262-02".parse().unwrap());
        assert!(
            shown.starts_with("26202-") && !shown[6..].contains('-'),
            "{shown}"
        );
        assert_eq!(Abroad::parse(&shown), Some(abroad.clone()));
        let escaping = Abroad {
            id: "../nf-instances".into(),
            ..abroad
        };
        for other in [
            escaping.shown(&"262-02".parse().unwrap()),
            "4947a69af61b4bc1b9da47c9c5d14b64".to_owned(),
            "26202-".to_owned(),
            "26202-zz".to_owned(),
            "26202-6".to_owned(),
            "2620-68".to_owned(),
        ] {
            assert_eq!(Abroad::parse(&other), None, "{other}");
        }
    }
}
