//! A trie over semi-octets whose chains are compressed, in one array.
//!
//! A node has up to eight semi-octets that must follow (its label), an optional value, and children that lie behind one another
//! in the order of their first semi-octet; a bitmap says which exist. Longer labels are chains of nodes. A million random
//! numbers take about 1.3 million nodes of 16 octets.

use crate::digits::Digits;

/// Without a value.
const NONE: u32 = u32::MAX;
/// Semi-octets of a label.
const LABEL: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The label, first semi-octet most significant. The semi-octet that chose the node is the first of it.
    label: u32,
    value: u32,
    /// The first child.
    children: u32,
    bitmap: u16,
    label_length: u8,
}

/// The trie.
#[derive(Debug, Default)]
pub(super) struct Trie {
    nodes: Vec<Node>,
}

/// Digits and value, for building.
pub(super) type Entry = (Digits, u32);

impl Trie {
    /// Builds from entries in the order of their digits, each once.
    pub(super) fn build(entries: &[Entry]) -> Self {
        let mut trie = Self {
            nodes: Vec::with_capacity(entries.len() + entries.len() / 2),
        };
        trie.nodes.push(Node {
            label: 0,
            value: NONE,
            children: 0,
            bitmap: 0,
            label_length: 0,
        });
        // Nodes whose entries have to be placed, with the number of semi-octets before them: no recursion.
        let mut pending = vec![(0_usize, 0_usize, entries)];
        while let Some((node, before, entries)) = pending.pop() {
            trie.fill(node, before, entries, &mut pending);
        }
        trie.nodes.shrink_to_fit();
        trie
    }

    fn fill<'a>(
        &mut self,
        node: usize,
        before: usize,
        entries: &'a [Entry],
        pending: &mut Vec<(usize, usize, &'a [Entry])>,
    ) {
        let (Some((first, first_value)), Some((last, _))) = (entries.first(), entries.last()) else {
            return;
        };
        // Sorted: what first and last share, all share.
        let shared = (before..first.len().min(last.len()))
            .take_while(|place| first.get(*place) == last.get(*place))
            .take(if node == 0 { 0 } else { LABEL })
            .count();
        let label = (before..before + shared).filter_map(|place| first.get(place));
        let label = label.fold(0, |label, digit| label << 4 | u32::from(digit));
        let end = before + shared;
        let ends_here = first.len() == end;
        let rest = entries.get(usize::from(ends_here)..).unwrap_or_default();
        let children = self.nodes.len();
        let mut bitmap = 0;
        let mut start = 0;
        while let Some((digits, _)) = rest.get(start) {
            let digit = digits.get(end).unwrap_or_default();
            let same = |(digits, _): &Entry| digits.get(end) == Some(digit);
            let count = rest.get(start..).unwrap_or_default().partition_point(same).max(1);
            bitmap |= 1_u16 << digit;
            pending.push((
                self.nodes.len(),
                end,
                rest.get(start..start + count).unwrap_or_default(),
            ));
            self.nodes.push(Node {
                label: 0,
                value: NONE,
                children: 0,
                bitmap: 0,
                label_length: 0,
            });
            start += count;
        }
        if let Some(slot) = self.nodes.get_mut(node) {
            *slot = Node {
                label,
                value: if ends_here { *first_value } else { NONE },
                children: children as u32,
                bitmap,
                label_length: shared as u8,
            };
        }
    }

    /// The value of the longest prefix, and its length.
    #[inline]
    pub(super) fn longest(&self, digits: &Digits) -> Option<(u32, usize)> {
        let mut best = None;
        let mut at = 0;
        let mut node = self.nodes.first()?;
        loop {
            let length = usize::from(node.label_length);
            if length > 0 {
                let mut shift = 4 * length;
                for place in at..at + length {
                    shift -= 4;
                    if digits.get(place) != Some((node.label >> shift & 0x0f) as u8) {
                        return best;
                    }
                }
                at += length;
            }
            if node.value != NONE {
                best = Some((node.value, at));
            }
            let Some(digit) = digits.get(at) else { return best };
            let bit = 1_u16 << digit;
            if node.bitmap & bit == 0 {
                return best;
            }
            let place = (node.bitmap & (bit - 1)).count_ones();
            node = self.nodes.get((node.children + place) as usize)?;
        }
    }

    /// Octets of the nodes.
    pub(super) const fn octets(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
    }
}
