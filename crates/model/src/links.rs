//! The 3GPP hypermedia format: `_links` (TS 29.501 §4.7.5.2, TS 29.571 §5.4.4.65).

use serde::{Deserialize, Serialize};

/// Media type of a document with `_links`.
pub const HAL_JSON: &str = "application/3gppHal+json";

/// A link to a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Its URI.
    pub href: String,
}

/// The links of a list document: itself, its items, the neighbouring pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListLinks {
    /// The list as asked for.
    #[serde(rename = "self", skip_serializing_if = "Option::is_none")]
    pub this: Option<Link>,
    /// What the list holds. Left out when empty: the schema asks for at least one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub item: Vec<Link>,
    /// First page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Link>,
    /// Page before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev: Option<Link>,
    /// Page after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Link>,
    /// Last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Link>,
}
