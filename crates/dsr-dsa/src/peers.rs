//! Numbers for the names of peers: a memo has no room for a name.

use std::rc::Rc;

use ahash::AHashMap;

/// Bound on names.
const MAX_PEERS: usize = 65_536;

/// Names of the peers of a worker by their numbers, from 1.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    numbers: AHashMap<Rc<str>, u32>,
    names: Vec<Rc<str>>,
}

impl Peers {
    /// The number of a peer; 0: there are too many.
    pub(crate) fn number_of(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if self.names.len() >= MAX_PEERS {
            return 0;
        }
        let name: Rc<str> = name.into();
        self.names.push(name.clone());
        let number = self.names.len() as u32;
        self.numbers.insert(name, number);
        number
    }

    /// The peer of a number; empty: none has it.
    pub(crate) fn name(&self, number: u32) -> &str {
        let at = (number as usize).checked_sub(1);
        at.and_then(|at| self.names.get(at)).map_or("", |name| name)
    }
}
