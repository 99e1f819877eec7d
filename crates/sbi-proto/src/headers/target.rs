//! Headers that name a target, a producer or a callback.

use std::fmt;

use http2::Name;

use super::lexis::{HeaderError, assignment, is_token, split, trim};
use super::{SbiHeader, names};
use crate::origin::{Origin, Scheme};

/// `3gpp-Sbi-Target-apiRoot`: where a request is to go in the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetApiRoot {
    /// Scheme and authority.
    pub origin: Origin,
    /// Prefix of every path: empty, or `/…` without a slash at its end.
    pub prefix: String,
}

/// `3gpp-Sbi-Producer-Id`: who produced a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProducerId {
    /// NF instance id.
    pub nf_instance: String,
    /// Service instance id.
    pub service_instance: Option<String>,
    /// NF set id.
    pub nf_set: Option<String>,
    /// NF service set id.
    pub service_set: Option<String>,
}

/// `3gpp-Sbi-Target-Nf-Id`: the instance that a redirected request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetNfId {
    /// NF instance id.
    pub nf_instance: String,
    /// Service instance id.
    pub service_instance: Option<String>,
}

/// `3gpp-Sbi-Callback`: which notification or callback a request is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callback {
    /// Name of the callback, `Nnrf_NFManagement_NFStatusNotify` for example (TS 29.500 annex B).
    pub kind: String,
    /// Major version of the API of the notification.
    pub api_version: Option<String>,
}

impl SbiHeader for TargetApiRoot {
    const NAME: Name<'static> = names::TARGET_API_ROOT;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let fault =
            || HeaderError::of::<Self>("expected `http://host:port` or `https://…`, perhaps with a prefix");
        let text = trim(text);
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
            _ => return Err(fault()),
        };
        let (authority, prefix) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let prefix = prefix.trim_end_matches('/');
        if prefix.contains("//")
            || !prefix
                .bytes()
                .all(|b| (0x21..=0x7e).contains(&b) && !b"\"<>?#\\^`{|}".contains(&b))
        {
            return Err(fault());
        }
        let origin = Origin::new(scheme, authority).map_err(|_| fault())?;
        Ok(Self {
            origin,
            prefix: prefix.to_owned(),
        })
    }
}

impl fmt::Display for TargetApiRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.prefix)
    }
}

impl SbiHeader for ProducerId {
    const NAME: Name<'static> = names::PRODUCER_ID;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let fault =
            || HeaderError::of::<Self>("expected `nfinst=UUID`, perhaps nfservinst, nfset, nfserviceset");
        let mut id = Self::default();
        for part in split(text, b';') {
            let (name, value) = assignment(part)
                .filter(|(_, value)| is_token(value))
                .ok_or_else(fault)?;
            let value = value.to_owned();
            match &*name.to_ascii_lowercase() {
                "nfinst" => id.nf_instance = value,
                "nfservinst" => id.service_instance = Some(value),
                "nfset" => id.nf_set = Some(value),
                "nfserviceset" => id.service_set = Some(value),
                _ => {}
            }
        }
        if id.nf_instance.is_empty() {
            Err(fault())
        } else {
            Ok(id)
        }
    }
}

impl fmt::Display for ProducerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nfinst={}", self.nf_instance)?;
        let rest = [
            ("nfservinst", &self.service_instance),
            ("nfset", &self.nf_set),
            ("nfserviceset", &self.service_set),
        ];
        rest.into_iter().try_for_each(|(name, value)| match value {
            Some(value) => write!(f, "; {name}={value}"),
            None => Ok(()),
        })
    }
}

impl SbiHeader for TargetNfId {
    const NAME: Name<'static> = names::TARGET_NF_ID;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let id = ProducerId::parse(text)
            .map_err(|_| HeaderError::of::<Self>("expected `nfinst=UUID`, perhaps `; nfservinst=…`"))?;
        Ok(Self {
            nf_instance: id.nf_instance,
            service_instance: id.service_instance,
        })
    }
}

impl fmt::Display for TargetNfId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nfinst={}", self.nf_instance)?;
        match &self.service_instance {
            Some(instance) => write!(f, "; nfservinst={instance}"),
            None => Ok(()),
        }
    }
}

impl SbiHeader for Callback {
    const NAME: Name<'static> = names::CALLBACK;

    fn parse(text: &str) -> Result<Self, HeaderError> {
        let fault = || HeaderError::of::<Self>("expected the name of a callback, perhaps `; apiversion=N`");
        let mut parts = split(text, b';');
        let kind = parts.next().ok_or_else(fault)?;
        if !kind
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        {
            return Err(fault());
        }
        let api_version = match parts.next() {
            None => None,
            Some(part) => {
                let version = assignment(part)
                    .filter(|(name, _)| name.eq_ignore_ascii_case("apiversion"))
                    .ok_or_else(fault)?
                    .1;
                if !version.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(fault());
                }
                Some(version.to_owned())
            }
        };
        if parts.next().is_some() {
            return Err(fault());
        }
        Ok(Self {
            kind: kind.to_owned(),
            api_version,
        })
    }
}

impl fmt::Display for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        match &self.api_version {
            Some(version) => write!(f, "; apiversion={version}"),
            None => Ok(()),
        }
    }
}
