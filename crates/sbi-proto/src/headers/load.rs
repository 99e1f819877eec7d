//! Load and overload control information (TS 29.500 §6.3, §6.4).

use std::fmt;
use std::time::Duration;

use http2::Name;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use super::lexis::{HeaderError, is_token, number, split, trim, unquote};
use super::{SbiHeader, names};

/// `3gpp-Sbi-Lci`: loads; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lci(pub Vec<LciElement>);

/// `3gpp-Sbi-Oci`: overloads; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oci(pub Vec<OciElement>);

/// A load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LciElement {
    /// When it was measured; an older element never replaces a newer one.
    pub timestamp: OffsetDateTime,
    /// Load in percent, 0 to 100.
    pub load: u8,
    /// Whose load.
    pub scope: Scope,
}

/// An overload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciElement {
    /// When it was measured; an older element never replaces a newer one.
    pub timestamp: OffsetDateTime,
    /// How long it holds; zero ends it.
    pub validity: Duration,
    /// By how much the traffic is to be reduced, in percent, 0 to 100.
    pub reduction: u8,
    /// Whose overload.
    pub scope: Scope,
}

/// Whose load or overload it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A producer's NF instance, with slices and DNNs where it is only theirs.
    NfInstance(String, Option<SliceScope>),
    /// A producer's NF set.
    NfSet(String, Option<SliceScope>),
    /// A producer's service instance, and its NF instance where given.
    ServiceInstance(String, Option<String>, Option<SliceScope>),
    /// A producer's service set.
    ServiceSet(String, Option<SliceScope>),
    /// A consumer's NF instance, perhaps for one service.
    ConsumerInstance(String, Option<String>),
    /// A consumer's NF set, perhaps for one service.
    ConsumerSet(String, Option<String>),
    /// A consumer's service instance, and its NF instance where given.
    ConsumerServiceInstance(String, Option<String>),
    /// A consumer's service set.
    ConsumerServiceSet(String),
    /// Callback URIs.
    CallbackUris(Vec<String>),
    /// An SCP, by its FQDN.
    Scp(String),
    /// A SEPP, by its FQDN.
    Sepp(String),
}

/// Slices and DNNs that a load or overload is limited to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SliceScope {
    /// `S-NSSAI` values as they stand.
    pub slices: Vec<String>,
    /// `DNN` values as they stand.
    pub dnns: Vec<String>,
    /// `Relative-Capacity` in percent (LCI only).
    pub relative_capacity: Option<u8>,
}

/// Names of scopes. Literals of ABNF have no case (RFC 5234 §2.3), so they are compared without it.
const SCOPES: [&str; 10] = [
    "NF-Instance",
    "NF-Set",
    "NF-Service-Instance",
    "NF-Service-Set",
    "NFC-Instance",
    "NFC-Set",
    "NFC-Service-Instance",
    "NFC-Service-Set",
    "SCP-FQDN",
    "SEPP-FQDN",
];

/// The `Name: value` parts of an element, taken one after the other.
struct Fields<'a>(std::iter::Peekable<std::vec::IntoIter<(&'a str, &'a str)>>);

impl<'a> Fields<'a> {
    fn of(element: &'a str) -> Option<Self> {
        let fields: Option<Vec<_>> = split(element, b';')
            .map(|part| {
                part.split_once(':')
                    .map(|(name, value)| (trim(name), trim(value)))
            })
            .collect();
        Some(Self(fields?.into_iter().peekable()))
    }

    fn take(&mut self, name: &str) -> Option<&'a str> {
        self.0
            .next_if(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    fn token(&mut self, name: &str) -> Option<String> {
        self.take(name).filter(|value| is_token(value)).map(str::to_owned)
    }

    fn timestamp(&mut self) -> Option<OffsetDateTime> {
        OffsetDateTime::parse(unquote(self.take("Timestamp")?)?, &Rfc2822).ok()
    }

    fn percent(&mut self, name: &str) -> Option<u8> {
        number(trim(self.take(name)?.strip_suffix('%')?)).filter(|percent| *percent <= 100)
    }

    fn scope(&mut self) -> Option<Scope> {
        let (name, value) = self.0.next()?;
        if name.eq_ignore_ascii_case("Callback-Uri") {
            let uris: Option<Vec<_>> = value
                .split('&')
                .map(|uri| unquote(trim(uri)).map(str::to_owned))
                .collect();
            return uris.map(Scope::CallbackUris);
        }
        let value = Some(value).filter(|value| is_token(value))?.to_owned();
        let known = SCOPES.iter().find(|known| known.eq_ignore_ascii_case(name))?;
        Some(match *known {
            "NF-Instance" => Scope::NfInstance(value, self.slices()?),
            "NF-Set" => Scope::NfSet(value, self.slices()?),
            "NF-Service-Instance" => {
                let instance = self.token("NF-Inst");
                Scope::ServiceInstance(value, instance, self.slices()?)
            }
            "NF-Service-Set" => Scope::ServiceSet(value, self.slices()?),
            "NFC-Instance" => Scope::ConsumerInstance(value, self.token("Service-Name")),
            "NFC-Set" => Scope::ConsumerSet(value, self.token("Service-Name")),
            "NFC-Service-Instance" => Scope::ConsumerServiceInstance(value, self.token("NF-Inst")),
            "NFC-Service-Set" => Scope::ConsumerServiceSet(value),
            "SCP-FQDN" => Scope::Scp(value),
            "SEPP-FQDN" => Scope::Sepp(value),
            _ => return None,
        })
    }

    /// The outer `None` is a fault, the inner one an absence.
    fn slices(&mut self) -> Option<Option<SliceScope>> {
        let list = |text: &str| -> Option<Vec<String>> {
            text.split('&')
                .map(trim)
                .map(|item| is_token(item).then(|| item.to_owned()))
                .collect()
        };
        let Some(slices) = self.take("S-NSSAI") else {
            return Some(None);
        };
        let slices = list(slices)?;
        let dnns = list(self.take("DNN")?)?;
        let relative_capacity = match self.0.peek() {
            Some((name, _)) if name.eq_ignore_ascii_case("Relative-Capacity") => {
                Some(self.percent("Relative-Capacity")?)
            }
            _ => None,
        };
        Some(Some(SliceScope {
            slices,
            dnns,
            relative_capacity,
        }))
    }

    fn end(mut self) -> Option<()> {
        self.0.next().is_none().then_some(())
    }
}

impl LciElement {
    fn parse(text: &str) -> Option<Self> {
        let mut fields = Fields::of(text)?;
        let element = Self {
            timestamp: fields.timestamp()?,
            load: fields.percent("Load-Metric")?,
            scope: fields.scope()?,
        };
        fields.end()?;
        Some(element)
    }
}

impl OciElement {
    fn parse(text: &str) -> Option<Self> {
        let mut fields = Fields::of(text)?;
        let timestamp = fields.timestamp()?;
        let validity = number(fields.take("Period-of-Validity")?.strip_suffix(['s', 'S'])?)?;
        let element = Self {
            timestamp,
            validity: Duration::from_secs(validity),
            reduction: fields.percent("Overload-Reduction-Metric")?,
            scope: fields.scope()?,
        };
        fields.end()?;
        Some(element)
    }
}

impl SbiHeader for Lci {
    const NAME: Name<'static> = names::LCI;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let elements: Option<Vec<_>> = split(text, b',').map(LciElement::parse).collect();
        elements
            .filter(|elements| !elements.is_empty())
            .map(Self)
            .ok_or_else(|| {
                HeaderError::of::<Self>("expected `Timestamp: \"DATE\"; Load-Metric: N%; SCOPE`, scope last")
            })
    }
}

impl SbiHeader for Oci {
    const NAME: Name<'static> = names::OCI;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let elements: Option<Vec<_>> = split(text, b',').map(OciElement::parse).collect();
        elements.filter(|elements| !elements.is_empty()).map(Self).ok_or_else(|| {
            HeaderError::of::<Self>(
                "expected `Timestamp: \"DATE\"; Period-of-Validity: Ns; Overload-Reduction-Metric: N%; SCOPE`",
            )
        })
    }
}

fn write_list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T], between: &str) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(between)?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

/// `Timestamp: "Tue, 04 Feb 2020 08:49:37 +0000"`.
fn write_timestamp(f: &mut fmt::Formatter<'_>, timestamp: &OffsetDateTime) -> fmt::Result {
    let text = timestamp.format(&Rfc2822).map_err(|_| fmt::Error)?;
    write!(f, "Timestamp: \"{text}\"")
}

impl fmt::Display for LciElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_timestamp(f, &self.timestamp)?;
        write!(f, "; Load-Metric: {}%; {}", self.load, self.scope)
    }
}

impl fmt::Display for OciElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_timestamp(f, &self.timestamp)?;
        let (validity, reduction) = (self.validity.as_secs(), self.reduction);
        write!(
            f,
            "; Period-of-Validity: {validity}s; Overload-Reduction-Metric: {reduction}%; {}",
            self.scope
        )
    }
}

impl fmt::Display for Lci {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, &self.0, ", ")
    }
}

impl fmt::Display for Oci {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, &self.0, ", ")
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = |f: &mut fmt::Formatter<'_>, name: &str, value: &Option<String>| match value {
            Some(value) => write!(f, "; {name}: {value}"),
            None => Ok(()),
        };
        let limited = |f: &mut fmt::Formatter<'_>, slices: &Option<SliceScope>| match slices {
            Some(slices) => write!(f, "; {slices}"),
            None => Ok(()),
        };
        match self {
            Self::NfInstance(id, slices) => write!(f, "NF-Instance: {id}").and_then(|()| limited(f, slices)),
            Self::NfSet(id, slices) => write!(f, "NF-Set: {id}").and_then(|()| limited(f, slices)),
            Self::ServiceInstance(id, instance, slices) => write!(f, "NF-Service-Instance: {id}")
                .and_then(|()| detail(f, "NF-Inst", instance))
                .and_then(|()| limited(f, slices)),
            Self::ServiceSet(id, slices) => {
                write!(f, "NF-Service-Set: {id}").and_then(|()| limited(f, slices))
            }
            Self::ConsumerInstance(id, service) => {
                write!(f, "NFC-Instance: {id}").and_then(|()| detail(f, "Service-Name", service))
            }
            Self::ConsumerSet(id, service) => {
                write!(f, "NFC-Set: {id}").and_then(|()| detail(f, "Service-Name", service))
            }
            Self::ConsumerServiceInstance(id, instance) => {
                write!(f, "NFC-Service-Instance: {id}").and_then(|()| detail(f, "NF-Inst", instance))
            }
            Self::ConsumerServiceSet(id) => write!(f, "NFC-Service-Set: {id}"),
            Self::CallbackUris(uris) => {
                let quoted: Vec<String> = uris.iter().map(|uri| format!("\"{uri}\"")).collect();
                f.write_str("Callback-Uri: ")
                    .and_then(|()| write_list(f, &quoted, " & "))
            }
            Self::Scp(fqdn) => write!(f, "SCP-FQDN: {fqdn}"),
            Self::Sepp(fqdn) => write!(f, "SEPP-FQDN: {fqdn}"),
        }
    }
}

impl fmt::Display for SliceScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("S-NSSAI: ")?;
        write_list(f, &self.slices, " & ")?;
        f.write_str("; DNN: ")?;
        write_list(f, &self.dnns, " & ")?;
        match self.relative_capacity {
            Some(percent) => write!(f, "; Relative-Capacity: {percent}%"),
            None => Ok(()),
        }
    }
}
