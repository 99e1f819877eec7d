//! The servers that policy projects notify, as requests need them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;

use crate::association::messages::{Form, Message};
use crate::config::{Notifier, NotifierMethod, NotifierServer};

/// The content type of SOAP 1.2 (RFC 3902), whose action is a parameter of it.
const SOAP_12: &str = "application/soap+xml";

/// The servers that policy projects notify.
#[derive(Debug)]
pub(crate) struct Targets {
    /// Whether messages are sent.
    pub(crate) is_enabled: bool,
    by_name: BTreeMap<String, Arc<Target>>,
}

/// A server.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) settings: NotifierServer,
    /// The headers of each request.
    headers: HeaderMap,
}

impl Targets {
    /// Of settings, with the secrets that they refer to.
    pub(crate) fn read(settings: &Notifier, user_agent: &str) -> Result<Self, String> {
        let target = |(name, server): (&String, &NotifierServer)| {
            let target = Target::read(name, server, user_agent)?;
            Ok::<_, String>((name.clone(), Arc::new(target)))
        };
        Ok(Self {
            is_enabled: settings.enabled,
            by_name: settings.servers.iter().map(target).collect::<Result<_, _>>()?,
        })
    }

    /// The server of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Target>> {
        self.by_name.get(name)
    }
}

impl Target {
    fn read(name: &str, settings: &NotifierServer, user_agent: &str) -> Result<Self, String> {
        let key = |key: &str| format!("notifier.servers.{name}.{key}");
        let mut headers = HeaderMap::new();
        if let Ok(agent) = HeaderValue::from_str(user_agent) {
            headers.insert(USER_AGENT, agent);
        }
        for (header, value) in &settings.headers {
            let wrong =
                |error: &dyn std::fmt::Display| format!("{}: {error}", key(&format!("headers.{header}")));
            let parsed = HeaderName::from_bytes(header.as_bytes()).map_err(|error| wrong(&error))?;
            headers.insert(
                parsed,
                HeaderValue::from_str(value).map_err(|error| wrong(&error))?,
            );
        }
        if let Some(secret) = &settings.authorization {
            let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", key("authorization"));
            let value = secret.read().map_err(|error| wrong(&error))?;
            let mut value = HeaderValue::from_str(&value).map_err(|error| wrong(&error))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self {
            name: name.to_owned(),
            settings: settings.clone(),
            headers,
        })
    }

    /// The request that delivers a message; none where path and URL make no URI. `key` is the same for each attempt.
    pub(crate) fn request(&self, message: &Message, key: &str) -> Option<Request<Full<Bytes>>> {
        let uri: Uri = joined(&self.settings.url, message.path.as_deref().unwrap_or_default())
            .parse()
            .ok()?;
        let mut request = Request::builder().method(self.method()).uri(uri);
        let headers = request.headers_mut()?;
        headers.extend(self.headers.clone());
        // A server that has taken the first attempt may know the second by it.
        headers.insert(
            "idempotency-key",
            HeaderValue::from_str(&format!("\"{key}\"")).ok()?,
        );
        self.describe(message, headers)?;
        request.body(Full::new(message.body.clone())).ok()
    }

    /// Adds the headers that describe the content.
    fn describe(&self, message: &Message, headers: &mut HeaderMap) -> Option<()> {
        let usual = match message.form {
            Form::Empty => "",
            Form::Json => "application/json",
            Form::Xml => "text/xml; charset=utf-8",
            Form::Text => "text/plain; charset=utf-8",
        };
        let mut content_type = match self.settings.content_type.as_str() {
            _ if message.form == Form::Empty => String::new(),
            "" => usual.to_owned(),
            own => own.to_owned(),
        };
        let action = message.action.as_ref().or(self.settings.soap_action.as_ref());
        if let Some(action) = action.filter(|_| message.form == Form::Xml) {
            let essence = content_type.split(';').next().unwrap_or_default().trim();
            match essence.eq_ignore_ascii_case(SOAP_12) {
                true => content_type = format!("{content_type}; action=\"{action}\""),
                false => {
                    let value = HeaderValue::from_str(&format!("\"{action}\"")).ok()?;
                    headers.insert("soapaction", value);
                }
            }
        }
        if !content_type.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_str(&content_type).ok()?);
        }
        Some(())
    }

    fn method(&self) -> Method {
        match self.settings.method {
            NotifierMethod::Get => Method::GET,
            NotifierMethod::Post => Method::POST,
            NotifierMethod::Put => Method::PUT,
            NotifierMethod::Patch => Method::PATCH,
        }
    }
}

/// A URL with more of its path and of its query.
fn joined(url: &str, more: &str) -> String {
    let parts = |text: &str| match text.split_once('?') {
        Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
        None => (text.to_owned(), None),
    };
    let ((mut path, own), (more, added)) = (parts(url), parts(more));
    if !more.is_empty() {
        path.truncate(path.trim_end_matches('/').len());
        path.push_str(&more);
    }
    let queries: Vec<String> = own.into_iter().chain(added).collect();
    match queries.is_empty() {
        true => path,
        false => format!("{path}?{}", queries.join("&")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(settings: NotifierServer, message: Message) -> Request<Full<Bytes>> {
        let settings = NotifierServer {
            url: "http://a/b/?c=d".to_owned(),
            ..settings
        };
        let target = Target::read("a", &settings, "PCF").unwrap();
        target.request(&message, "7").unwrap()
    }

    fn message(form: Form, action: Option<&str>, path: &str) -> Message {
        Message {
            server: "a".to_owned(),
            path: Some(path.to_owned()),
            action: action.map(str::to_owned),
            form,
            body: "x".into(),
        }
    }

    #[test]
    fn a_path_follows_the_url_of_its_server() {
        for (path, expected) in [
            ("", "http://a/b/?c=d"),
            ("/e", "http://a/b/e?c=d"),
            ("/e?f=g", "http://a/b/e?c=d&f=g"),
            ("?f=g", "http://a/b/?c=d&f=g"),
        ] {
            let made = request(NotifierServer::default(), message(Form::Json, None, path));
            assert_eq!(made.uri().to_string(), expected);
        }
        assert_eq!(joined("http://a", "/b"), "http://a/b");
    }

    #[test]
    fn contents_are_described() {
        for (content_type, form, action, expected) in [
            ("", Form::Json, None, (Some("application/json"), None)),
            ("", Form::Empty, Some("urn:a"), (None, None)),
            (
                "",
                Form::Xml,
                Some("urn:a"),
                (Some("text/xml; charset=utf-8"), Some("\"urn:a\"")),
            ),
            (
                "",
                Form::Xml,
                None,
                (Some("text/xml; charset=utf-8"), Some("\"\"")),
            ),
            (
                "application/soap+xml; charset=utf-8",
                Form::Xml,
                Some("urn:a"),
                (
                    Some("application/soap+xml; charset=utf-8; action=\"urn:a\""),
                    None,
                ),
            ),
        ] {
            let settings = NotifierServer {
                content_type: content_type.to_owned(),
                soap_action: Some(String::new()),
                ..NotifierServer::default()
            };
            let made = request(settings, message(form, action, ""));
            let header = |name: &str| made.headers().get(name).map(|value| value.to_str().unwrap());
            assert_eq!((header("content-type"), header("soapaction")), expected);
            assert_eq!(
                (header("idempotency-key"), header("user-agent")),
                (Some("\"7\""), Some("PCF"))
            );
        }
    }
}
