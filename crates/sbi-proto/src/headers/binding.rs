//! Bindings: which instance, service or set later requests should go to (TS 29.500 §6.12).

use std::fmt;

use http2::Name;

use super::lexis::{HeaderError, assignment, is_token, split, unquote};
use super::{SbiHeader, names};

/// How narrow a binding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BindingLevel {
    /// `nf-instance`.
    NfInstance,
    /// `nf-set`.
    NfSet,
    /// `nfservice-instance`.
    ServiceInstance,
    /// `nfservice-set`.
    ServiceSet,
}

/// A parameter of a binding, in the order in which it stood. Names that this release does not know survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingParam {
    /// `nfinst`, `nfset`, `nfservinst`, `nfserviceset`, `servname`, `scope`, `nr`, …
    pub name: String,
    /// The value without quotes.
    pub value: String,
    /// Whether the value stands in quotes.
    pub quoted: bool,
}

/// `3gpp-Sbi-Routing-Binding`: the binding of the resource that a request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingBinding {
    /// How narrow it is.
    pub level: BindingLevel,
    /// What it names.
    pub params: Vec<BindingParam>,
}

/// `3gpp-Sbi-Binding`: bindings that a sender wants for later requests; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding(pub Vec<RoutingBinding>);

impl BindingLevel {
    /// As in the header.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NfInstance => "nf-instance",
            Self::NfSet => "nf-set",
            Self::ServiceInstance => "nfservice-instance",
            Self::ServiceSet => "nfservice-set",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [
            Self::NfInstance,
            Self::NfSet,
            Self::ServiceInstance,
            Self::ServiceSet,
        ]
        .into_iter()
        .find(|level| level.as_str().eq_ignore_ascii_case(text))
    }
}

impl RoutingBinding {
    /// A binding of this level without parameters.
    #[must_use]
    pub fn new(level: BindingLevel) -> Self {
        Self {
            level,
            params: Vec::new(),
        }
    }

    /// With a parameter whose value is a token.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.params.push(BindingParam {
            name: name.to_owned(),
            value: value.to_owned(),
            quoted: false,
        });
        self
    }

    /// The first value of a parameter.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.params
            .iter()
            .find(|param| param.name == name)
            .map(|param| &*param.value)
    }

    /// `nfinst`: NF instance id.
    #[must_use]
    pub fn nf_instance(&self) -> Option<&str> {
        self.get("nfinst")
    }

    /// Whether it is for callbacks (`scope=callback`).
    #[must_use]
    pub fn is_of_callbacks(&self) -> bool {
        self.get("scope")
            .is_some_and(|scope| scope.eq_ignore_ascii_case("callback"))
    }

    /// `nfset`: NF set id.
    #[must_use]
    pub fn nf_set(&self) -> Option<&str> {
        self.get("nfset")
    }

    /// `nfservinst`: service instance id.
    #[must_use]
    pub fn service_instance(&self) -> Option<&str> {
        self.get("nfservinst")
    }

    /// `nfserviceset`: NF service set id.
    #[must_use]
    pub fn service_set(&self) -> Option<&str> {
        self.get("nfserviceset")
    }

    fn parse_element(text: &str) -> Option<Self> {
        let mut parts = split(text, b';');
        let level = assignment(parts.next()?)
            .filter(|(name, _)| name.eq_ignore_ascii_case("bl"))?
            .1;
        let mut binding = Self::new(BindingLevel::parse(level)?);
        for part in parts {
            let (name, value) = assignment(part)?;
            if !is_token(name) {
                return None;
            }
            let (value, quoted) = match unquote(value) {
                Some(inside) => (inside, true),
                // `nr=` takes a URI without quotes, which is more than a token.
                None if name.eq_ignore_ascii_case("nr") => (value, false),
                None => (Some(value).filter(|value| is_token(value))?, false),
            };
            binding.params.push(BindingParam {
                // Literals of ABNF have no case (RFC 5234 §2.3).
                name: name.to_ascii_lowercase(),
                value: value.to_owned(),
                quoted,
            });
        }
        Some(binding)
    }
}

impl fmt::Display for RoutingBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bl={}", self.level.as_str())?;
        self.params.iter().try_for_each(|param| match param.quoted {
            true => write!(f, "; {}=\"{}\"", param.name, param.value),
            false => write!(f, "; {}={}", param.name, param.value),
        })
    }
}

impl SbiHeader for RoutingBinding {
    const NAME: Name<'static> = names::ROUTING_BINDING;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let binding = Self::parse_element(text).filter(|binding| !binding.params.is_empty());
        binding.ok_or_else(|| {
            HeaderError::of::<Self>(
                "expected `bl=nf-instance|nf-set|nfservice-instance|nfservice-set; nfinst=…; nfset=…`",
            )
        })
    }
}

impl SbiHeader for Binding {
    const NAME: Name<'static> = names::BINDING;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let elements: Option<Vec<_>> = split(text, b',').map(RoutingBinding::parse_element).collect();
        elements
            .filter(|elements| !elements.is_empty() && elements.iter().all(|e| !e.params.is_empty()))
            .map(Self)
            .ok_or_else(|| {
                HeaderError::of::<Self>("expected bindings `bl=LEVEL; name=value; …` separated by commas")
            })
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, element) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            element.fmt(f)?;
        }
        Ok(())
    }
}
