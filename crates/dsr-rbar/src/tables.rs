//! Ranges of every identity while they are collected, and sorted for the search.

use ahash::AHashMap;

use crate::config::{Identity, Span};
use crate::spans::{Collected, Spans};

/// Ranges that are being collected.
#[derive(Default)]
pub(crate) struct Tables {
    numbers: [AHashMap<usize, Collected<u64>>; 2],
    names: [Collected<Box<str>>; 2],
    v4: Collected<u32>,
    v6: Collected<u128>,
}

/// The ranges of every identity, sorted.
#[derive(Debug)]
pub(crate) struct Sorted {
    /// IMSIs and MSISDNs by count of digits, the longest first.
    pub(crate) numbers: [Vec<(usize, Spans<u64>)>; 2],
    /// Private and public identities.
    pub(crate) names: [Spans<Box<str>>; 2],
    pub(crate) v4: Spans<u32>,
    pub(crate) v6: Spans<u128>,
}

impl Tables {
    /// Adds a range that leads to destination `to`; `line` is where it is written, 0 for the configuration.
    pub(crate) fn add(
        &mut self,
        identity: Identity,
        start: &str,
        end: &str,
        to: u32,
        line: usize,
    ) -> Result<(), String> {
        let second = usize::from(matches!(identity, Identity::Msisdn | Identity::Impu));
        match Span::parse(identity, start, end)? {
            Span::Digits { count, first, last } => {
                let of_count = self.numbers[second].entry(count).or_default();
                of_count.push(first, last, to, line);
            }
            Span::Names(first, last) => self.names[second].push(first, last, to, line),
            Span::V4(first, last) => self.v4.push(first, last, to, line),
            Span::V6(first, last) => self.v6.push(first, last, to, line),
        }
        Ok(())
    }

    /// Sorts the ranges.
    ///
    /// # Errors
    /// Two that overlap, with their lines.
    pub(crate) fn sort(self) -> Result<Sorted, String> {
        let [imsi, msisdn] = self.numbers;
        let [impi, impu] = self.names;
        Ok(Sorted {
            numbers: [by_count(imsi, "imsi")?, by_count(msisdn, "msisdn")?],
            names: [
                impi.sort().map_err(overlap("impi"))?,
                impu.sort().map_err(overlap("impu"))?,
            ],
            v4: self.v4.sort().map_err(overlap("ipv4"))?,
            v6: self.v6.sort().map_err(overlap("ipv6Prefix"))?,
        })
    }
}

fn by_count(
    tables: AHashMap<usize, Collected<u64>>,
    identity: &str,
) -> Result<Vec<(usize, Spans<u64>)>, String> {
    let sorted = tables
        .into_iter()
        .map(|(count, ranges)| Ok((count, ranges.sort()?)));
    let sorted: Result<Vec<_>, _> = sorted.collect();
    let mut sorted = sorted.map_err(overlap(identity))?;
    sorted.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    Ok(sorted)
}

/// Reports the lines of two ranges that overlap.
fn overlap(identity: &str) -> impl FnOnce((usize, usize)) -> String {
    move |(one, other)| {
        let place = |line| match line {
            0 => "the configuration".to_owned(),
            line => format!("line {line}"),
        };
        format!(
            "ranges of {identity} overlap: those of {} and {}",
            place(one),
            place(other)
        )
    }
}

impl Sorted {
    /// How many ranges there are, and the bytes of their arrays; those of names beyond their pointers do not count.
    pub(crate) fn size(&self) -> (usize, usize) {
        let numbers = self.numbers.iter().flatten().map(|(_, spans)| spans.size());
        let names = self.names.iter().map(Spans::size);
        let all = numbers.chain(names).chain([self.v4.size(), self.v6.size()]);
        all.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1))
    }
}
