//! Profiles of subscribers in a directory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use settings::{Faults, Validate};

use super::UnknownUser;

/// Profiles of subscribers in a directory, by LDAP (RFC 4511). Policies read them as further members of `$subscriber`; a member
/// that the UDR has as well is the UDR's. They are cached as policy data are (`pds.cache`), and share its deadline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Ldap {
    /// The directory: `ldap://host:389` or `ldaps://host:636`. Empty: none is queried.
    pub url: String,
    /// PEM file of the authorities that the directory's certificate is checked by (`ldaps`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorities: Option<PathBuf>,
    /// Name that the PCF binds with; empty: anonymous.
    pub bind_dn: String,
    /// File with the password of `bindDn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// Base of the search: `ou=subscribers,dc=example,dc=org`.
    pub base: String,
    /// How far below the base entries are searched.
    pub scope: LdapScope,
    /// Filter of the search (RFC 4515), with `{supi}`, `{imsi}` (the SUPI without `imsi-`), `{gpsi}` and `{msisdn}` (the GPSI
    /// without `msisdn-`), which are escaped. It shall find one entry at most.
    pub filter: String,
    /// Members of `$subscriber`, and the attributes that they come from.
    pub attributes: BTreeMap<String, LdapAttribute>,
    /// Connections of each worker.
    pub connections: usize,
    /// Queries that each worker has in flight; further ones are answered by `fallback`.
    pub parallel: usize,
    /// What happens to a request of a subscriber whom the directory does not know.
    pub unknown_user: UnknownUser,
    /// What happens to a request while the directory does not answer in time, or refers to another.
    pub fallback: LdapFallback,
    /// The members in place of those of the directory, where `unknownUser` or `fallback` is `default`.
    pub default: Map<String, Value>,
}

/// An attribute of an entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LdapAttribute {
    /// Its name.
    pub attribute: String,
    /// What its values are.
    #[serde(default)]
    pub of: LdapType,
}

/// What the values of an attribute are. A value that is none of it is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LdapType {
    /// The first value, as text.
    #[default]
    Text,
    /// All values, as texts.
    Texts,
    /// The first value, as a number.
    Number,
    /// The first value, `TRUE` or `FALSE` (RFC 4517 §3.3.3).
    Boolean,
    /// The first value, as JSON.
    Json,
}

/// How far below the base entries are searched (RFC 4511 §4.5.1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LdapScope {
    /// The base itself.
    Base,
    /// One level below.
    One,
    /// The whole tree.
    #[default]
    Sub,
}

/// What happens to a request while the directory does not answer in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LdapFallback {
    /// The PCF refuses it: 503.
    Reject,
    /// Policies read `default`.
    Default,
    /// Policies read what the worker had cached of the subscriber last, whatever its age; `default` where it has nothing.
    #[default]
    Cached,
}

impl Default for Ldap {
    fn default() -> Self {
        Self {
            url: String::new(),
            authorities: None,
            bind_dn: String::new(),
            password_file: None,
            base: String::new(),
            scope: LdapScope::default(),
            filter: "(imsi={imsi})".to_owned(),
            attributes: BTreeMap::new(),
            connections: 2,
            parallel: 1_000,
            unknown_user: UnknownUser::Default,
            fallback: LdapFallback::default(),
            default: Map::new(),
        }
    }
}

impl Ldap {
    /// Whether a directory is queried.
    pub(crate) fn is_enabled(&self) -> bool {
        !self.url.is_empty()
    }
}

impl Validate for Ldap {
    fn validate(&self, faults: &mut Faults) {
        if !self.is_enabled() {
            return;
        }
        if cfg!(not(feature = "ldap")) {
            faults.at("url").say(
                "names a directory, and this program is built without LDAP",
                "nothing, or a program with the feature `ldap` (`make dist`)",
            );
        }
        let uri: Option<http::Uri> = self.url.parse().ok();
        let is_known = uri.as_ref().is_some_and(|uri| {
            matches!(uri.scheme_str(), Some("ldap" | "ldaps"))
                && matches!(uri.path(), "" | "/")
                && uri.query().is_none()
        });
        if !is_known {
            faults.at("url").say(
                "is not the URL of a directory",
                "ldap://host:389 or ldaps://host:636",
            );
        }
        if self.url.starts_with("ldaps:") && self.authorities.is_none() {
            faults.at("authorities").say(
                "is missing, so that no certificate of the directory would be trusted",
                "a PEM file of authorities",
            );
        }
        if self.bind_dn.is_empty() != self.password_file.is_none() {
            faults.at("passwordFile").say(
                "does not fit `bindDn`",
                "both, or none of them for an anonymous bind",
            );
        }
        if self.attributes.is_empty() {
            faults.at("attributes").say(
                "is empty, so that policies would read nothing",
                "a member of `$subscriber` and an attribute",
            );
        }
        for (name, value) in [("connections", self.connections), ("parallel", self.parallel)] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
    }
}
