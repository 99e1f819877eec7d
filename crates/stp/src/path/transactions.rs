//! Transactions of TCAP that keep their node (groups with `mode: transaction`): each message between its ends finds the node that has
//! the transaction, also an End, which names the identifier of that node alone (Q.773 §3.1).

use std::time::{Duration, Instant};

use bounded::{Cache, Limits};
use parking_lot::Mutex;
use ss7_proto::gtt::{Group, Member};
use ss7_proto::m3ua::{Data, ServiceIndicator};
use ss7_proto::sccp::{Address, Message, Unitdata};
use ss7_proto::tcap::{MessageType, Transaction, TransactionId};
use ss7_proto::{Digits, PointCode};
use telemetry::Counter;

use super::Ingress;
use crate::cause::Shared;
use crate::config;

/// Locks of the table: workers wait for one another only where two of their transactions have the same.
const SHARDS: usize = 16;

/// The nodes of transactions. Bounded in number and age; of a full table entries go that were not used lately.
pub(crate) struct Transactions {
    shards: Vec<Mutex<Cache<Key, Entry>>>,
    timeout: Duration,
    evicted: Counter,
}

/// An identifier, and the party in whose messages it occurs: that which is not of the group.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    party: Party,
    id: TransactionId,
    /// Whether the identifier is one of the party itself; else of the node of the group.
    is_own: bool,
}

/// The end of a transaction that is not of the group.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Party {
    Title(Digits),
    Node(PointCode),
}

struct Entry {
    node: PointCode,
    used: Instant,
}

impl Transactions {
    /// For the bounds of settings; `evicted` counts entries that a full table has lost.
    pub(crate) fn new(config: &config::Transactions, evicted: Counter) -> Self {
        let limits = Limits::entries(config.number.div_ceil(SHARDS).max(1));
        Self {
            shards: (0..SHARDS).map(|_| Mutex::new(Cache::new(limits))).collect(),
            timeout: config.timeout.duration(),
            evicted,
        }
    }

    /// Entries, of which a transaction has one for each of its identifiers.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    fn shard(&self, key: &Key) -> Option<&Mutex<Cache<Key, Entry>>> {
        self.shards.get(key.spread() as usize % SHARDS)
    }

    fn find(&self, key: &Key, now: Instant) -> Option<PointCode> {
        let shard = self.shard(key)?.lock();
        let is_live = |entry: &Entry| now.duration_since(entry.used) < self.timeout;
        shard.get_if(key, is_live).map(|entry| entry.node)
    }

    fn insert(&self, key: Key, node: PointCode, now: Instant) {
        let Some(shard) = self.shard(&key) else { return };
        let mut shard = shard.lock();
        let before = shard.stats().evictions;
        shard.insert(key, Entry { node, used: now });
        self.evicted.add(shard.stats().evictions.saturating_sub(before));
    }

    fn remove(&self, key: &Key) {
        if let Some(shard) = self.shard(key) {
            shard.lock().remove(key);
        }
    }
}

impl Key {
    /// The same in each process and after a restart, so that mates choose the same node for a new transaction (FNV-1a).
    fn spread(&self) -> u32 {
        let step = |hash: u32, octet: &u8| (hash ^ u32::from(*octet)).wrapping_mul(0x0100_0193);
        let hash = match &self.party {
            Party::Title(digits) => digits.packed().iter().fold(0x811c_9dc5, step),
            Party::Node(code) => code.0.to_be_bytes().iter().fold(0x811c_9dc5, step),
        };
        let hash = self.id.octets().iter().fold(hash, step);
        // The low bits of neighbouring identifiers differ in few ways.
        hash ^ hash >> 15
    }
}

impl Party {
    /// By the title of its address, else by its node.
    fn read(address: &[u8], node: PointCode, ingress: &Ingress<'_>) -> Self {
        let address = Address::parse(address, ingress.state.tables.format()).ok();
        let digits = address.and_then(|address| address.title?.digits());
        digits.map_or(Self::Node(node), Self::Title)
    }
}

/// Records the identifier that a node of a group has given a transaction: messages of the other end name it.
pub(super) fn learn(ingress: &Ingress<'_>, data: &Data<'_>) {
    let Some(transactions) = ingress.transactions else {
        return;
    };
    let translations = &ingress.state.tables.translations;
    if data.si != ServiceIndicator::SCCP || !translations.keeps_transactions_of(data.opc) {
        return;
    }
    let Ok(Message::Unitdata(unitdata)) = Message::parse(data.user_data) else {
        return;
    };
    let Some(transaction) = read(&unitdata) else {
        return;
    };
    let party = Party::read(unitdata.called, data.dpc, ingress);
    let key = |is_own| move |id| Key { party, id, is_own };
    match (transaction.originating, transaction.destination) {
        (Some(id), _) => transactions.insert(key(false)(id), data.opc, Instant::now()),
        // The node ends the transaction.
        (None, Some(id)) => transactions.remove(&key(true)(id)),
        (None, None) => {}
    }
}

/// A message of TCAP; none of a segment, which has not all of it, and of a service message, which comes back.
fn read<'a>(unitdata: &Unitdata<'a>) -> Option<Transaction<'a>> {
    if unitdata.message_type.is_service() || !unitdata.is_whole() {
        return None;
    }
    Transaction::parse(unitdata.data).ok()
}

/// The node for a message to a group, and how it was found. `otherwise` is the key of messages without a transaction.
pub(super) fn choose<'g>(
    ingress: &Ingress<'_>,
    data: &Data<'_>,
    unitdata: &Unitdata<'_>,
    group: &'g Group,
    otherwise: u32,
    available: impl Fn(&Member) -> bool,
) -> (Option<&'g Member>, Shared) {
    let party = Party::read(unitdata.calling, data.opc, ingress);
    let key = |is_own| move |id| Key { party, id, is_own };
    let (message_type, own, other) = match read(unitdata) {
        Some(transaction) => (
            transaction.message_type,
            transaction.originating.map(key(true)),
            transaction.destination.map(key(false)),
        ),
        None => (MessageType::Unidirectional, None, None),
    };
    let Some(spread) = own.or(other).map(|key| key.spread()) else {
        return (group.choose(otherwise, available), Shared::Other);
    };
    let now = Instant::now();
    let find = |key: &Option<Key>| ingress.transactions?.find(key.as_ref()?, now);
    let node = find(&own).or_else(|| find(&other));
    let member = node.and_then(|node| group.members.iter().find(|one| one.point_code == node));
    let (chosen, outcome) = match (member, message_type) {
        (Some(member), _) if available(member) => (Some(member), Shared::Kept),
        (Some(_), _) => (group.choose(spread, available), Shared::Moved),
        (None, MessageType::Begin) => (group.choose(spread, available), Shared::New),
        (None, _) => (group.choose(spread, available), Shared::Unknown),
    };
    if let (Some(transactions), Some(member)) = (ingress.transactions, chosen) {
        let has_ended = matches!(message_type, MessageType::End | MessageType::Abort);
        for key in own.into_iter().chain(other) {
            if has_ended {
                transactions.remove(&key);
            } else {
                transactions.insert(key, member.point_code, now);
            }
        }
    }
    (chosen, outcome)
}
