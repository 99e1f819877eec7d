//! The registry as readers see it: immutable, cheap to copy with one change.

use std::sync::Arc;

use ahash::AHashMap;
use arc_swap::ArcSwap;
use model::{NfInstanceId, NfType};

use super::Entry;

/// Entries per chunk of a type's table: a change copies one chunk and the list of chunks.
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

/// The profiles of one NF type, in order of registration.
#[derive(Clone, Debug, Default)]
pub struct TypeTable {
    generation: u64,
    count: usize,
    chunks: Vec<Arc<Vec<Arc<Entry>>>>,
}

impl TypeTable {
    /// Changes whenever one of the profiles changes, never otherwise; answers may be kept as long as it stays.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
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

    fn position(&self, id: &NfInstanceId) -> Option<(usize, usize)> {
        self.chunks
            .iter()
            .enumerate()
            .find_map(|(c, chunk)| chunk.iter().position(|entry| entry.id == *id).map(|e| (c, e)))
    }

    fn put(&mut self, entry: Arc<Entry>) {
        if let Some((chunk, place)) = self.position(&entry.id) {
            Arc::make_mut(&mut self.chunks[chunk])[place] = entry;
            return;
        }
        self.count += 1;
        match self.chunks.iter_mut().find(|chunk| chunk.len() < CHUNK) {
            Some(chunk) => Arc::make_mut(chunk).push(entry),
            None => self.chunks.push(Arc::new(vec![entry])),
        }
    }

    fn remove(&mut self, id: &NfInstanceId) {
        if let Some((chunk, place)) = self.position(id) {
            self.count -= 1;
            Arc::make_mut(&mut self.chunks[chunk]).remove(place);
            if self.chunks[chunk].is_empty() {
                self.chunks.remove(chunk);
            }
        }
    }
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
        table.generation = next.version;
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
            table.generation = self.version;
            table.remove(&entry.id);
            // Types are strangers' words: those of which nothing is left must not pile up.
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
