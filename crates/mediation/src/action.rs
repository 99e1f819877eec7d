//! Compiled actions.

use std::borrow::Cow;

use http::{HeaderName, HeaderValue};
use sbi_proto::{Name, Value as FieldValue};
use serde_json::Value;

use super::Outcome;
use super::condition::Subject;
use super::message::Mediated;
use super::pointer::Pointer;
use super::rules::{Rejection, Steering};

/// A compiled action.
#[derive(Debug)]
pub(super) enum Step {
    AddHeader(HeaderName, HeaderSource),
    SetHeader(HeaderName, HeaderSource),
    ReplaceHeader(HeaderName, HeaderSource),
    RemoveHeader(HeaderName),
    RenameHeader(HeaderName, HeaderName),
    SetJson(Pointer, JsonSource),
    RemoveJson(Pointer),
    MoveJson(Pointer, Pointer),
    Reject(Rejection),
    Route(Steering),
}

#[derive(Debug)]
pub(super) enum HeaderSource {
    Literal(HeaderValue),
    Copy(Subject),
}

#[derive(Debug)]
pub(super) enum JsonSource {
    Literal(Value),
    Copy(Subject),
}

impl Step {
    pub(super) fn take(&self, message: &mut Mediated<'_>, outcome: &mut Outcome) {
        match self {
            Self::AddHeader(name, source) => {
                if let Some(value) = source.read(message) {
                    message.headers.append(name, &*value);
                }
            }
            Self::SetHeader(name, source) => {
                if let Some(value) = source.read(message) {
                    message.headers.set(name, &*value);
                }
            }
            Self::ReplaceHeader(name, source) => {
                if message.headers.contains(name)
                    && let Some(value) = source.read(message)
                {
                    message.headers.set(name, &*value);
                }
            }
            Self::RemoveHeader(name) => {
                message.headers.remove(name);
            }
            Self::RenameHeader(from, to) => {
                let (headers, from) = (&mut *message.headers, Name::from(from));
                let named = headers.iter().filter(|field| field.name == from);
                let moved: Vec<(Vec<u8>, bool)> = named
                    .map(|field| (field.value.as_bytes().to_vec(), field.sensitive))
                    .collect();
                headers.remove(from);
                for (value, sensitive) in &moved {
                    match FieldValue::new(value) {
                        Ok(value) if *sensitive => headers.append_sensitive(to, value),
                        Ok(value) => headers.append(to, value),
                        // It was a value before.
                        Err(_) => {}
                    }
                }
            }
            Self::SetJson(pointer, source) => {
                if let Some(value) = source.read(message) {
                    message
                        .document
                        .change(message.headers, |root| pointer.set(root, value));
                }
            }
            Self::RemoveJson(pointer) => {
                message
                    .document
                    .change(message.headers, |root| pointer.take(root).is_some());
            }
            Self::MoveJson(from, to) => message.document.change(message.headers, |root| {
                let Some(value) = from.take(root) else {
                    return false;
                };
                // If the target cannot take the value, it stays at its source.
                if !to.set(root, value.clone()) {
                    from.set(root, value);
                }
                true
            }),
            Self::Reject(rejection) => outcome.reject = Some(rejection.clone()),
            Self::Route(steering) => outcome.steering.merge(steering),
        }
    }
}

impl HeaderSource {
    fn read(&self, message: &mut Mediated<'_>) -> Option<Cow<'_, HeaderValue>> {
        let text = match self {
            Self::Literal(value) => return Some(Cow::Borrowed(value)),
            Self::Copy(subject) => match subject.read(message)? {
                Value::String(text) => text,
                value @ (Value::Number(_) | Value::Bool(_)) => value.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            },
        };
        HeaderValue::try_from(text).ok().map(Cow::Owned)
    }
}

impl JsonSource {
    fn read(&self, message: &mut Mediated<'_>) -> Option<Value> {
        match self {
            Self::Literal(value) => Some(value.clone()),
            Self::Copy(subject) => subject.read(message),
        }
    }
}
