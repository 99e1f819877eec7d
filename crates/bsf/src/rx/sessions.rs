//! The paths of Rx sessions: between which peer on the AF's side and which PCF.

use std::collections::HashSet;
use std::rc::Rc;

use bounded::{Cache, Limits};
use bytes::Bytes;

/// The two ends of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// The peer that the session's requests come from: the AF, or an agent before it.
    pub(super) af: Rc<str>,
    /// The PCF.
    pub(super) pcf: Rc<str>,
    /// When its use was written to the store last, in microseconds since 1970.
    pub(super) renewed: u64,
}

impl Path {
    pub(super) fn new(af: &str, pcf: &str, renewed: u64) -> Self {
        Self {
            af: af.into(),
            pcf: pcf.into(),
            renewed,
        }
    }
}

/// The sessions in use; one that was not used lately goes when there are too many.
#[derive(Debug)]
pub(super) struct Sessions {
    paths: Cache<Bytes, Path>,
    /// Names of peers, each once.
    names: HashSet<Rc<str>>,
}

/// Names kept; beyond, they are not shared.
const MAX_NAMES: usize = 10_000;

impl Sessions {
    pub(super) fn new(most: usize) -> Self {
        Self {
            paths: Cache::new(Limits::entries(most.max(1))),
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
            renewed: path.renewed,
        };
        self.paths.insert(id.clone(), path);
    }

    pub(super) fn get(&self, id: &[u8]) -> Option<Path> {
        self.paths.get(id).cloned()
    }

    pub(super) fn remove(&mut self, id: &[u8]) {
        self.paths.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_and_what_is_used_stays() {
        let mut sessions = Sessions::new(10);
        let id = |number: u32| Bytes::from(format!("af;1;{number}"));
        sessions.insert(&id(0), Path::new("af", "pcf", 0));
        for number in 1..100 {
            sessions.insert(&id(number), Path::new("af", "pcf", 0));
            assert!(sessions.get(&id(0)).is_some(), "{number}");
            assert!(sessions.paths.len() <= 10);
        }
        assert_eq!(sessions.get(&id(1)), None);
        sessions.remove(&id(0));
        assert_eq!(sessions.get(&id(0)), None);
        assert_eq!(sessions.names.len(), 2);
    }
}
