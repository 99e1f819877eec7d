//! Notifications of a project to servers of the operator, and what a function says of those servers.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::value::Value;

/// A message that a project has for a server of the operator (`notify`). The function sends it once the decision is kept.
///
/// As JSON it is what test cases expect: `server`, if there are any `path` and `action`, and one of `body`, `xml` and `text`.
#[derive(Clone, Copy, Debug)]
pub struct Notification<'a> {
    /// Name of the server in the settings of the function.
    pub server: &'a str,
    /// What follows the URL of the server, percent-encoded: it begins with `/` or `?`.
    pub path: Option<&'a str>,
    /// The SOAP action, visible ASCII without quotation marks.
    pub action: Option<&'a str>,
    /// Its content.
    pub content: Content<'a>,
}

/// The content of a notification.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// Nothing.
    Empty,
    /// A value, sent as JSON.
    Json(Value<'a>),
    /// XML, with its values escaped.
    Xml(&'a str),
    /// Any other text.
    Text(&'a str),
}

impl Serialize for Notification<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("server", self.server)?;
        if let Some(path) = self.path {
            map.serialize_entry("path", path)?;
        }
        if let Some(action) = self.action {
            map.serialize_entry("action", action)?;
        }
        match &self.content {
            Content::Empty => {}
            Content::Json(value) => map.serialize_entry("body", value)?,
            Content::Xml(text) => map.serialize_entry("xml", text)?,
            Content::Text(text) => map.serialize_entry("text", text)?,
        }
        map.end()
    }
}

/// The servers that projects may notify, by name, as the settings of a function have them.
pub type Servers = BTreeMap<String, Accepts>;

/// The content that a server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Any: the content decides on its type.
    Any,
    /// JSON.
    Json,
    /// XML.
    Xml,
    /// Text that is neither JSON nor XML.
    Text,
    /// No content: all is in the URL.
    Nothing,
}

impl Accepts {
    /// The content that a content type is for; an empty one is for any.
    #[must_use]
    pub fn of_content_type(content_type: &str) -> Self {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let essence = essence.to_ascii_lowercase();
        let is =
            |kind: &str| essence.ends_with(&format!("/{kind}")) || essence.ends_with(&format!("+{kind}"));
        match essence.is_empty() {
            true => Self::Any,
            false if is("json") => Self::Json,
            false if is("xml") => Self::Xml,
            false => Self::Text,
        }
    }

    /// Whether it is the content that a member of `notify` makes.
    pub(crate) fn admits(self, member: Option<&str>) -> bool {
        match self {
            Self::Any => true,
            Self::Json => matches!(member, None | Some("body")),
            Self::Xml => matches!(member, None | Some("xml")),
            Self::Text => matches!(member, None | Some("text")),
            Self::Nothing => member.is_none(),
        }
    }

    /// The member of `notify` that makes it.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Any => "one of `body`, `xml` and `text`",
            Self::Json => "`body`, by the content type of the server",
            Self::Xml => "`xml`, by the content type of the server",
            Self::Text => "`text`, by the content type of the server",
            Self::Nothing => "`path` alone, by the method of the server",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_say_what_a_server_takes() {
        for (content_type, expected) in [
            ("", Accepts::Any),
            ("application/json", Accepts::Json),
            ("application/problem+json; charset=utf-8", Accepts::Json),
            ("text/xml; charset=utf-8", Accepts::Xml),
            ("Application/SOAP+XML", Accepts::Xml),
            ("text/plain", Accepts::Text),
        ] {
            assert_eq!(Accepts::of_content_type(content_type), expected, "{content_type}");
        }
    }
}
