//! Heads of messages: what comes before the body.

use http::{Method, StatusCode};

use crate::fields::name::{AUTHORITY, METHOD, PATH, SCHEME};
use crate::fields::{Fields, Name, Value};

/// The head of a request. Its pseudo-header fields lie with the others in `fields`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The method; also `:method` of the fields.
    method: Method,
    /// All fields.
    pub fields: Fields,
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status.
    pub status: StatusCode,
    /// The fields; none of them is `:status`.
    pub fields: Fields,
}

impl RequestHead {
    /// A request for `target` (path and query, which begins with `/`) at an authority.
    #[must_use]
    pub fn new(method: Method, scheme: Value<'_>, authority: Value<'_>, target: Value<'_>) -> Self {
        let mut fields = Fields::with_capacity(16, 256);
        fields.append(METHOD, Value::again(method.as_str().as_bytes()));
        fields.append(SCHEME, scheme);
        fields.append(AUTHORITY, authority);
        fields.append(PATH, target);
        Self { method, fields }
    }

    /// A request for `target` at an authority that is still to be set.
    #[must_use]
    pub fn to(method: Method, target: Value<'_>) -> Self {
        let mut fields = Fields::with_capacity(16, 256);
        fields.append(METHOD, Value::again(method.as_str().as_bytes()));
        fields.append(PATH, target);
        Self { method, fields }
    }

    /// The head of a request that these fields are, `:method` among them.
    #[must_use]
    pub fn of_fields(method: Method, fields: Fields) -> Self {
        Self { method, fields }
    }

    /// The method.
    #[must_use]
    #[inline]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// `:path`: path and query (RFC 9113 §8.3.1).
    #[must_use]
    #[inline]
    pub fn target(&self) -> &str {
        self.text(PATH)
    }

    /// The path without the query.
    #[must_use]
    #[inline]
    pub fn path(&self) -> &str {
        let target = self.target();
        let path = query_mark(target).and_then(|at| target.get(..at));
        path.unwrap_or(target)
    }

    /// The query, without `?`.
    #[must_use]
    #[inline]
    pub fn query(&self) -> Option<&str> {
        let target = self.target();
        query_mark(target).and_then(|at| target.get(at + 1..))
    }

    /// `:authority`, or Host where there is none; empty without both.
    #[must_use]
    pub fn authority(&self) -> &str {
        match self.text(AUTHORITY) {
            "" => self.text(crate::fields::name::HOST),
            authority => authority,
        }
    }

    /// `:scheme`; empty without one.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.text(SCHEME)
    }

    /// Replaces path and query.
    pub fn set_target(&mut self, target: Value<'_>) {
        self.fields.set(PATH, target);
    }

    /// Replaces scheme and authority.
    pub fn set_origin(&mut self, scheme: Value<'_>, authority: Value<'_>) {
        self.fields.set_again(SCHEME, scheme);
        self.fields.set_again(AUTHORITY, authority);
    }

    fn text(&self, name: Name<'_>) -> &str {
        self.fields
            .get(name)
            .and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
            .unwrap_or_default()
    }
}

/// Where the query begins. A relayed request is asked for its path some ten times, and `str::split_once` takes several
/// times as many instructions.
fn query_mark(target: &str) -> Option<usize> {
    memchr::memchr(b'?', target.as_bytes())
}

impl ResponseHead {
    /// A head without fields.
    #[must_use]
    pub const fn new(status: StatusCode) -> Self {
        Self {
            status,
            fields: Fields::new(),
        }
    }
}

/// Scheme and authority are those of an absolute URI only.
impl From<http::request::Parts> for RequestHead {
    fn from(parts: http::request::Parts) -> Self {
        let mut fields = Fields::with_capacity(parts.headers.len() + 5, 512);
        fields.append(METHOD, Value::again(parts.method.as_str().as_bytes()));
        if let Some(scheme) = parts.uri.scheme_str() {
            fields.append(SCHEME, Value::again(scheme.as_bytes()));
        }
        if let Some(authority) = parts.uri.authority() {
            fields.append(AUTHORITY, Value::again(authority.as_str().as_bytes()));
        }
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        fields.append(PATH, Value::again(target.as_bytes()));
        fields.extend_of_map(&parts.headers);
        Self {
            method: parts.method,
            fields,
        }
    }
}

impl From<http::response::Parts> for ResponseHead {
    fn from(parts: http::response::Parts) -> Self {
        Self {
            status: parts.status,
            fields: Fields::from(&parts.headers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_path_and_a_query() {
        for (target, path, query) in [
            ("/a/b", "/a/b", None),
            ("/a?b=c", "/a", Some("b=c")),
            ("/a?", "/a", Some("")),
            ("/a?b?c", "/a", Some("b?c")),
            ("/ö?ä", "/ö", Some("ä")),
            ("*", "*", None),
        ] {
            let target = Value::new(target.as_bytes()).unwrap();
            let head = RequestHead::to(Method::GET, target);
            assert_eq!((head.path(), head.query()), (path, query));
        }
    }

    #[test]
    fn a_head_of_parts_has_the_fields_in_place() {
        let request = http::Request::post("http://a:1/x?y=1")
            .header("x-one", "1")
            .body(());
        let head = RequestHead::from(request.unwrap().into_parts().0);
        let given = (
            head.method(),
            head.scheme(),
            head.authority(),
            head.path(),
            head.query(),
        );
        assert_eq!(given, (&Method::POST, "http", "a:1", "/x", Some("y=1")));
        assert_eq!(head.fields.get("x-one"), Some(Value::from_static("1")));
        let head = RequestHead::from(http::Request::new(()).into_parts().0);
        assert_eq!((head.authority(), head.target(), head.fields.len()), ("", "/", 2));
    }
}
