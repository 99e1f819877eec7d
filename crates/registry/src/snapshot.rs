//! The registry as readers see it: immutable, cheap to copy with one change.

use std::sync::Arc;

use ahash::AHashMap;
use arc_swap::ArcSwap;
use model::{NfInstanceId, NfType};

use crate::Entry;

/// Entries per chunk of a type's table, on average at most: a change copies one chunk and the list of chunks.
const CHUNK: usize = 64;
/// Buckets of the index by identity: a change copies one bucket.
const BUCKETS: usize = 256;

type Bucket = AHashMap<NfInstanceId, Arc<Entry>>;

/// All profiles at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    version: u64,
    count: usize,
    buckets: Vec<Arc<Bucket>>,
    types: AHashMap<NfType, Arc<TypeTable>>,
}

impl Default for Snapshot {
    fn default() -> Self {
        Self {
            version: 0,
            count: 0,
            buckets: vec![Arc::default(); BUCKETS],
            types: AHashMap::new(),
        }
    }
}

/// The profiles of one NF type, in chunks by identity: a profile is found in a time that does not grow with their count.
#[derive(Clone, Debug, Default)]
pub struct TypeTable {
    generation: u64,
    shape: u64,
    count: usize,
    chunks: Vec<Arc<Vec<Arc<Entry>>>>,
    /// The last changes, oldest first, each with the generation that it made.
    recent: Vec<(u64, NfInstanceId)>,
    /// The generation of the last change that is not among them.
    forgotten: u64,
}

/// Changes of a type that are recorded one by one.
const RECENT: usize = 64;

impl TypeTable {
    /// Changes whenever one of the profiles changes, never otherwise; answers may be kept as long as it stays.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Changes when a profile comes, goes or is another text; not with its status and load.
    #[must_use]
    pub fn shape(&self) -> u64 {
        self.shape
    }

    /// The instances that have changed since a generation; `None` when that is too long ago.
    pub fn changed_since(&self, generation: u64) -> Option<impl Iterator<Item = &NfInstanceId>> {
        let since = self.recent.iter().filter(move |(at, _)| *at > generation);
        (generation >= self.forgotten).then(|| since.map(|(_, id)| id))
    }

    /// The profile of an instance.
    #[must_use]
    pub fn get(&self, id: &NfInstanceId) -> Option<&Arc<Entry>> {
        let chunk = self.chunks.get(chunk_of(id, self.chunks.len()))?;
        chunk.iter().find(|entry| entry.id == *id)
    }

    /// A change of an instance has made a generation.
    fn change(&mut self, generation: u64, id: NfInstanceId) {
        if self.generation == 0 {
            // The history of an earlier table of this type is not recorded.
            self.forgotten = generation.saturating_sub(1);
        }
        self.generation = generation;
        if self.recent.len() >= RECENT {
            self.forgotten = self.recent.remove(0).0;
        }
        self.recent.push((generation, id));
    }

    /// The profiles.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn put(&mut self, entry: Arc<Entry>) {
        if self.count >= self.chunks.len() * CHUNK {
            self.grow();
        }
        let chunk = chunk_of(&entry.id, self.chunks.len());
        let Some(chunk) = self.chunks.get_mut(chunk).map(Arc::make_mut) else {
            return;
        };
        match chunk.iter_mut().find(|known| known.id == entry.id) {
            Some(known) => {
                if !known.shares_text(&entry) {
                    self.shape = self.generation;
                }
                *known = entry;
            }
            None => {
                chunk.push(entry);
                self.count += 1;
                self.shape = self.generation;
            }
        }
    }

    /// Doubles the chunks.
    fn grow(&mut self) {
        let count = (self.chunks.len() * 2).max(1);
        let mut chunks = vec![Vec::with_capacity(CHUNK); count];
        for entry in self.iter() {
            if let Some(chunk) = chunks.get_mut(chunk_of(&entry.id, count)) {
                chunk.push(entry.clone());
            }
        }
        self.chunks = chunks.into_iter().map(Arc::new).collect();
    }

    fn remove(&mut self, id: &NfInstanceId) {
        let chunk = chunk_of(id, self.chunks.len());
        let Some(chunk) = self.chunks.get_mut(chunk) else {
            return;
        };
        if let Some(place) = chunk.iter().position(|entry| entry.id == *id) {
            Arc::make_mut(chunk).remove(place);
            self.count -= 1;
            self.shape = self.generation;
        }
    }
}

/// The chunk of an identity among a power of two of them.
fn chunk_of(id: &NfInstanceId, chunks: usize) -> usize {
    // Identities are chosen by those who register: not every UUID is random in the same bytes.
    let hash = crate::fingerprint(&[id.0.as_bytes()]);
    (hash as usize) & chunks.saturating_sub(1)
}

fn bucket_of(id: &NfInstanceId) -> usize {
    // The last byte of a UUID is random in every version we meet.
    usize::from(id.0.as_bytes()[15]) % BUCKETS
}

impl Snapshot {
    /// Changes with every change of any profile.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How many profiles there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The profile of an instance.
    #[must_use]
    pub fn get(&self, id: &NfInstanceId) -> Option<&Arc<Entry>> {
        self.buckets[bucket_of(id)].get(id)
    }

    /// The profiles of a type.
    #[must_use]
    pub fn of_type(&self, nf_type: &NfType) -> Option<&Arc<TypeTable>> {
        self.types.get(nf_type)
    }

    /// All tables, by type.
    pub fn types(&self) -> impl Iterator<Item = (&NfType, &Arc<TypeTable>)> {
        self.types.iter()
    }

    /// All profiles, type by type.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.types.values().flat_map(|table| table.iter())
    }

    /// This snapshot with one profile added or replaced.
    #[must_use]
    pub fn with(&self, entry: Arc<Entry>) -> Self {
        let mut next = self.clone();
        next.version += 1;
        if let Some(before) = self.get(&entry.id)
            && before.nf_type() != entry.nf_type()
        {
            next.take_from_type(before);
        }
        let bucket = &mut next.buckets[bucket_of(&entry.id)];
        if Arc::make_mut(bucket).insert(entry.id, entry.clone()).is_none() {
            next.count += 1;
        }
        let table = Arc::make_mut(next.types.entry(entry.nf_type().clone()).or_default());
        table.change(next.version, entry.id);
        table.put(entry);
        next
    }

    /// This snapshot without a profile.
    #[must_use]
    pub fn without(&self, id: &NfInstanceId) -> Self {
        let Some(before) = self.get(id) else {
            return self.clone();
        };
        let mut next = self.clone();
        next.version += 1;
        next.count -= 1;
        Arc::make_mut(&mut next.buckets[bucket_of(id)]).remove(id);
        next.take_from_type(before);
        next
    }

    fn take_from_type(&mut self, entry: &Entry) {
        if let Some(table) = self.types.get_mut(entry.nf_type()) {
            let table = Arc::make_mut(table);
            table.change(self.version, entry.id);
            table.remove(&entry.id);
            // Any NF may invent a type: tables without profiles are removed, so that they do not accumulate.
            if table.is_empty() {
                self.types.remove(entry.nf_type());
            }
        }
    }
}

/// A worker's view of the current snapshot: one atomic load to see whether it is still current.
pub type Reader = arc_swap::Cache<Arc<ArcSwap<Snapshot>>, Arc<Snapshot>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_thousands_finds_each() {
        let entry = |number: u32, load: u8| {
            let text = format!(
                r#"{{"nfInstanceId":"00000000-0000-4000-8000-{number:012x}","nfType":"UDM","nfStatus":"REGISTERED","fqdn":"a.example.com","load":{load}}}"#
            );
            Arc::new(Entry::parse(text.as_bytes(), |_| 30).unwrap())
        };
        let mut snapshot = Snapshot::default();
        for number in 0..3_000 {
            snapshot = snapshot.with(entry(number, 1));
        }
        for number in (0..3_000).step_by(3) {
            snapshot = snapshot.with(entry(number, 2));
        }
        for number in (1..3_000).step_by(3) {
            snapshot = snapshot.without(&entry(number, 1).id);
        }
        let table = snapshot.of_type(&NfType::Udm).unwrap();
        let loads: Vec<Option<u8>> = table.iter().map(|entry| entry.load).collect();
        let with = |load| loads.iter().filter(|known| **known == Some(load)).count();
        assert_eq!(
            (table.len(), loads.len(), with(1), with(2)),
            (2_000, 2_000, 1_000, 1_000)
        );
        let ids: std::collections::BTreeSet<_> = table.iter().map(|entry| entry.id).collect();
        assert_eq!(ids.len(), 2_000);
        assert!(
            ids.iter()
                .all(|id| table.get(id).is_some_and(|entry| entry.id == *id))
        );
    }

    #[test]
    fn recent_changes_are_known_one_by_one() {
        let entry = |number: u32| {
            let text = format!(
                r#"{{"nfInstanceId":"00000000-0000-4000-8000-{number:012x}","nfType":"UDM","nfStatus":"REGISTERED","fqdn":"a.example.com"}}"#
            );
            Arc::new(Entry::parse(text.as_bytes(), |_| 30).unwrap())
        };
        let changed = |snapshot: &Snapshot, since: u64| {
            let table = snapshot.of_type(&NfType::Udm).unwrap();
            let changed = table.changed_since(since)?;
            Some(changed.copied().collect::<Vec<_>>())
        };
        let (first, second) = (entry(1), entry(2));
        let one = Snapshot::default().with(first.clone());
        let generation = |snapshot: &Snapshot| snapshot.of_type(&NfType::Udm).unwrap().generation();
        let shape = |snapshot: &Snapshot| snapshot.of_type(&NfType::Udm).unwrap().shape();
        let two = one.with(second.clone());
        assert_eq!(changed(&two, generation(&one)), Some(vec![second.id]));
        assert_eq!(changed(&two, generation(&two)), Some(Vec::new()));
        let moved = two.with(Arc::new(first.with_load(Some(7), None)));
        assert_eq!(changed(&moved, generation(&two)), Some(vec![first.id]));
        assert_eq!(shape(&moved), shape(&two), "the text is the same");
        let without = moved.without(&second.id);
        assert_eq!(changed(&without, generation(&moved)), Some(vec![second.id]));
        assert_ne!(shape(&without), shape(&moved));
        // A recreated table has no history of earlier changes.
        let again = without.without(&first.id).with(second);
        assert_eq!(changed(&again, generation(&without)), None);
        let many = (0..RECENT as u32).fold(two.clone(), |snapshot, number| snapshot.with(entry(number + 9)));
        assert_eq!(changed(&many, generation(&one)), None);
        assert_eq!(changed(&many, generation(&two)).unwrap().len(), RECENT);
    }

    #[test]
    fn types_go_with_their_last_profile() {
        let entry = |nf_type: &str| {
            let text = format!(
                r#"{{"nfInstanceId":"4947a69a-f61b-4bc1-b9da-47c9c5d14b64","nfType":"{nf_type}","nfStatus":"REGISTERED","fqdn":"a.example.com"}}"#
            );
            Arc::new(Entry::parse(text.as_bytes(), |_| 30).unwrap())
        };
        let mut snapshot = Snapshot::default();
        for number in 0..100 {
            let entry = entry(&format!("X{number}"));
            snapshot = snapshot.with(entry.clone());
            assert_eq!((snapshot.len(), snapshot.types().count()), (1, 1));
            let of_type = snapshot.of_type(entry.nf_type()).map(|table| table.len());
            assert_eq!(of_type, Some(1));
        }
        let snapshot = snapshot.without(&entry("X99").id);
        assert_eq!((snapshot.len(), snapshot.types().count()), (0, 0));
    }
}
