use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use http::Uri;
use http::uri::Authority;

/// Where requests are sent: scheme, host and port. Cheap to clone and to compare.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    scheme: Scheme,
    /// `host` or `host:port`, lower case, without the dot of the root behind a name and without zeros before a port.
    authority: Arc<str>,
}

/// `http` or `https`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Cleartext HTTP/2 with prior knowledge.
    Http,
    /// HTTP/2 over TLS.
    Https,
}

/// A text that names no origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid origin: expected `http://host:port` or `https://host:port`")]
pub struct OriginError(String);

impl Origin {
    /// Of a scheme and an authority (`host` or `host:port`, IPv6 in brackets).
    ///
    /// # Errors
    /// When the authority is not one, or names a user.
    pub fn new(scheme: Scheme, authority: &str) -> Result<Self, OriginError> {
        let fault = || OriginError(format!("{}://{authority}", scheme.as_str()));
        let parsed: Authority = authority.parse().map_err(|_| fault())?;
        // A port that is none must not become the scheme's.
        let after_host = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
        let port_fits = after_host
            .rsplit_once(':')
            .is_none_or(|(_, port)| port.is_empty() || port.parse::<u16>().is_ok());
        if parsed.host().is_empty() || authority.contains('@') || !port_fits {
            return Err(fault());
        }
        // A port that is none (0, 99999) would be taken for that of the scheme.
        let behind = authority.rsplit_once(':').map(|(_, port)| port);
        if let Some(port) = behind.filter(|port| !port.contains(']'))
            && !(port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0))
        {
            return Err(fault());
        }
        let mut authority = Cow::Borrowed(authority);
        if authority.bytes().any(|b| b.is_ascii_uppercase()) {
            authority = authority.to_ascii_lowercase().into();
        }
        if let Some(usual) = usual(&authority) {
            authority = usual.into();
        }
        Ok(Self {
            scheme,
            authority: authority.into(),
        })
    }

    /// Of an absolute URI; its path and query do not matter.
    ///
    /// # Errors
    /// When the URI is not absolute or its scheme is neither `http` nor `https`.
    pub fn of_uri(uri: &Uri) -> Result<Self, OriginError> {
        let fault = || OriginError(uri.to_string());
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => return Err(fault()),
        };
        Self::new(scheme, uri.authority().ok_or_else(fault)?.as_str())
    }

    /// The scheme.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// `host` or `host:port`.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The host, IPv6 without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        let host = match self.port_at() {
            Some(at) => &self.authority[..at],
            None => &self.authority,
        };
        host.strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host)
    }

    /// The port, that of the scheme where none is named.
    #[must_use]
    pub fn port(&self) -> u16 {
        let named = self
            .port_at()
            .and_then(|at| self.authority[at + 1..].parse().ok());
        named.unwrap_or(match self.scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        })
    }

    fn port_at(&self) -> Option<usize> {
        let colon = self.authority.rfind(':')?;
        (!self.authority[colon..].contains(']')).then_some(colon)
    }
}

/// A name that ends with the dot of the root (RFC 1034 §3.1) is the same name, a port with zeros before it the same port
/// (RFC 3986 §3.2.3: digits). Returns the authority without them where it has any.
fn usual(authority: &str) -> Option<String> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let name = host
        .strip_suffix('.')
        .filter(|name| !name.is_empty() && !name.ends_with('.'))
        .unwrap_or(host);
    let digits = port.map(|port| port.trim_start_matches('0'));
    ((name, digits) != (host, port)).then(|| match digits {
        Some(digits) => format!("{name}:{digits}"),
        None => name.to_owned(),
    })
}

impl Scheme {
    /// As in a URI.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let uri: Uri = text.parse().map_err(|_| OriginError(text.to_owned()))?;
        Self::of_uri(&uri)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let part = |text: &str| {
            let origin: Origin = text.parse().unwrap();
            (origin.host().to_owned(), origin.port())
        };
        assert_eq!(
            part("http://UDM.example.org/nudm"),
            ("udm.example.org".into(), 80)
        );
        assert_eq!(part("https://127.0.0.1:8443"), ("127.0.0.1".into(), 8443));
        assert_eq!(part("https://[::1]:9"), ("::1".into(), 9));
        assert_eq!(part("https://[::1]"), ("::1".into(), 443));
    }

    #[test]
    fn one_place_is_one_origin() {
        let origin = |text: &str| text.parse::<Origin>().unwrap();
        for (written, same) in [
            ("http://udm.example.:8000", "http://udm.example:8000"),
            ("http://UDM.example.", "http://udm.example"),
            ("http://udm.example:08000", "http://udm.example:8000"),
            ("https://[::1]:0443", "https://[::1]:443"),
            ("http://10.0.0.1:00080", "http://10.0.0.1:80"),
        ] {
            assert_eq!(origin(written), origin(same));
            assert_eq!(origin(written).to_string(), same);
        }
        assert!("http://a:00".parse::<Origin>().is_err());
        // Labels are not empty: no other spelling of a name.
        assert_eq!(origin("http://192..").to_string(), "http://192..");
    }

    #[test]
    fn what_is_no_origin() {
        for text in [
            "",
            "/path",
            "ftp://a",
            "http://",
            "http://u@h",
            "a:80",
            "http://a:99999",
            "http://[::1]:65536",
            "http://a b",
            "http://a:0",
            "http://a:99999",
            "http://a:",
            "http://a:+1",
            "http://[::1]:0",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }
}
