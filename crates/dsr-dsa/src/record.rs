//! What is known of a subscriber.

use crate::network::Network;

/// What is known of a subscriber: 16 bytes, and 8 of its IMSI.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Record {
    /// In 21 bits each: hashes of the names of the MME and the SGSN at which it is registered, and of the HSS that answered;
    /// 0: none.
    pub(crate) names: u64,
    /// In 20 bits each: the network where it registered, and the one that has authenticated it; then the time in 24 bits, in
    /// units of [`TICK_SECONDS`].
    pub(crate) packed: u64,
}

/// A name that a record has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Node {
    Mme,
    Sgsn,
    Hss,
}

/// Bits of the hash of a name.
const NAME_BITS: u32 = 21;
const NAME_MASK: u64 = (1 << NAME_BITS) - 1;

/// Resolution of the time of a record: 24 bits of it are 8 years.
pub(crate) const TICK_SECONDS: u32 = 16;

impl Record {
    /// The hash of the name of a node; 0: none.
    pub(crate) fn name(&self, node: Node) -> u64 {
        self.names >> (node as u32 * NAME_BITS) & NAME_MASK
    }

    /// Notes the name of a node; 0: none.
    pub(crate) fn set(&mut self, node: Node, name: u32) {
        self.put(node, short(name));
    }

    pub(crate) fn put(&mut self, node: Node, name: u64) {
        let at = node as u32 * NAME_BITS;
        self.names = self.names & !(NAME_MASK << at) | (name & NAME_MASK) << at;
    }

    pub(crate) fn is(&self, node: Node, name: u32) -> bool {
        self.has(node) && self.name(node) == short(name)
    }

    pub(crate) fn has(&self, node: Node) -> bool {
        self.name(node) != 0
    }

    /// Whether it is registered at an MME or at an SGSN: these are two places of one subscriber.
    pub(crate) fn is_registered(&self) -> bool {
        self.has(Node::Mme) || self.has(Node::Sgsn)
    }

    /// Whether it is registered at the node of that name.
    pub(crate) fn is_at(&self, name: u32) -> bool {
        self.is(Node::Mme, name) || self.is(Node::Sgsn, name)
    }

    /// It is not registered at the node of that name any more.
    pub(crate) fn leaves(&mut self, name: u32) {
        for node in [Node::Mme, Node::Sgsn] {
            if self.is(node, name) {
                self.set(node, 0);
            }
        }
        if !self.is_registered() {
            self.set(Node::Hss, 0);
        }
    }

    pub(crate) fn visited(&self) -> Option<Network> {
        Network::from_bits(self.packed >> 44)
    }

    pub(crate) fn authenticated(&self) -> Option<Network> {
        Network::from_bits(self.packed >> 24 & 0xf_ffff)
    }

    /// Seconds of the clock of the table, rounded down.
    pub(crate) const fn seconds(&self) -> u32 {
        (self.packed & 0xff_ffff) as u32 * TICK_SECONDS
    }

    pub(crate) fn set_visited(&mut self, network: Option<Network>) {
        let bits = network.map_or(0, Network::to_bits) & 0xf_ffff;
        self.packed = self.packed & !(0xf_ffff << 44) | bits << 44;
    }

    pub(crate) fn set_authenticated(&mut self, network: Option<Network>) {
        let bits = network.map_or(0, Network::to_bits) & 0xf_ffff;
        self.packed = self.packed & !(0xf_ffff << 24) | bits << 24;
    }

    pub(crate) fn touch(&mut self, seconds: u32) {
        self.packed = self.packed & !0xff_ffff | u64::from(seconds / TICK_SECONDS) & 0xff_ffff;
    }
}

/// The bits of a name that records have: 0 for none, and for none but it.
pub(crate) fn short(name: u32) -> u64 {
    match name {
        0 => 0,
        name => u64::from(name) % NAME_MASK + 1,
    }
}
