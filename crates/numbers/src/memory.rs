//! The bytes of a file, mapped or copied, and prefetch: all `unsafe` of the crate.

use std::fs::File;
use std::io::{self, Read};

use memmap2::{Advice, Mmap, MmapMut};

/// How a file is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Load {
    /// Mapped: ready at once, the kernel reads pages when they are needed and shares them with other processes. The file
    /// must not be changed or cut while it is mapped; writers of this crate never do, they rename.
    #[default]
    Mapped,
    /// Copied into memory of its own, in huge pages where the kernel has them: fewer misses of the address cache, and no
    /// dependence on the file. Takes as long as reading the file.
    Copied,
}

/// The bytes of a file, immutable.
#[derive(Debug)]
pub(crate) enum Bytes {
    Mapped(Mmap),
    Copied(MmapMut),
    Empty,
}

impl Bytes {
    /// Maps or copies `length` bytes of a file.
    pub(crate) fn load(mut file: &File, length: usize, load: Load) -> io::Result<Self> {
        if length == 0 {
            // A mapping of no byte is an error of the kernel.
            return Ok(Self::Empty);
        }
        match load {
            Load::Mapped => {
                let map = map(file)?;
                // A look-up needs two or three pages, not their neighbours. Advice may be refused.
                let _ = map.advise(Advice::Random);
                Ok(Self::Mapped(map))
            }
            Load::Copied => {
                let mut memory = MmapMut::map_anon(length)?;
                let _ = memory.advise(Advice::HugePage);
                file.read_exact(&mut memory)?;
                Ok(Self::Copied(memory))
            }
        }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Copied(memory) => memory,
            Self::Empty => &[],
        }
    }
}

#[allow(unsafe_code)]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the mapping is read-only and stays valid when `file` is closed. What remains is that the bytes must not
    // change: files of this crate are written under another name, synced,
    // and renamed, never written in place, so the inode that is mapped here has no writer. An operator who cuts the file
    // of a running process by hand gets SIGBUS, which ends the process and gives no wrong answer (docs/numbers.md);
    // `Load::Copied` is without that.
    unsafe { Mmap::map(file) }
}

/// Asks the processor to fetch the cache line of `items[at]`; does nothing beyond the end.
#[inline]
#[allow(unsafe_code)]
pub(crate) fn prefetch<T>(items: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = items.get(at) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and cannot fault; the address is that of a live item besides. Every x86-64
        // processor has SSE, to which the instruction belongs.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, at);
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// What the safety of the mapping rests on: a file that is replaced by `rename`, or removed, leaves the mapping as it
    /// was; and a prefetch outside of the bytes does nothing.
    #[test]
    fn a_mapping_survives_the_replacement_and_removal_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&path, vec![7; 100_000]).unwrap();
        let file = File::open(&path).unwrap();
        let mapped = Bytes::load(&file, 100_000, Load::Mapped).unwrap();
        let copied = Bytes::load(&file, 100_000, Load::Copied).unwrap();
        drop(file);
        File::create(&other).unwrap().write_all(&[9; 10]).unwrap();
        std::fs::rename(&other, &path).unwrap();
        std::fs::remove_file(&path).unwrap();
        for bytes in [&mapped, &copied] {
            assert!(bytes.as_slice().iter().all(|byte| *byte == 7));
            for at in [0, 99_999, 100_000, usize::MAX] {
                prefetch(bytes.as_slice(), at);
            }
        }
    }

    #[test]
    fn an_empty_file_and_one_that_is_shorter_than_expected() {
        let file = tempfile::tempfile().unwrap();
        assert!(Bytes::load(&file, 0, Load::Mapped).unwrap().as_slice().is_empty());
        assert!(Bytes::load(&file, 1, Load::Copied).is_err());
    }
}
