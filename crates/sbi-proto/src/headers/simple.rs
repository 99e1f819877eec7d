//! Headers with one value.

use std::fmt;
use std::time::Duration;

use http2::Name;
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use super::lexis::{HeaderError, assignment, number, strip_prefix, trim};
use super::{SbiHeader, names};

/// `3gpp-Sbi-Message-Priority`: 0 (highest) to 31 (lowest).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessagePriority(u8);

/// `3gpp-Sbi-Max-Rsp-Time`: how long the sender waits for the response, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxRspTime(pub u32);

/// `3gpp-Sbi-Max-Forward-Hops`: how many more SCPs may forward the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxForwardHops(pub u8);

/// `3gpp-Sbi-Sender-Timestamp`: when the sender sent the message, to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderTimestamp(pub OffsetDateTime);

/// `3gpp-Sbi-Origination-Timestamp`: when the procedure that a request belongs to was begun, to the millisecond (TS 29.502).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginationTimestamp(pub OffsetDateTime);

/// `3gpp-Sbi-Originating-Network-Id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginatingNetworkId {
    /// Mobile country code, three digits.
    pub mcc: String,
    /// Mobile network code, two or three digits.
    pub mnc: String,
    /// Network identifier of a stand-alone non-public network, eleven hexadecimal digits.
    pub nid: Option<String>,
    /// Who set the header: `SCP-` or `SEPP-` and an FQDN.
    pub source: Option<String>,
}

/// `3gpp-Sbi-Access-Scope`: scope tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessScope(pub Vec<String>);

/// `3gpp-Sbi-Client-Credentials`: a signed assertion (JWT), not verified here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCredentials(pub String);

/// `3gpp-Sbi-Source-NF-Client-Credentials`: the assertion of the NF that a DCCF or MFAF asks on behalf of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceNfClientCredentials(pub String);

impl MessagePriority {
    /// A priority of 0 to 31; `None` for other numbers.
    #[must_use]
    pub fn new(priority: u8) -> Option<Self> {
        (priority <= 31).then_some(Self(priority))
    }

    /// 0 (highest) to 31.
    #[must_use]
    pub fn get(self) -> u8 {
        self.0
    }
}

impl SbiHeader for MessagePriority {
    const NAME: Name<'static> = names::MESSAGE_PRIORITY;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let text = trim(text);
        let fits = text.len() == 1 || !text.starts_with('0');
        let priority = number(text).filter(|_| fits).and_then(Self::new);
        priority.ok_or_else(|| HeaderError::of::<Self>("expected a number from 0 to 31"))
    }
}

impl fmt::Display for MessagePriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl MaxRspTime {
    /// As a duration.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.0.into())
    }
}

impl SbiHeader for MaxRspTime {
    const NAME: Name<'static> = names::MAX_RSP_TIME;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let millis = number(trim(text)).filter(|millis| *millis <= 99_999);
        millis
            .map(Self)
            .ok_or_else(|| HeaderError::of::<Self>("expected milliseconds, one to five digits"))
    }
}

impl fmt::Display for MaxRspTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl SbiHeader for MaxForwardHops {
    const NAME: Name<'static> = names::MAX_FORWARD_HOPS;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let fault = || HeaderError::of::<Self>("expected `N; nodetype=scp` with N from 0 to 99");
        let (hops, node) = text.split_once(';').ok_or_else(fault)?;
        let hops = number(trim(hops)).filter(|hops| *hops <= 99).ok_or_else(fault)?;
        let of_scp = assignment(node).is_some_and(|(name, value)| {
            name.eq_ignore_ascii_case("nodetype") && value.eq_ignore_ascii_case("scp")
        });
        if of_scp { Ok(Self(hops)) } else { Err(fault()) }
    }
}

impl fmt::Display for MaxForwardHops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; nodetype=scp", self.0)
    }
}

const TIMESTAMP: &[BorrowedFormatItem<'_>] = format_description!(
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second].[subsecond digits:3] GMT"
);

fn read_timestamp<H: SbiHeader>(text: &str) -> Result<OffsetDateTime, HeaderError> {
    let fault = |_| HeaderError::of::<H>("expected a date like `Sun, 04 Aug 2019 08:49:37.845 GMT`");
    let parsed = time::PrimitiveDateTime::parse(trim(text), TIMESTAMP).map_err(fault)?;
    Ok(parsed.assume_utc())
}

fn write_timestamp(time: OffsetDateTime, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let text = time.to_offset(time::UtcOffset::UTC).format(TIMESTAMP);
    f.write_str(&text.map_err(|_| fmt::Error)?)
}

impl SbiHeader for SenderTimestamp {
    const NAME: Name<'static> = names::SENDER_TIMESTAMP;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        read_timestamp::<Self>(text).map(Self)
    }
}

impl fmt::Display for SenderTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_timestamp(self.0, f)
    }
}

impl SbiHeader for OriginationTimestamp {
    const NAME: Name<'static> = names::ORIGINATION_TIMESTAMP;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        read_timestamp::<Self>(text).map(Self)
    }
}

impl fmt::Display for OriginationTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_timestamp(self.0, f)
    }
}

impl SbiHeader for OriginatingNetworkId {
    const NAME: Name<'static> = names::ORIGINATING_NETWORK_ID;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let fault = || HeaderError::of::<Self>("expected `MCC-MNC`, perhaps `-NID` and `; src: SCP-FQDN`");
        let (network, source) = match text.split_once(';') {
            Some((network, source)) => (network, Some(source)),
            None => (text, None),
        };
        let mut parts = trim(network).split('-');
        let digits = |part: &str, lens: &[usize]| {
            lens.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())
        };
        let mcc = parts.next().filter(|mcc| digits(mcc, &[3])).ok_or_else(fault)?;
        let mnc = parts
            .next()
            .filter(|mnc| digits(mnc, &[2, 3]))
            .ok_or_else(fault)?;
        let nid = parts.next();
        let nid_fits = nid.is_none_or(|nid| nid.len() == 11 && nid.bytes().all(|b| b.is_ascii_hexdigit()));
        let source = match source {
            None => None,
            Some(source) => {
                let value = strip_prefix(trim(source), "src:").map(trim).ok_or_else(fault)?;
                let name = strip_prefix(value, "SCP-")
                    .or_else(|| strip_prefix(value, "SEPP-"))
                    .unwrap_or("");
                let fits = name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
                if name.len() < 4 || !fits {
                    return Err(fault());
                }
                Some(value.to_owned())
            }
        };
        if !nid_fits || parts.next().is_some() {
            return Err(fault());
        }
        Ok(Self {
            mcc: mcc.to_owned(),
            mnc: mnc.to_owned(),
            nid: nid.map(str::to_owned),
            source,
        })
    }
}

impl fmt::Display for OriginatingNetworkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.mcc, self.mnc)?;
        if let Some(nid) = &self.nid {
            write!(f, "-{nid}")?;
        }
        match &self.source {
            Some(source) => write!(f, "; src: {source}"),
            None => Ok(()),
        }
    }
}

impl SbiHeader for AccessScope {
    const NAME: Name<'static> = names::ACCESS_SCOPE;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let scopes: Vec<&str> = trim(text).split(' ').filter(|scope| !scope.is_empty()).collect();
        let fits = |scope: &&str| {
            scope
                .bytes()
                .all(|b| (0x21..=0x7e).contains(&b) && b != b'"' && b != b'\\')
        };
        if scopes.is_empty() || !scopes.iter().all(fits) {
            return Err(HeaderError::of::<Self>(
                "expected scope tokens separated by spaces",
            ));
        }
        Ok(Self(scopes.into_iter().map(str::to_owned).collect()))
    }
}

impl fmt::Display for AccessScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// Whether a text has the form of a JWT in compact serialisation.
fn is_jwt(text: &str) -> bool {
    let part_fits = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    text.split('.').count() == 3 && text.split('.').all(part_fits)
}

macro_rules! jwt_header {
    ($type:ident, $name:ident) => {
        impl SbiHeader for $type {
            const NAME: Name<'static> = names::$name;

            fn parse(text: &str) -> Result<Self, HeaderError> {
                let text = trim(text);
                is_jwt(text).then(|| Self(text.to_owned())).ok_or_else(|| {
                    HeaderError::of::<Self>("expected a JWT: three base64url parts separated by dots")
                })
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

jwt_header!(ClientCredentials, CLIENT_CREDENTIALS);
jwt_header!(SourceNfClientCredentials, SOURCE_NF_CLIENT_CREDENTIALS);
