//! Pages of admin endpoints as the command line and browsers show them: what all functions have, cells of tables, paths.

use serde_json::{Number, Value};

use crate::contract::Page;

/// The pages that every function has, as the command line names them.
pub const COMMON: &[Page] = &[
    Page {
        name: "status",
        about: "How it is doing, what is wrong and the remedy; exit code 1 when it is not alive or not ready",
        path: "/status",
        argument: None,
        columns: &[],
    },
    Page {
        name: "alarms",
        about: "Active alarms with advice; with --json those cleared last as well",
        path: "/alarms",
        argument: None,
        columns: &[
            ("severity", "/severity"),
            ("number", "/number"),
            ("name", "/name"),
            ("about", "/instance"),
            ("since", "/raised"),
            ("detail", "/detail"),
            ("advice", "/advice"),
        ],
    },
    Page {
        name: "journal",
        about: "What has changed: starts, reloads, alarms, certificates, peers, operators' changes",
        path: "/journal",
        argument: None,
        columns: &[
            ("time", "/time"),
            ("change", "/kind"),
            ("about", "/about"),
            ("detail", "/detail"),
            ("by", "/by"),
        ],
    },
    Page {
        name: "metrics",
        about: "Metrics; with TEXT those whose names contain it",
        path: "/metrics",
        argument: Some("TEXT"),
        columns: &[],
    },
    Page {
        name: "config",
        about: "The configuration in effect",
        path: "/config",
        argument: None,
        columns: &[],
    },
    Page {
        name: "reload",
        about: "Reload the configuration file, as SIGHUP does",
        path: "/config/reload",
        argument: None,
        columns: &[],
    },
    Page {
        name: "log-level",
        about: "Show the log filter, or change it: info, or info,nrf=debug",
        path: "/log-level",
        argument: Some("FILTER"),
        columns: &[],
    },
];

impl Page {
    /// The method of its request: pages that change something are not fetched.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self.name {
            "trace add" => "PUT",
            "trace remove" => "DELETE",
            "reload" | "enable" | "drain" | "disable" | "reconnect" | "inhibit" | "uninhibit" => "POST",
            _ if self.path.contains("/change-") => "POST",
            _ => "GET",
        }
    }

    /// Its path for an argument, escaped as the path needs it.
    #[must_use]
    pub fn path_for(&self, argument: &str) -> String {
        let escaped = match self.path.contains('?') {
            true => query(argument),
            false => segment(argument),
        };
        self.path.replace("{}", &escaped)
    }
}

/// A value as a cell of a table.
#[must_use]
pub fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        // What peers have written may hold anything; a terminal obeys control characters.
        Some(Value::String(text)) => visible(text.chars().filter(|c| !c.is_control())),
        Some(Value::Array(items)) => {
            let each: Vec<String> = items.iter().map(|item| cell(Some(item))).collect();
            each.join(" ")
        }
        Some(Value::Number(number)) => figure(number),
        Some(other) => other.to_string(),
    }
}

/// Characters as a text, those that are not seen by their numbers: two names that differ look different.
fn visible(text: impl Iterator<Item = char>) -> String {
    let mut out = String::with_capacity(text.size_hint().0);
    for c in text {
        match is_unseen(c) {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    out
}

/// Whether a character shows nothing, reorders the text around it or breaks the line: general categories Cf, Zl and Zp, and what else
/// Unicode has programs ignore where they cannot show it (`Default_Ignorable_Code_Point` of DerivedCoreProperties.txt).
pub(crate) fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
        | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A number for people: fractions with two digits.
#[must_use]
pub fn figure(number: &Number) -> String {
    match number.as_f64().filter(|_| !number.is_i64() && !number.is_u64()) {
        Some(value) => {
            let text = format!("{value:.2}");
            let text = text.trim_end_matches('0').trim_end_matches('.');
            if text == "-0" { "0" } else { text }.to_owned()
        }
        None => number.to_string(),
    }
}

/// A text as one segment of a path.
#[must_use]
pub fn segment(text: &str) -> String {
    encoded(text, b"")
}

/// A text as a query: its names, values and escapes stay.
#[must_use]
pub fn query(text: &str) -> String {
    encoded(text, b"=&%/:,;@?!*'()")
}

/// Escapes all bytes but unreserved ones (RFC 3986 §2.3) and `kept`.
fn encoded(text: &str, kept: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.contains(&byte);
    text.bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_are_not_seen_are_shown_by_their_numbers() {
        for c in [
            '\u{200b}',
            '\u{2028}',
            '\u{2029}',
            '\u{202e}',
            '\u{feff}',
            '\u{ad}',
            '\u{2060}',
            '\u{e0041}',
        ] {
            let shown = cell(Some(&Value::String(format!("a{c}b"))));
            assert_eq!(shown, format!("a\\u{:04x}b", u32::from(c)));
        }
        let text = "Zürich – 東京, \u{1f600}";
        assert_eq!(cell(Some(&Value::String(text.to_owned()))), text);
        assert_eq!(cell(Some(&Value::String("a\u{1b}b".to_owned()))), "ab");
    }

    #[test]
    fn pages_that_change_something_are_posted() {
        for (path, method) in [
            ("/dsr/change-subscriber/{}", "POST"),
            ("/x/change-anything/{}", "POST"),
            ("/dsr/subscribers/{}", "GET"),
        ] {
            let page = Page {
                name: "set-subscriber",
                about: "",
                path,
                argument: Some("CHANGE"),
                columns: &[],
            };
            assert_eq!(page.method(), method, "{path}");
        }
    }

    #[test]
    fn arguments_are_escaped_as_their_part_of_the_path_needs() {
        assert_eq!(segment("a b/é"), "a%20b%2F%C3%A9");
        assert_eq!(query("path=/a b&x=1+%2F"), "path=/a%20b&x=1%2B%2F");
    }
}
