//! Rules, data and members of the decision.

use crate::expression::Expr;
use crate::fault::FaultKind;
use crate::operation::Operation;
use crate::program::{Entry, Member};
use crate::shape::Kind;
use crate::value::Value;

use super::{Outcome, Run, Stopped};

impl<'a> Run<'a, '_> {
    pub(super) fn entry(&mut self, entry: &'a Entry) -> Outcome<()> {
        let naming = entry.section.naming();
        let (id, value) = match (&entry.constant, &entry.whole) {
            (Some((json, size)), _) => {
                self.put(*size)?;
                let id = self.value(&entry.id)?;
                (self.identifier(id, naming.id)?, Value::Json(json))
            }
            (None, Some(whole)) => {
                let value = self.value(whole)?;
                let id = value.member(naming.id);
                let id = self.identifier(id, naming.id)?;
                for (name, kind) in naming.shape.members {
                    let member = value.member(name);
                    if !member.is_null() && !kind.admits(&member) {
                        let what = format!(
                            "`{name}` is {}; {} has {}",
                            member.kind(),
                            naming.shape.name,
                            kind.describe()
                        );
                        return Err(self.fault(FaultKind::Value, what));
                    }
                }
                self.put(value.weight(self.output))?;
                (id, value)
            }
            (None, None) => {
                let id = self.value(&entry.id)?;
                let id = self.identifier(id, naming.id)?;
                let value = self.object(&entry.members, |run, member| {
                    Ok((member.name.as_str(), run.member_value(member)?))
                })?;
                self.put(value.weight(self.output))?;
                (id, value)
            }
        };
        let section = entry.section;
        self.note_decided(|| {
            let decided = format!("{}.{id}", section.member());
            (crate::trace::shown(&value), decided)
        });
        self.decision.put(section, id, value);
        Ok(())
    }

    pub(super) fn members(&mut self, members: &'a [Member]) -> Outcome<()> {
        let mut names = Vec::new();
        for member in members {
            let value = self.member_value(member)?;
            if value.is_null() {
                continue;
            }
            self.put(value.weight(self.output) + member.name.len())?;
            if self.trace.is_some() {
                names.push(member.name.as_str());
                self.read(|| format!("{} becomes", member.name), &value);
            }
            self.decision.set(&member.name, value);
        }
        self.note_decided(|| (format!("{} members", names.len()), names.join(", ")));
        Ok(())
    }

    pub(super) fn triggers(&mut self, triggers: &'a [Expr]) -> Outcome<()> {
        for trigger in triggers {
            let value = self.value(trigger)?;
            let Some(text) = value.as_str() else {
                let what = format!("a trigger is {}; expected a text such as US_RE", value.kind());
                return Err(self.fault(FaultKind::Value, what));
            };
            self.put(text.len() + 3)?;
            self.decision.trigger(text);
        }
        self.note_decided(|| (format!("{} triggers", triggers.len()), "triggers".to_owned()));
        Ok(())
    }

    /// The value of a member, if it fits the standard's type.
    fn member_value(&mut self, member: &'a Member) -> Outcome<Value<'a>> {
        let value = self.value(&member.value)?;
        // Constants were checked at load, and a time from now is one.
        if member.value.constant().is_some() {
            return Ok(value);
        }
        let is_time = matches!(member.value, Expr::Apply(Operation::TimeAfter, _)) && !value.is_null();
        if is_time && matches!(member.kind, Kind::DateTime) {
            return Ok(value);
        }
        if value.is_null() {
            if member.required {
                let what = format!("`{}` is null; expected {}", member.name, member.kind.describe());
                return Err(self.fault(FaultKind::Value, what));
            }
        } else if !member.kind.admits(&value) {
            let shown = crate::trace::shown(&value);
            let what = format!(
                "`{}` is {shown}; expected {}",
                member.name,
                member.kind.describe()
            );
            return Err(self.fault(FaultKind::Value, what));
        }
        Ok(value)
    }

    /// The identifier of an entry: a text, or the number of a precedence.
    pub(super) fn identifier(&mut self, id: Value<'a>, name: &str) -> Outcome<&'a str> {
        match id {
            Value::Text(text) if !text.is_empty() => Ok(text),
            Value::Made(text) if !text.is_empty() => Ok(text),
            Value::Int(int) => self.text_of(Value::Int(int)),
            other => {
                let what = format!("`{name}` is {}; expected an identifier", other.kind());
                Err(self.fault(FaultKind::Value, what))
            }
        }
    }

    /// Takes room in the decision.
    pub(super) fn put(&mut self, bytes: usize) -> Outcome<()> {
        if self.decision.len() >= self.limits.output_entries {
            return Err(self.out_of_output("entries (`outputEntries`)", self.limits.output_entries));
        }
        match self.output.checked_sub(bytes) {
            Some(left) => {
                self.output = left;
                Ok(())
            }
            None => Err(self.out_of_output("bytes (`outputBytes`)", self.limits.output_bytes)),
        }
    }

    #[cold]
    fn out_of_output(&mut self, unit: &str, most: usize) -> Stopped {
        self.fault(
            FaultKind::Output,
            format!("the decision has more than {most} {unit}"),
        )
    }
}
