//! A program without LDAP has no directory: its settings are refused where they are checked.

use std::time::Instant;

use serde_json::{Map, Value};

use crate::config;

/// There is none.
#[derive(Clone, Debug)]
pub(crate) enum Access {}

impl Access {
    /// None, whatever the settings name.
    pub(crate) fn read(settings: &config::Ldap) -> Result<Option<Self>, String> {
        match settings.is_enabled() {
            true => Err("pds.ldap.url names a directory, and this program is built without LDAP".to_owned()),
            false => Ok(None),
        }
    }
}

/// What a directory knows of a subscriber.
#[derive(Clone, Debug, PartialEq)]
#[expect(dead_code, reason = "there is no directory that would know")]
pub(crate) enum Profile {
    Known(Map<String, Value>),
    Unknown,
}

/// Why there is no profile.
#[derive(Clone, Debug, PartialEq)]
#[expect(dead_code, reason = "there is no directory that would fail")]
pub(crate) enum Failure {
    Busy,
    Unavailable(String),
    Referral(String),
    Refused(String),
}

/// There is none.
#[derive(Debug)]
pub(crate) enum Directory {}

impl Directory {
    pub(crate) fn new(_: &config::Ldap, access: Access) -> Self {
        match access {}
    }

    pub(crate) async fn query(&self, _: &str, _: Option<&str>, _: Instant) -> Result<Profile, Failure> {
        match *self {}
    }
}
