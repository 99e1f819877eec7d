//! Bounded, repeatable runs of fuzz targets inside the test suite.
//!
//! The body of a target is a function of bytes that lives beside the parser it tries. The targets in `fuzz/` run it
//! for hours, guided by coverage; [`run`] runs it in a test for a second or two, over the same seeds
//! (`fuzz/corpus/<target>/`) and a fixed number of mutations of them that are the same each time.

use std::path::{Path, PathBuf};

/// The longest input that is made.
const LONGEST: usize = 4096;

/// What breaks parsers, wherever it is put.
const TOKENS: &[&[u8]] = &[
    b"\0",
    b"\r\n",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"%00",
    b"%2F",
    b"%",
    b"..",
    b"//",
    b"{",
    b"}",
    b"[",
    b"]",
    b"{}",
    b"[]",
    b",",
    b";",
    b":",
    b"=",
    b"&",
    b"-",
    b"-1",
    b"0",
    b"1e400",
    b"18446744073709551616",
    b"4294967296",
    b"null",
    b"true",
    b"~",
    b"~0",
    b"~1",
    b"/-",
    b"(",
    b")",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xc3\xa9",
    b"\xf0\x9f\x92\xa9",
    b"\xe2\x80\xae",
    b" ",
    b"\t",
    b"*",
    b"^(a|a)*$",
    b"{1,2000}",
    b"[::1]",
    b"://",
    b"@",
    b"#",
    b"?",
    b"&a",
    b"*a",
    b"---\n",
    b"!!int ",
    b"|\n  ",
];

/// Numbers that look random and are the same for each seed (xorshift).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Those of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// The next one.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// One below `bound`; 0 where there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound.max(1) as u64) as usize
    }
}

/// Changes an input in a few places; `seeds` lend their parts.
pub fn mutate(random: &mut Random, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        let end = (at + random.below(16)).min(input.len());
        match random.below(9) {
            0 => input.truncate(at),
            1 => drop(input.drain(at..end)),
            2 => {
                let again = input[at..end].to_vec();
                let times = 1 + random.below(8);
                input.splice(at..at, again.repeat(times));
            }
            3 | 4 => {
                let token = TOKENS[random.below(TOKENS.len())];
                let until = if random.below(2) == 0 { at } else { end };
                input.splice(at..until, token.iter().copied());
            }
            5 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len() + 1);
                let to = (from + random.below(64)).min(other.len());
                input.splice(at..at, other[from..to].iter().copied());
            }
            6 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            7 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = random.next_u64() as u8;
                }
            }
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = byte.wrapping_add(1);
                }
            }
        }
    }
    input.truncate(LONGEST);
}

/// Runs `target` over the seeds in `fuzz/corpus/<name>/` and `rounds` mutations of them. An input that makes it
/// panic is printed: put it into the corpus.
///
/// # Panics
/// When the target does, or there is no seed.
pub fn run(name: &str, rounds: usize, target: impl Fn(&[u8])) {
    let seeds = corpus(name);
    assert!(!seeds.is_empty(), "fuzz/corpus/{name} holds no seed");
    for seed in &seeds {
        tried(seed, &target);
    }
    let mut random = Random::new(0x5eed);
    for _ in 0..rounds {
        let mut input = seeds[random.below(seeds.len())].clone();
        mutate(&mut random, &mut input, &seeds);
        tried(&input, &target);
    }
    tried(&[], &target);
}

fn tried(input: &[u8], target: &impl Fn(&[u8])) {
    let shown = Shown(input);
    target(input);
    drop(shown);
}

/// Prints an input when the target panics on it.
struct Shown<'a>(&'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input was b\"{}\"", self.0.escape_ascii());
        }
    }
}

/// The seeds of a target, in the order of their names.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(name);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.iter().filter_map(|file| std::fs::read(file).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_are_the_same_each_time_and_bounded() {
        let seeds = vec![b"{\"a\":1}".to_vec(), b"x".repeat(5000)];
        let made = || {
            let mut random = Random::new(7);
            let mut input = seeds[0].clone();
            for _ in 0..1000 {
                mutate(&mut random, &mut input, &seeds);
                assert!(input.len() <= LONGEST);
            }
            input
        };
        assert_eq!(made(), made());
    }
}
