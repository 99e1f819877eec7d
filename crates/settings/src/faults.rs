//! Collecting what is wrong, and what would be right.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which setting, such as `nrf.listen[0]`; empty for the document as a whole.
    pub path: String,
    /// What is wrong with it.
    pub what: String,
    /// What would be right.
    pub expected: String,
}

/// Collects the faults that [`Validate`] finds.
#[derive(Debug, Default)]
pub struct Faults {
    prefix: String,
    found: Vec<Fault>,
}

impl Faults {
    /// Names the setting that is at fault, by its path from the value that is being validated, with the keys
    /// as they are written in the file: `listen[0].port`, `"nnrf-disc".limit`.
    pub fn at(&mut self, path: impl Display) -> FaultAt<'_> {
        let path = self.absolute(&path.to_string());
        FaultAt { faults: self, path }
    }

    /// Validates a part; the paths of its faults are continued from `path`.
    pub fn within<V: Validate + ?Sized>(&mut self, path: impl Display, part: &V) {
        let inner = self.absolute(&path.to_string());
        let outer = std::mem::replace(&mut self.prefix, inner);
        part.validate(self);
        self.prefix = outer;
    }

    /// Whether nothing is wrong so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// What was found.
    #[must_use]
    pub fn into_vec(self) -> Vec<Fault> {
        self.found
    }

    pub(crate) fn push(&mut self, fault: Fault) {
        self.found.push(fault);
    }

    fn absolute(&self, path: &str) -> String {
        match (self.prefix.is_empty(), path.is_empty()) {
            (true, _) => path.to_owned(),
            (_, true) => self.prefix.clone(),
            _ if path.starts_with('[') => format!("{}{path}", self.prefix),
            _ => format!("{}.{path}", self.prefix),
        }
    }
}

/// A named setting that waits for its verdict.
#[must_use = "nothing is reported until `say` is called"]
#[derive(Debug)]
pub struct FaultAt<'a> {
    faults: &'a mut Faults,
    path: String,
}

impl FaultAt<'_> {
    /// Says what is wrong and what would be right: `.say("ends before it starts", "an end after start")`.
    pub fn say(self, what: impl Into<String>, expected: impl Into<String>) {
        self.faults.push(Fault {
            path: self.path,
            what: what.into(),
            expected: expected.into(),
        });
    }
}

/// What a schema cannot express: values that exclude each other, ends before starts, files that must exist.
pub trait Validate {
    /// Reports every fault; the default is a type whose schema says all.
    fn validate(&self, faults: &mut Faults) {
        let _ = faults;
    }
}

impl<V: Validate> Validate for Option<V> {
    fn validate(&self, faults: &mut Faults) {
        if let Some(value) = self {
            value.validate(faults);
        }
    }
}

impl<V: Validate + ?Sized> Validate for Box<V> {
    fn validate(&self, faults: &mut Faults) {
        (**self).validate(faults);
    }
}

impl<V: Validate> Validate for Vec<V> {
    fn validate(&self, faults: &mut Faults) {
        for (index, value) in self.iter().enumerate() {
            faults.within(format_args!("[{index}]"), value);
        }
    }
}

impl<V: Validate> Validate for BTreeMap<String, V> {
    fn validate(&self, faults: &mut Faults) {
        for (key, value) in self {
            faults.within(crate::node::join_key("", key), value);
        }
    }
}

impl<V: Validate, S> Validate for HashMap<String, V, S> {
    fn validate(&self, faults: &mut Faults) {
        for (key, value) in self {
            faults.within(crate::node::join_key("", key), value);
        }
    }
}

impl Validate for serde_json::Value {}

#[cfg(test)]
mod tests {
    use super::*;

    struct Port(u16);
    impl Validate for Port {
        fn validate(&self, faults: &mut Faults) {
            if self.0 == 0 {
                faults.at("port").say("is 0", "1 to 65535");
            }
        }
    }

    #[test]
    fn paths_continue_through_parts() {
        let mut faults = Faults::default();
        faults.within("listen", &vec![Port(1), Port(0)]);
        faults.at("").say("is empty", "something");
        let paths: Vec<_> = faults.into_vec().into_iter().map(|fault| fault.path).collect();
        assert_eq!(paths, ["listen[1].port", ""]);
    }
}
