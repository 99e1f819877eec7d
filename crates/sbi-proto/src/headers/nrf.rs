//! The NRF that a request names.

use std::fmt;

use http2::Name;

use super::lexis::{HeaderError, is_token, split, trim, unquote};
use super::target::TargetApiRoot;
use super::{SbiHeader, names};

/// `3gpp-Sbi-Nrf-Uri`: the NRF that an SCP is to use for this request (TS 29.500 §5.2.3.2.12).
///
/// Its URIs are API URIs, `{apiRoot}/nnrf-disc/v1` for example; kept here is the API root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NrfUri {
    /// Where Nnrf_NFDiscovery is.
    pub discovery: Option<TargetApiRoot>,
    /// Where Nnrf_NFManagement is.
    pub management: Option<TargetApiRoot>,
    /// Where Nnrf_AccessToken is.
    pub tokens: Option<TargetApiRoot>,
    /// Whether Nnrf_NFDiscovery wants an access token (`oauth2-requested-services`).
    pub discovery_wants_token: bool,
    /// Whether Nnrf_NFManagement wants one.
    pub management_wants_token: bool,
    /// Parameters that are not known here, with their values as they came.
    pub others: Vec<(String, String)>,
}

const DISCOVERY: &str = "nnrf-disc";
const MANAGEMENT: &str = "nnrf-nfm";
const TOKENS: &str = "nnrf-oauth2";
const WANT_TOKENS: &str = "oauth2-requested-services";

/// How the API URIs of each service go on after the API root (TS 29.510 §6.1.1, §6.2.1, §6.3.1).
fn endings(service: &str) -> &'static [&'static str] {
    match service {
        DISCOVERY => &["/nnrf-disc/v1"],
        MANAGEMENT => &["/nnrf-nfm/v1"],
        _ => &["/oauth2/token", "/oauth2"],
    }
}

/// The API root of an API URI in quotes. A bare API root is taken as one, too.
fn root_of(service: &str, value: &str) -> Option<TargetApiRoot> {
    let uri = unquote(value)?.trim_end_matches('/');
    let mut endings = endings(service).iter();
    let root = endings.find_map(|ending| uri.strip_suffix(ending));
    TargetApiRoot::parse(root.unwrap_or(uri)).ok()
}

impl SbiHeader for NrfUri {
    const NAME: Name<'static> = names::NRF_URI;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let fault = || {
            HeaderError::of::<Self>(
                "expected such as `nnrf-disc: \"http://nrf:80/nnrf-disc/v1\"; nnrf-oauth2: \"http://nrf:80/oauth2\"`",
            )
        };
        let mut found = Self::default();
        for part in split(text, b';') {
            let (name, value) = part.split_once(':').ok_or_else(fault)?;
            let (name, value) = (trim(name), trim(value));
            // Literals of ABNF have no case (RFC 5234 §2.3).
            let name = &*name.to_ascii_lowercase();
            match name {
                DISCOVERY => found.discovery = Some(root_of(name, value).ok_or_else(fault)?),
                MANAGEMENT => found.management = Some(root_of(name, value).ok_or_else(fault)?),
                TOKENS => found.tokens = Some(root_of(name, value).ok_or_else(fault)?),
                WANT_TOKENS => {
                    for service in value.split('&').map(trim) {
                        match &*service.to_ascii_lowercase() {
                            DISCOVERY => found.discovery_wants_token = true,
                            MANAGEMENT => found.management_wants_token = true,
                            _ => return Err(fault()),
                        }
                    }
                }
                name if is_token(name) && !value.is_empty() => {
                    found.others.push((name.to_owned(), value.to_owned()));
                }
                _ => return Err(fault()),
            }
        }
        // The ABNF asks for a parameter at least.
        match found == Self::default() {
            true => Err(fault()),
            false => Ok(found),
        }
    }
}

impl fmt::Display for NrfUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let services = [
            (DISCOVERY, &self.discovery, "/nnrf-disc/v1"),
            (MANAGEMENT, &self.management, "/nnrf-nfm/v1"),
            (TOKENS, &self.tokens, "/oauth2"),
        ];
        let mut separator = "";
        for (name, root, ending) in services {
            if let Some(root) = root {
                write!(f, "{separator}{name}: \"{root}{ending}\"")?;
                separator = "; ";
            }
        }
        let wants = [
            (DISCOVERY, self.discovery_wants_token),
            (MANAGEMENT, self.management_wants_token),
        ];
        let wants: Vec<&str> = wants
            .into_iter()
            .filter_map(|(name, wants)| wants.then_some(name))
            .collect();
        if !wants.is_empty() {
            write!(f, "{separator}{WANT_TOKENS}: {}", wants.join(" & "))?;
            separator = "; ";
        }
        for (name, value) in &self.others {
            write!(f, "{separator}{name}: {value}")?;
            separator = "; ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_of_an_nrf_are_read_and_written() {
        let text = "nnrf-disc: \"https://nrf1.example/a/nnrf-disc/v1\"; nnrf-oauth2: \"http://10.0.0.1:80/oauth2\"; \
                    oauth2-requested-services: nnrf-disc & nnrf-nfm; later: \"http://x;y\"";
        let nrf = NrfUri::parse(text).unwrap();
        let root = |root: &Option<TargetApiRoot>| root.as_ref().map(ToString::to_string);
        assert_eq!(root(&nrf.discovery).unwrap(), "https://nrf1.example/a");
        assert_eq!(root(&nrf.tokens).unwrap(), "http://10.0.0.1:80");
        assert_eq!(nrf.management, None);
        assert!(nrf.discovery_wants_token && nrf.management_wants_token);
        assert_eq!(nrf.others, [("later".to_owned(), "\"http://x;y\"".to_owned())]);
        assert_eq!(nrf.to_string(), text);
        assert_eq!(NrfUri::parse(&nrf.to_string()).unwrap(), nrf);
    }

    #[test]
    fn one_nrf_is_one_however_its_uri_ends() {
        let of = |uri: &str| NrfUri::parse(&format!("nnrf-disc:\"{uri}\"")).unwrap().discovery;
        let bare = of("http://nrf:80");
        assert!(bare.is_some() && bare == of("http://nrf:80/") && bare == of("http://NRF:80/nnrf-disc/v1/"));
        let tokens = |uri: &str| NrfUri::parse(&format!("nnrf-oauth2: \"{uri}\"")).unwrap().tokens;
        assert_eq!(tokens("http://nrf:80/oauth2/token"), bare);
    }

    #[test]
    fn what_names_no_nrf_is_refused() {
        for text in [
            "",
            ";",
            "nnrf-disc",
            "nnrf-disc: http://nrf",
            "nnrf-disc: \"ftp://nrf\"",
            "nnrf-disc: \"http://user@nrf\"",
            "oauth2-requested-services: nudm-sdm",
            "oauth2-requested-services: ",
            "x y: \"http://nrf\"",
        ] {
            assert!(NrfUri::parse(text).is_err(), "{text}");
        }
    }
}
