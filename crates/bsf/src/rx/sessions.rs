//! The paths of Rx sessions: between which peer on the AF's side and which PCF.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use bytes::Bytes;

/// The two ends of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// The peer that the session's requests come from: the AF, or an agent before it.
    pub(super) af: Rc<str>,
    /// The PCF.
    pub(super) pcf: Rc<str>,
}

impl Path {
    pub(super) fn new(af: &str, pcf: &str) -> Self {
        Self {
            af: af.into(),
            pcf: pcf.into(),
        }
    }
}

/// The most recently used sessions, in two generations: when the younger is half of all that is allowed, the
/// older is forgotten.
#[derive(Debug)]
pub(super) struct Sessions {
    young: HashMap<Bytes, Path>,
    old: HashMap<Bytes, Path>,
    half: usize,
    /// Names of peers, each once.
    names: HashSet<Rc<str>>,
}

/// Names kept; beyond, they are not shared.
const MAX_NAMES: usize = 10_000;

impl Sessions {
    pub(super) fn new(most: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            half: (most / 2).max(1),
            names: HashSet::new(),
        }
    }

    fn shared(&mut self, name: Rc<str>) -> Rc<str> {
        if let Some(known) = self.names.get(&name) {
            return known.clone();
        }
        if self.names.len() < MAX_NAMES {
            self.names.insert(name.clone());
        }
        name
    }

    pub(super) fn insert(&mut self, id: &Bytes, path: Path) {
        let path = Path {
            af: self.shared(path.af),
            pcf: self.shared(path.pcf),
        };
        if self.young.len() >= self.half {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id.clone(), path);
    }

    pub(super) fn get(&mut self, id: &[u8]) -> Option<Path> {
        if let Some(path) = self.young.get(id) {
            return Some(path.clone());
        }
        let (id, path) = self.old.remove_entry(id)?;
        self.insert(&id, path.clone());
        Some(path)
    }

    pub(super) fn remove(&mut self, id: &[u8]) {
        self.young.remove(id);
        self.old.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_and_what_is_used_stays() {
        let mut sessions = Sessions::new(10);
        let id = |number: u32| Bytes::from(format!("af;1;{number}"));
        sessions.insert(&id(0), Path::new("af", "pcf"));
        for number in 1..100 {
            sessions.insert(&id(number), Path::new("af", "pcf"));
            assert!(sessions.get(&id(0)).is_some(), "{number}");
            assert!(sessions.young.len() + sessions.old.len() <= 11);
        }
        assert_eq!(sessions.get(&id(1)), None);
        sessions.remove(&id(0));
        assert_eq!(sessions.get(&id(0)), None);
        assert_eq!(sessions.names.len(), 2);
    }
}
