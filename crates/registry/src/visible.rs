//! Pieces of a profile that other NFs may see.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use sbi_proto::json::text;

/// A piece of JSON that a discoverer may see, and where in it are the values that an answer may change.
#[derive(Clone, Debug, Default)]
pub struct Visible {
    /// The JSON text: members of an object, or a whole service.
    pub text: Bytes,
    /// The value of `sNssais`.
    pub snssais: Option<Range<usize>>,
    /// The value of `perPlmnSnssaiList`.
    pub per_plmn: Option<Range<usize>>,
    /// The value of `fqdn`, which is another for other networks.
    pub fqdn: Option<Range<usize>>,
    /// The value of `priority`, which is lower where another locality is preferred.
    pub priority: Option<Range<usize>>,
    /// The value of `oauth2Required`, which is another for some networks.
    pub oauth2: Option<Range<usize>>,
}

impl Visible {
    /// Of the members of an object those that are shown, joined by commas.
    pub(crate) fn of(text: &str, whole: Range<usize>, mut shown: impl FnMut(&str) -> bool) -> Self {
        let mut out = String::with_capacity(whole.len());
        let mut found = Self::default();
        for item in text::items(text, whole) {
            let key = text::unescaped(&text[item.key.clone()]);
            let key = key.as_ref();
            if !shown(key) {
                continue;
            }
            push_joined(&mut out, &text[item.whole.clone()]);
            let value = out.len() - item.value.len()..out.len();
            match key {
                "sNssais" => found.snssais = Some(value),
                "perPlmnSnssaiList" => found.per_plmn = Some(value),
                "fqdn" => found.fqdn = Some(value),
                "priority" => found.priority = Some(value),
                "oauth2Required" => found.oauth2 = Some(value),
                _ => {}
            }
        }
        Self {
            text: out.into(),
            ..found
        }
    }

    /// A service without what is not shown, as an object.
    pub(crate) fn service(text: &str, shown: impl FnMut(&str) -> bool) -> Self {
        let members = Self::of(text, text::root(text), shown);
        let mut out = BytesMut::with_capacity(members.text.len() + 2);
        out.put_u8(b'{');
        out.put_slice(&members.text);
        out.put_u8(b'}');
        let behind_brace = |span: Option<Range<usize>>| span.map(|span| span.start + 1..span.end + 1);
        Self {
            text: out.freeze(),
            snssais: behind_brace(members.snssais),
            per_plmn: behind_brace(members.per_plmn),
            fqdn: behind_brace(members.fqdn),
            priority: behind_brace(members.priority),
            oauth2: behind_brace(members.oauth2),
        }
    }

    /// With another `fqdn`.
    #[must_use]
    pub fn with_fqdn(&self, name: &str) -> Self {
        self.with(
            "fqdn",
            self.fqdn.clone(),
            &serde_json::Value::from(name).to_string(),
        )
    }

    /// With another `priority`.
    #[must_use]
    pub fn with_priority(&self, priority: u16) -> Self {
        self.with("priority", self.priority.clone(), &priority.to_string())
    }

    /// With another `oauth2Required`.
    #[must_use]
    pub fn with_oauth2(&self, required: bool) -> Self {
        let value = if required { "true" } else { "false" };
        self.with("oauth2Required", self.oauth2.clone(), value)
    }

    /// With another value of a member, which is now at `span`; one that is absent is put behind the last member.
    fn with(&self, name: &str, span: Option<Range<usize>>, value: &str) -> Self {
        let (span, value) = match span {
            Some(span) => (span, value.to_owned()),
            None => {
                let end =
                    self.text.len() - usize::from(self.text.ends_with(b"}") && self.text.starts_with(b"{"));
                let comma = if matches!(self.text.get(..end), Some(b"" | b"{")) {
                    ""
                } else {
                    ","
                };
                (end..end, format!("{comma}\"{name}\":{value}"))
            }
        };
        let mut text = BytesMut::with_capacity(self.text.len() + value.len());
        text.put_slice(&self.text[..span.start]);
        text.put_slice(value.as_bytes());
        text.put_slice(&self.text[span.end..]);
        let moved = |other: &Option<Range<usize>>| {
            other.clone().map(|other| match other.start <= span.start {
                true => other,
                false => other.start + value.len() - span.len()..other.end + value.len() - span.len(),
            })
        };
        Self {
            text: text.freeze(),
            snssais: moved(&self.snssais),
            per_plmn: moved(&self.per_plmn),
            // Each is changed once.
            fqdn: if name == "fqdn" { None } else { moved(&self.fqdn) },
            priority: if name == "priority" {
                None
            } else {
                moved(&self.priority)
            },
            oauth2: if name == "oauth2Required" {
                None
            } else {
                moved(&self.oauth2)
            },
        }
    }
}

pub(crate) fn push_joined(out: &mut String, piece: &str) {
    if !out.is_empty() {
        out.push(',');
    }
    out.push_str(piece);
}
