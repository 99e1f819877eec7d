//! Nodes that a translation leads to.

use crate::point_code::PointCode;

/// How a group shares its traffic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// One node; without it, nothing.
    Solitary,
    /// The first that is available.
    Dominant,
    /// A share for each by its weight.
    LoadShared,
    /// As load-shared, where the caller keeps the member of each transaction.
    Transaction,
}

/// A node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Member {
    /// Its point code.
    pub point_code: PointCode,
    /// The subsystem whose state counts, where one does.
    pub ssn: Option<u8>,
    /// Its share in a load-shared group; 0 takes traffic only when the others are unavailable.
    pub weight: u16,
}

/// A group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Group {
    /// How it shares.
    pub mode: Mode,
    /// Its members, the preferred ones first.
    pub members: Vec<Member>,
}

impl Group {
    /// The members that may take a message: of a solitary group the first alone.
    #[must_use]
    pub fn candidates(&self) -> &[Member] {
        let count = match self.mode {
            Mode::Solitary => 1,
            Mode::Dominant | Mode::LoadShared | Mode::Transaction => self.members.len(),
        };
        self.members.get(..count).unwrap_or_default()
    }

    /// The member for one message. `key` is the same for messages whose order counts (a link selection, a transaction) and
    /// spread otherwise. A member that fails gives up its share; the messages of others stay where they are.
    #[inline]
    #[must_use]
    pub fn choose(&self, key: u32, available: impl Fn(&Member) -> bool) -> Option<&Member> {
        match self.mode {
            Mode::Solitary => self.members.first().filter(|member| available(member)),
            Mode::Dominant => self.members.iter().find(|member| available(member)),
            Mode::LoadShared | Mode::Transaction => {
                let key = spread(key);
                // Among all first: with every member available this is the only pass.
                let chosen = weighted(&self.members, key, |_| true)?;
                if available(chosen) {
                    return Some(chosen);
                }
                let rest = weighted(&self.members, spread(key), &available);
                rest.or_else(|| self.members.iter().find(|member| available(member)))
            }
        }
    }
}

/// The bits of a key mixed: neighbouring keys, such as link selections, spread over any weights.
const fn spread(key: u32) -> u32 {
    let key = (key ^ key >> 16).wrapping_mul(0x045d_9f3b);
    let key = (key ^ key >> 16).wrapping_mul(0x045d_9f3b);
    key ^ key >> 16
}

fn weighted(members: &[Member], key: u32, fits: impl Fn(&Member) -> bool) -> Option<&Member> {
    let weight = |member: &&Member| if fits(member) { u64::from(member.weight) } else { 0 };
    let total: u64 = members.iter().map(|member| weight(&member)).sum();
    if total == 0 {
        return members.first().filter(|member| fits(member));
    }
    let mut point = (u64::from(key) * total) >> 32;
    members.iter().find(|member| {
        let weight = weight(member);
        let here = point < weight;
        point = point.saturating_sub(weight);
        here
    })
}
