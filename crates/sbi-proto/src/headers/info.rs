//! Headers that are lists of parameters.

use std::fmt;

use http2::Name;

use super::lexis::{HeaderError, assignment, is_tchar, is_token, number, split, trim, unquote};
use super::{SbiHeader, names};

/// Parameters `name=token` in the order in which they stood.
type Params = Vec<(String, String)>;

/// `3gpp-Sbi-Request-Info`: facts about how the request came to be (`retrans`, `redirect`, `reason`,
/// `idempotency-key`, …).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo(pub Params);

/// `3gpp-Sbi-Response-Info`: facts about how the response came to be (`request-retransmitted`, `nfinst`,
/// `no-retry`, …).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseInfo(pub Params);

/// `3gpp-Sbi-NF-Peer-Info`: source and destination (`srcinst`, `dstinst`, `srcscp`, …).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NfPeerInfo(pub Params);

/// `3gpp-Sbi-Selection-Info`: whether to select again and whom not to select; one list per element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectionInfo(pub Vec<Params>);

/// `3gpp-Sbi-Correlation-Info`: identities of the subscriber, type and value (`imsi`, `001010000000001`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorrelationInfo(pub Params);

/// `3gpp-Sbi-Consumer-Info`: services that a notification consumer supports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerInfo(pub Vec<ConsumerService>);

/// One element of [`ConsumerInfo`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerService {
    /// `service`.
    pub service: String,
    /// `apiversion`: major versions.
    pub versions: Vec<u32>,
    /// `supportedfeatures`: hexadecimal digits, perhaps none.
    pub features: Option<String>,
    /// Quoted parameters: `acceptencoding`, `callback-uri-prefix`, `intraPlmnCallbackRoot`, ….
    pub more: Params,
}

fn find<'a>(params: &'a Params, name: &str) -> Option<&'a str> {
    params
        .iter()
        .find(|(found, _)| found == name)
        .map(|(_, value)| &**value)
}

fn parse_params(text: &str) -> Option<Params> {
    let each = split(text, b';').map(|part| {
        let (name, value) = assignment(part)?;
        // Literals of ABNF have no case (RFC 5234 §2.3).
        (is_token(name) && is_token(value)).then(|| (name.to_ascii_lowercase(), value.to_owned()))
    });
    each.collect::<Option<Params>>()
        .filter(|params| !params.is_empty())
}

fn write_params(f: &mut fmt::Formatter<'_>, params: &Params, between: char) -> fmt::Result {
    for (i, (name, value)) in params.iter().enumerate() {
        if i > 0 {
            f.write_str("; ")?;
        }
        write!(f, "{name}{between}{value}")?;
    }
    Ok(())
}

macro_rules! params_header {
    ($type:ident, $name:ident, $expected:literal) => {
        impl $type {
            /// The value of a parameter.
            #[must_use]
            pub fn get(&self, name: &str) -> Option<&str> {
                find(&self.0, name)
            }
        }

        impl SbiHeader for $type {
            const NAME: Name<'static> = names::$name;

            fn parse(text: &str) -> Result<Self, HeaderError> {
                parse_params(text)
                    .map(Self)
                    .ok_or_else(|| HeaderError::of::<Self>($expected))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_params(f, &self.0, '=')
            }
        }
    };
}

params_header!(
    RequestInfo,
    REQUEST_INFO,
    "expected `name=value` pairs separated by semicolons"
);
params_header!(
    ResponseInfo,
    RESPONSE_INFO,
    "expected `name=value` pairs separated by semicolons"
);
params_header!(
    NfPeerInfo,
    NF_PEER_INFO,
    "expected pairs like `srcinst=UUID; dstinst=UUID`"
);

impl SbiHeader for SelectionInfo {
    const NAME: Name<'static> = names::SELECTION_INFO;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let elements: Option<Vec<Params>> = split(text, b',').map(parse_params).collect();
        elements
            .filter(|elements| !elements.is_empty())
            .map(Self)
            .ok_or_else(|| {
                HeaderError::of::<Self>(
                    "expected `reselection=true; not-select-nfinst=…` elements separated by commas",
                )
            })
    }
}

impl fmt::Display for SelectionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, element) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write_params(f, element, '=')?;
        }
        Ok(())
    }
}

impl CorrelationInfo {
    /// The identity of this type (`imsi`, `msisdn`, …).
    #[must_use]
    pub fn get(&self, kind: &str) -> Option<&str> {
        find(&self.0, kind)
    }
}

impl SbiHeader for CorrelationInfo {
    const NAME: Name<'static> = names::CORRELATION_INFO;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let each = split(text, b';').map(|part| {
            // The type has no `-`, so the first one ends it.
            let (kind, value) = part.split_once('-')?;
            let value_fits = !value.is_empty() && value.bytes().all(|b| is_tchar(b) || b == b'@');
            (is_token(kind) && value_fits).then(|| (kind.to_ascii_lowercase(), value.to_owned()))
        });
        let identities = each
            .collect::<Option<Params>>()
            .filter(|identities| !identities.is_empty());
        identities.map(Self).ok_or_else(|| {
            HeaderError::of::<Self>("expected identities like `imsi-001010000000001; msisdn-49…`")
        })
    }
}

impl fmt::Display for CorrelationInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_params(f, &self.0, '-')
    }
}

impl ConsumerService {
    fn parse(text: &str) -> Option<Self> {
        let mut service = Self::default();
        for part in split(text, b';') {
            let (name, value) = assignment(part)?;
            match &*name.to_ascii_lowercase() {
                "service" => service.service = Some(value).filter(|value| is_token(value))?.to_owned(),
                "apiversion" => {
                    let inside = value.strip_prefix('(')?.strip_suffix(')')?;
                    let versions = inside.split([' ', '\t']).filter(|version| !version.is_empty());
                    service.versions = versions.map(number).collect::<Option<_>>()?;
                }
                "supportedfeatures" => {
                    let hex = value.bytes().all(|b| b.is_ascii_hexdigit());
                    service.features = Some(hex.then(|| value.to_owned())?);
                }
                _ => {
                    let value = unquote(value)?;
                    service.more.push((
                        Some(name).filter(|name| is_token(name))?.to_owned(),
                        value.to_owned(),
                    ));
                }
            }
        }
        (!service.service.is_empty()).then_some(service)
    }
}

impl SbiHeader for ConsumerInfo {
    const NAME: Name<'static> = names::CONSUMER_INFO;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let services: Option<Vec<_>> = split(trim(text), b',').map(ConsumerService::parse).collect();
        services
            .filter(|services| !services.is_empty())
            .map(Self)
            .ok_or_else(|| {
                HeaderError::of::<Self>("expected `service=NAME; apiversion=(1 2); supportedfeatures=HEX`")
            })
    }
}

impl fmt::Display for ConsumerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, service) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            let versions: Vec<String> = service.versions.iter().map(u32::to_string).collect();
            write!(
                f,
                "service={}; apiversion=({})",
                service.service,
                versions.join(" ")
            )?;
            if let Some(features) = &service.features {
                write!(f, "; supportedfeatures={features}")?;
            }
            service
                .more
                .iter()
                .try_for_each(|(name, value)| write!(f, "; {name}=\"{value}\""))?;
        }
        Ok(())
    }
}
