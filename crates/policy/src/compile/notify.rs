//! Notifications to servers of the operator: whom, and texts with values in them.

use serde_json::{Map, Value as Json};
use settings::{Document, path_key};

use crate::expression::Expr;
use crate::program::{Body, Notify, Step};
use crate::template::{Escape, Part, Piece, Template, XmlPosition, pieces};

use super::expressions::is_computed;
use super::{Compiler, suggest};

/// Members that make the content; a notification has one of them at most.
const CONTENTS: &[&str] = &["body", "xml", "text"];
const FORM: &str = "`server`, one of `body`, `xml` and `text`, if wanted `path` and `action`";

impl Compiler<'_> {
    pub(super) fn notify(&mut self, json: &Json, path: &str) -> Option<Step> {
        let Some(map) = json.as_object().filter(|_| !is_computed(json)) else {
            self.fault(path, "it is not a mapping", FORM);
            return None;
        };
        self.known_keys(map, path, &["server", "path", "action", "body", "xml", "text"]);
        let written: Vec<&str> = CONTENTS
            .iter()
            .copied()
            .filter(|member| map.contains_key(*member))
            .collect();
        if written.len() > 1 {
            let what = format!("the notification has both `{}`", written.join("` and `"));
            self.fault(path, what, FORM);
            return None;
        }
        let content = written.first().copied();
        let server = self.server(map, path, content)?;
        let body = match content {
            None => Body::Empty,
            Some("body") => Body::Json(self.expression(&map["body"], &path_key(path, "body"), 0)),
            Some("xml") => Body::Xml(self.template_of(map, "xml", path, Escape::Xml)?),
            Some(_) => Body::Text(self.template_of(map, "text", path, Escape::None)?),
        };
        let suffix = match map.contains_key("path") {
            true => Some(self.template_of(map, "path", path, Escape::Uri)?),
            false => None,
        };
        Some(Step::Notify(Box::new(Notify {
            server,
            path: suffix,
            action: self.action(map, path)?,
            body,
        })))
    }

    /// The name of a server, which the settings have, and which takes such a content.
    fn server(&mut self, map: &Map<String, Json>, path: &str, content: Option<&str>) -> Option<String> {
        const NAME: &str = "the name of a server of the settings (`notifier.servers` of the PCF)";
        let name = self.text(map, "server", path, NAME)?.to_owned();
        let place = path_key(path, "server");
        if name.starts_with('$') {
            self.fault(place, "the server is computed", NAME);
            return None;
        }
        let Some(servers) = self.servers else {
            return Some(name);
        };
        match servers.get(&name) {
            None => {
                let known: Vec<&str> = servers.keys().map(String::as_str).collect();
                let expected = match known.is_empty() {
                    true => "a server in `notifier.servers` of the settings, which have none".to_owned(),
                    false => suggest(&name, &known),
                };
                self.fault(place, format!("no server is called `{name}`"), expected);
            }
            Some(accepts) if !accepts.admits(content) => {
                let place = content.map_or_else(|| path.to_owned(), |content| path_key(path, content));
                let what = format!("the server `{name}` does not take this content");
                self.fault(place, what, accepts.describe());
            }
            Some(_) => {}
        }
        Some(name)
    }

    /// The SOAP action, which stands in a header between quotation marks; `None` where it is wrong.
    #[expect(clippy::option_option, reason = "absent is not wrong")]
    fn action(&mut self, map: &Map<String, Json>, path: &str) -> Option<Option<String>> {
        match map.get("action") {
            None => Some(None),
            Some(Json::String(action))
                if action
                    .bytes()
                    .all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\') =>
            {
                Some(Some(action.clone()))
            }
            Some(_) => {
                let expected = "a URI such as `urn:example:SendSms`, visible ASCII without quotation marks";
                self.fault(path_key(path, "action"), "it is not a SOAP action", expected);
                None
            }
        }
    }

    fn template_of(
        &mut self,
        map: &Map<String, Json>,
        key: &str,
        path: &str,
        escape: Escape,
    ) -> Option<Template> {
        let own = path_key(path, key);
        let text = self.text(
            map,
            key,
            path,
            "a text, in which `{$request.gpsi}` stands for a value",
        )?;
        let taken = match pieces(text) {
            Ok(taken) => taken,
            Err(begun) => {
                let begun: String = begun.chars().take(40).collect();
                let what = format!("`{begun}` has no end");
                self.fault(own, what, "a `}` after the value; `{$$` for a text with `{$`");
                return None;
            }
        };
        match escape {
            Escape::Xml => self.check_xml(&taken, &own),
            Escape::Uri => self.check_uri(&taken, &own),
            Escape::None => {}
        }
        let parts = taken.into_iter().map(|piece| match piece {
            Piece::Literal(text) => Part::Literal(text.to_owned()),
            Piece::Value(inner) => Part::Value(self.template_value(inner, &own)),
        });
        Some(Template {
            parts: parts.collect(),
            escape,
        })
    }

    /// A reference, or an operation as in YAML without its braces.
    fn template_value(&mut self, inner: &str, path: &str) -> Expr {
        let is_name = |name: &str| name.bytes().skip(1).all(|byte| byte.is_ascii_alphanumeric());
        let operation = inner
            .split_once(':')
            .is_some_and(|(name, rest)| is_name(name) && rest.starts_with([' ', '\n']));
        if !operation {
            return self.reference(inner.trim(), path, 0);
        }
        let bounds = settings::Limits {
            depth: 4 * self.limits.depth,
            ..settings::Limits::default()
        };
        match Document::parse(&format!("{{{inner}}}"), "", bounds) {
            Ok(document) => self.expression(&document.to_json(), path, 0),
            Err(_) => {
                let shown: String = inner.chars().take(60).collect();
                let expected =
                    "a reference such as `{$request.gpsi}`, or an operation such as `{$round: $used}`";
                self.fault(path, format!("`{{{shown}}}` is not an expression"), expected);
                Expr::Constant(Json::Null)
            }
        }
    }

    /// A value within a tag or a comment could not be escaped.
    fn check_xml(&mut self, pieces: &[Piece<'_>], path: &str) {
        let mut position = XmlPosition::default();
        for piece in pieces {
            match piece {
                Piece::Literal(text) => position = position.after(text),
                Piece::Value(_) if position.takes_values() => {}
                Piece::Value(inner) => {
                    let what = format!("`{{{inner}}}` stands where no value can be escaped");
                    self.fault(path, what, "values in texts and in quoted attributes of the XML");
                }
            }
        }
        if position != XmlPosition::Text {
            let expected = "XML as a whole, such as `<sms to=\"{$request.gpsi}\">welcome</sms>`";
            self.fault(path, "the XML ends within a tag, comment or section", expected);
        }
    }

    fn check_uri(&mut self, pieces: &[Piece<'_>], path: &str) {
        let begins = matches!(pieces.first(), Some(Piece::Literal(text)) if text.starts_with(['/', '?']));
        let is_uri = |text: &str| {
            text.bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&byte))
        };
        let is_right = pieces.iter().all(|piece| match piece {
            Piece::Literal(text) => is_uri(text),
            Piece::Value(_) => true,
        });
        if !begins || !is_right {
            let expected =
                "`/` or `?` first, then the rest of a URI, such as `/subscribers/{$request.supi}?notify=sms`";
            self.fault(path, "it is not the end of a URI", expected);
        }
    }
}
