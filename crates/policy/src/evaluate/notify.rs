//! Notifications to servers of the operator.

use crate::fault::FaultKind;
use crate::notification::{Content, Notification};
use crate::program::{Body, Notify};
use crate::template::{Part, Template};

use super::{Outcome, Run};

/// What a notification counts for beside its texts.
const OVERHEAD: usize = 32;

impl<'a> Run<'a, '_> {
    pub(super) fn notify(&mut self, notify: &'a Notify) -> Outcome<()> {
        let most = self.limits.notifications;
        if self.decision.notifications().len() >= most {
            let what = format!("the decision has more than {most} notifications (`notifications`)");
            return Err(self.fault(FaultKind::Output, what));
        }
        let (content, size) = match &notify.body {
            Body::Empty => (Content::Empty, 0),
            Body::Json(body) => {
                let value = self.value(body)?;
                (Content::Json(value), value.weight(self.output))
            }
            Body::Xml(template) => {
                let text = self.template(template)?;
                (Content::Xml(text), text.len())
            }
            Body::Text(template) => {
                let text = self.template(template)?;
                (Content::Text(text), text.len())
            }
        };
        let path = match &notify.path {
            Some(template) => Some(self.template(template)?),
            None => None,
        };
        self.put(size.saturating_add(OVERHEAD + path.map_or(0, str::len)))?;
        let notification = Notification {
            server: &notify.server,
            path,
            action: notify.action.as_deref(),
            content,
        };
        self.note_decided(|| {
            let decided = format!("notify.{}", notification.server);
            (crate::trace::shown(&notification), decided)
        });
        self.decision.notify(notification);
        Ok(())
    }

    /// A text with its values; what is null leaves nothing.
    fn template(&mut self, template: &'a Template) -> Outcome<&'a str> {
        let mut text = String::new();
        for part in &template.parts {
            match part {
                Part::Literal(literal) => {
                    self.charge(literal.len())?;
                    text.push_str(literal);
                }
                Part::Value(expr) => {
                    let value = self.value(expr)?;
                    if value.is_null() {
                        continue;
                    }
                    let value = self.text_of(value)?;
                    self.charge(value.len().saturating_mul(template.escape.growth()))?;
                    template.escape.add(&mut text, value);
                }
            }
        }
        self.charge(text.len() + 16)?;
        Ok(self.arena.alloc_str(&text))
    }
}
