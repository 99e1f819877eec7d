//! A YAML file of another core, which knows what of it was read.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::Value;
use settings::{Document, Fault, Limits, Report, path_key};

/// Why a part is not carried over, by the end of its path.
pub(crate) type Reasons = &'static [(&'static str, &'static str)];

/// A file.
#[derive(Debug)]
pub(crate) struct Source {
    name: String,
    document: Document,
    values: Value,
    read: RefCell<BTreeSet<String>>,
    faults: RefCell<Vec<Fault>>,
}

impl Source {
    pub(crate) fn parse(text: &str, name: &str) -> Result<Self, Report> {
        let document = Document::parse(text, name, Limits::default())?;
        Ok(Self {
            name: name.to_owned(),
            values: document.to_texts(),
            document,
            read: RefCell::default(),
            faults: RefCell::default(),
        })
    }

    /// The whole document.
    pub(crate) fn root(&self) -> Part<'_> {
        Part {
            source: self,
            path: String::new(),
            value: &self.values,
        }
    }

    /// The name of the file without its folder.
    pub(crate) fn file_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// Refuses all that was not read.
    pub(crate) fn refuse_rest(&self, reasons: Reasons) {
        self.refuse_unread(&self.root(), reasons);
    }

    /// Whether anything in the part was read; refuses the largest parts in which nothing was.
    fn refuse_unread(&self, part: &Part<'_>, reasons: Reasons) {
        let inner = part.children();
        if self.is_read(&part.path) {
            return;
        }
        if !part.path.is_empty() && (inner.is_empty() || !self.is_read_within(&part.path)) {
            let path = plain(&part.path);
            let reason = reasons.iter().find(|(end, _)| is_end(&path, end));
            part.refuse(reason.map_or("it is not known here", |(_, reason)| reason));
            return;
        }
        for part in inner {
            self.refuse_unread(&part, reasons);
        }
    }

    fn is_read(&self, path: &str) -> bool {
        self.read.borrow().contains(path)
    }

    fn is_read_within(&self, path: &str) -> bool {
        let read = self.read.borrow();
        let mut others = read
            .range(path.to_owned()..)
            .take_while(|other| other.starts_with(path));
        others.any(|other| {
            let rest = other.get(path.len()..).unwrap_or_default();
            rest.is_empty() || rest.starts_with(['.', '['])
        })
    }

    /// A line for each part that is not carried over, in the order of the file.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let report = self.document.report(self.faults.borrow().clone());
        let mut findings: Vec<_> = report.findings().iter().collect();
        findings.sort_by_key(|finding| finding.place);
        let line = |finding: &&settings::Finding| {
            format!(
                "{}:{}: {}: not carried over: {}",
                self.name, finding.place.line, finding.path, finding.what
            )
        };
        findings.iter().map(line).collect()
    }
}

/// A path without its indices.
fn plain(path: &str) -> String {
    let mut text = String::new();
    let mut is_index = false;
    for c in path.chars() {
        is_index = (is_index || c == '[') && c != ']';
        if !is_index && c != ']' {
            text.push(c);
        }
    }
    text
}

fn is_end(path: &str, end: &str) -> bool {
    path.strip_suffix(end)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// A part of a file; reading it marks it.
#[derive(Clone, Debug)]
pub(crate) struct Part<'s> {
    source: &'s Source,
    path: String,
    value: &'s Value,
}

impl<'s> Part<'s> {
    /// A member; nothing where it is absent.
    pub(crate) fn get(&self, key: &str) -> Part<'s> {
        Part {
            source: self.source,
            path: path_key(&self.path, key),
            value: &self.value[key],
        }
    }

    /// A member of a member.
    pub(crate) fn at(&self, keys: &[&str]) -> Part<'s> {
        keys.iter().fold(self.clone(), |part, key| part.get(key))
    }

    pub(crate) fn is_there(&self) -> bool {
        !self.value.is_null()
    }

    pub(crate) fn is_object(&self) -> bool {
        self.value.is_object()
    }

    /// Its text, where it has one that is not empty.
    pub(crate) fn text(&self) -> Option<&'s str> {
        let text = self.value.as_str()?;
        self.mark();
        Some(text).filter(|text| !text.is_empty())
    }

    /// Its number; a text that is none is refused.
    pub(crate) fn number(&self) -> Option<u64> {
        let number = self.text()?.parse().ok();
        if number.is_none() {
            self.refuse("it is not a number");
        }
        number
    }

    /// Whether it is one of the words for yes.
    pub(crate) fn is_yes(&self) -> bool {
        self.text()
            .is_some_and(|text| ["true", "yes", "on", "1"].contains(&text.to_lowercase().as_str()))
    }

    /// The items of a list; any other value is its own only item.
    pub(crate) fn items(&self) -> Vec<Part<'s>> {
        match self.value {
            Value::Null => Vec::new(),
            Value::Array(_) => self.children(),
            _ => vec![self.clone()],
        }
    }

    pub(crate) fn children(&self) -> Vec<Part<'s>> {
        let part = |path, value| Part {
            source: self.source,
            path,
            value,
        };
        match self.value {
            Value::Object(members) => members
                .iter()
                .map(|(key, value)| part(path_key(&self.path, key), value))
                .collect(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, value)| part(format!("{}[{index}]", self.path), value))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// As [`Part::refuse`], of a part that is there.
    pub(crate) fn refuse_if_there(&self, reason: &str) {
        if self.is_there() {
            self.refuse(reason);
        }
    }

    /// As [`Part::refuse`], of a part that is there and was not read.
    pub(crate) fn refuse_unless_read(&self, reason: &str) {
        if !self.source.is_read(&self.path) {
            self.refuse_if_there(reason);
        }
    }

    /// Where it is in the file.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The part was read.
    pub(crate) fn mark(&self) {
        self.source.read.borrow_mut().insert(self.path.clone());
    }

    /// The part is not carried over, with all that is in it.
    pub(crate) fn refuse(&self, reason: &str) {
        self.mark();
        self.source.faults.borrow_mut().push(Fault {
            path: self.path.clone(),
            what: reason.to_owned(),
            expected: String::new(),
        });
    }
}
