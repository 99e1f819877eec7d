//! Compiled conditions: subject and operator.

use http::HeaderName;
use regex::Regex;
use serde_json::Value;

use super::message::Mediated;
use super::pointer::Pointer;
use super::rules::Property;

/// A compiled condition.
#[derive(Debug)]
pub(super) enum Test {
    All(Vec<Test>),
    Any(Vec<Test>),
    Not(Box<Test>),
    One(Subject, Operator),
}

/// Subject of a test, or source of a copied value.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    Header(HeaderName),
    Json(Pointer),
    Property(Property),
}

/// Operator of a test. An absent subject fails every operator but `Exists(false)`.
#[derive(Debug)]
pub(super) enum Operator {
    Exists(bool),
    OneOf(Vec<Value>),
    StartsWith(String),
    EndsWith(String),
    Contains(String),
    Matches(Regex),
    Above(f64),
    Below(f64),
}

impl Test {
    pub(super) fn holds(&self, message: &mut Mediated<'_>) -> bool {
        match self {
            Self::All(tests) => tests.iter().all(|test| test.holds(message)),
            Self::Any(tests) => tests.iter().any(|test| test.holds(message)),
            Self::Not(test) => !test.holds(message),
            Self::One(subject, operator) => match subject {
                Subject::Header(name) => {
                    let text = message.headers.get(name).and_then(|value| value.to_str().ok());
                    operator.holds_for_text(text)
                }
                Subject::Json(pointer) => {
                    let value = message
                        .document
                        .value(message.headers)
                        .and_then(|root| pointer.get(root));
                    operator.holds_for_value(value)
                }
                Subject::Property(property) => match property {
                    Property::Method => operator.holds_for_text(Some(message.method.as_str())),
                    Property::Path => operator.holds_for_text(Some(message.path)),
                    Property::Query => operator.holds_for_text(message.query),
                    Property::Status => {
                        operator.holds_for_text(message.status.as_ref().map(http::StatusCode::as_str))
                    }
                },
            },
        }
    }
}

impl Subject {
    /// The value of the subject, for copying.
    pub(super) fn read(&self, message: &mut Mediated<'_>) -> Option<Value> {
        let text = |text: &str| Value::String(text.to_owned());
        match self {
            Self::Header(name) => message
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .map(text),
            Self::Json(pointer) => message
                .document
                .value(message.headers)
                .and_then(|root| pointer.get(root))
                .cloned(),
            Self::Property(Property::Method) => Some(text(message.method.as_str())),
            Self::Property(Property::Path) => Some(text(message.path)),
            Self::Property(Property::Query) => message.query.map(text),
            Self::Property(Property::Status) => message.status.map(|status| Value::from(status.as_u16())),
        }
    }
}

impl Operator {
    fn holds_for_text(&self, text: Option<&str>) -> bool {
        let Some(text) = text else {
            return matches!(self, Self::Exists(false));
        };
        match self {
            Self::Exists(wanted) => *wanted,
            Self::OneOf(values) => values.iter().any(|value| same_text(value, text)),
            Self::StartsWith(prefix) => text.starts_with(prefix),
            Self::EndsWith(suffix) => text.ends_with(suffix),
            Self::Contains(part) => text.contains(part),
            Self::Matches(pattern) => pattern.is_match(text),
            Self::Above(bound) => text.trim().parse().is_ok_and(|number: f64| number > *bound),
            Self::Below(bound) => text.trim().parse().is_ok_and(|number: f64| number < *bound),
        }
    }

    fn holds_for_value(&self, value: Option<&Value>) -> bool {
        match (self, value) {
            (Self::Exists(wanted), value) => value.is_some() == *wanted,
            (_, None) => false,
            (Self::OneOf(values), Some(value)) => values.contains(value),
            (Self::Above(bound), Some(Value::Number(number))) => number.as_f64().is_some_and(|n| n > *bound),
            (Self::Below(bound), Some(Value::Number(number))) => number.as_f64().is_some_and(|n| n < *bound),
            (_, Some(Value::String(text))) => self.holds_for_text(Some(text)),
            (_, Some(_)) => false,
        }
    }
}

/// Headers and properties are text; a rule may still say `equals: 201` or `equals: true`.
fn same_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(wanted) => wanted == text,
        Value::Number(wanted) => wanted.to_string() == text,
        Value::Bool(wanted) => text == if *wanted { "true" } else { "false" },
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}
