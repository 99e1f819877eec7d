//! Routes by realm and application (RFC 6733 §2.7): the last resort of requests that no rule sends to a list.

use ahash::AHashMap;
use diameter::proto::identity::with_lower;
use smallvec::SmallVec;

use crate::measures::Count;

/// The table.
#[derive(Debug, Default)]
pub(crate) struct RealmRoutes {
    /// By realm in lower case.
    exact: AHashMap<Box<[u8]>, Entries>,
    /// Of realms and all below them, by realm in lower case.
    below: AHashMap<Box<[u8]>, Entries>,
    /// Of any realm.
    any: Entries,
}

type Entries = SmallVec<[Entry; 1]>;

#[derive(Debug)]
struct Entry {
    /// Empty: any.
    applications: SmallVec<[u32; 4]>,
    list: usize,
    count: Count,
}

impl RealmRoutes {
    /// Adds a route: of a realm, of `.realm` and all below it, or of `*`.
    pub(crate) fn add(&mut self, realm: &str, applications: &[u32], list: usize, count: Count) {
        let key = |realm: &str| realm.to_ascii_lowercase().into_bytes().into_boxed_slice();
        let entries = match realm.strip_prefix('.') {
            _ if realm == "*" => &mut self.any,
            Some(realm) => self.below.entry(key(realm)).or_default(),
            None => self.exact.entry(key(realm)).or_default(),
        };
        entries.push(Entry {
            applications: applications.into(),
            list,
            count,
        });
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.below.is_empty() && self.any.is_empty()
    }

    /// The list for a realm and application: the realm itself, the nearest realm above it, any realm; in each the first
    /// that has the application.
    pub(crate) fn find(&self, realm: &[u8], application: u32) -> Option<(usize, Count)> {
        if self.is_empty() {
            return None;
        }
        with_lower(realm, |realm| {
            let exact = self.exact.get(realm);
            let above = (0..realm.len()).filter_map(|at| match at {
                0 => Some(realm),
                _ if realm.get(at - 1) == Some(&b'.') => realm.get(at..),
                _ => None,
            });
            let above = above.filter_map(|realm| self.below.get(realm));
            let mut all = exact.into_iter().chain(above).chain([&self.any]).flatten();
            let fits =
                |entry: &&Entry| entry.applications.is_empty() || entry.applications.contains(&application);
            all.find(fits).map(|entry| (entry.list, entry.count))
        })?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_realm_with_the_application_counts() {
        let mut routes = RealmRoutes::default();
        assert!(routes.find(b"a.example", 1).is_none());
        for (list, (realm, applications)) in [
            ("A.example", &[1][..]),
            (".example", &[1, 2]),
            (".b.example", &[]),
            ("*", &[3]),
        ]
        .into_iter()
        .enumerate()
        {
            routes.add(realm, applications, list, Count::NONE);
        }
        for (realm, application, expected) in [
            ("a.EXAMPLE", 1, Some(0)),
            ("a.example", 2, Some(1)),
            ("example", 1, Some(1)),
            ("c.b.example", 9, Some(2)),
            ("b.example", 1, Some(2)),
            ("xb.example", 2, Some(1)),
            ("other", 3, Some(3)),
            ("other", 1, None),
        ] {
            let found = routes.find(realm.as_bytes(), application);
            assert_eq!(found.map(|(list, _)| list), expected, "{realm} {application}");
        }
    }
}
