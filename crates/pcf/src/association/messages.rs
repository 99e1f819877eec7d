//! Messages of a decision to servers of the operator, from the decision until it is written.

use bytes::Bytes;
use policy::{Content, Notification};

/// The messages of the decision that an association has last. Its record does not contain them: what was read has none, and two
/// associations that differ in nothing else are equal.
#[derive(Clone, Debug, Default)]
pub struct Messages(Vec<Message>);

impl PartialEq for Messages {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Messages {
    /// Takes them out.
    pub(crate) fn take(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.0)
    }

    /// Drops them: the decision was made before, for a request that is sent again.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl From<Vec<Message>> for Messages {
    fn from(messages: Vec<Message>) -> Self {
        Self(messages)
    }
}

/// A message to a server of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Name of the server in the settings.
    pub(crate) server: String,
    /// What follows its URL.
    pub(crate) path: Option<String>,
    /// The SOAP action.
    pub(crate) action: Option<String>,
    pub(crate) form: Form,
    pub(crate) body: Bytes,
}

/// What a content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Empty,
    Json,
    Xml,
    Text,
}

impl Message {
    /// What a policy project has made.
    pub(crate) fn of(notification: &Notification<'_>) -> Self {
        let (form, body) = match &notification.content {
            Content::Empty => (Form::Empty, String::new()),
            // A value of an evaluation, which bounds its depth: it is JSON.
            Content::Json(value) => (Form::Json, serde_json::to_string(value).unwrap_or_default()),
            Content::Xml(text) => (Form::Xml, (*text).to_owned()),
            Content::Text(text) => (Form::Text, (*text).to_owned()),
        };
        Self {
            server: notification.server.to_owned(),
            path: notification.path.map(str::to_owned),
            action: notification.action.map(str::to_owned),
            form,
            body: body.into(),
        }
    }

    /// Its size in memory, nearly.
    pub(crate) fn size(&self) -> usize {
        let path = self.path.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.body.len() + path
    }
}
