//! Who is a member at which moment, and which member serves what. Pure: time is an argument.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use store::Version;
use uuid::Uuid;

use super::record::{MemberRecord, Standing};

/// The members as one NRF sees them. Immutable.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    own: Uuid,
    members: Vec<Member>,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) record: MemberRecord,
    /// From which moment on it is dead or has left; the end of time while it is active.
    until: u64,
}

impl Member {
    fn is_active(&self) -> bool {
        self.record.standing == Standing::Active
    }
}

impl View {
    /// The view of the member `own`, of the stored records.
    pub(crate) fn new(own: Uuid, records: impl IntoIterator<Item = (MemberRecord, Version)>) -> Self {
        let members = records.into_iter().map(|(record, version)| Member {
            until: match record.standing {
                Standing::Active => u64::MAX,
                Standing::Left | Standing::Dead => version.micros(),
            },
            record,
        });
        Self {
            own,
            members: members.collect(),
        }
    }

    /// The own member.
    pub(crate) fn own(&self) -> Uuid {
        self.own
    }

    /// All records.
    pub(crate) fn records(&self) -> impl Iterator<Item = &MemberRecord> {
        self.members.iter().map(|member| &member.record)
    }

    /// How many members are active.
    pub(crate) fn active(&self) -> usize {
        self.members.iter().filter(|member| member.is_active()).count()
    }

    /// Whether this member is known and active.
    pub(crate) fn is_active(&self, id: Uuid) -> bool {
        self.members
            .iter()
            .any(|member| member.record.id == id && member.is_active())
    }

    /// Whether the own member notifies a subscription of a change at this moment: as its owner then, or as its owner now
    /// when that one is not active any more.
    pub(crate) fn notifies(&self, subscription: &str, at: u64, now: u64) -> bool {
        self.owner(subscription.as_bytes(), at)
            .is_some_and(|owner| owner == self.own || self.inherits_from(owner, subscription, now))
    }

    /// Whether the own member has to notify a subscription of a change at this moment in the place of a member that is not
    /// active any more.
    pub(crate) fn inherits(&self, subscription: &str, at: u64, now: u64) -> bool {
        self.owner(subscription.as_bytes(), at)
            .is_some_and(|owner| self.inherits_from(owner, subscription, now))
    }

    /// Whether something is the own member's at this moment.
    pub(crate) fn owns(&self, name: &[u8], now: u64) -> bool {
        self.active_owner(name, now) == Some(self.own)
    }

    fn inherits_from(&self, owner: Uuid, subscription: &str, now: u64) -> bool {
        !self.is_active(owner) && self.owns(subscription.as_bytes(), now)
    }

    /// The owner among those that were members at this moment. Before the first of them had begun: the first.
    fn owner(&self, name: &[u8], at: u64) -> Option<Uuid> {
        let then = || self.members.iter().filter(move |member| at < member.until);
        let begun = then().filter(|member| member.record.since <= at);
        heaviest(begun, name).or_else(|| first(then()))
    }

    fn active_owner(&self, name: &[u8], now: u64) -> Option<Uuid> {
        let active = || self.members.iter().filter(|member| member.is_active());
        let begun = active().filter(|member| member.record.since <= now);
        heaviest(begun, name).or_else(|| first(active()))
    }
}

fn first<'a>(members: impl Iterator<Item = &'a Member>) -> Option<Uuid> {
    let first = members.min_by_key(|member| (member.record.since, member.record.id));
    first.map(|member| member.record.id)
}

/// Rendezvous hashing: when a member comes or goes, only its own share moves.
fn heaviest<'a>(members: impl Iterator<Item = &'a Member>, name: &[u8]) -> Option<Uuid> {
    members
        .map(|member| member.record.id)
        .max_by_key(|id| (weight(*id, name), *id))
}

/// The same on every machine and in every release: FNV-1a, and the mixer of SplitMix64 so that every bit counts.
fn weight(member: Uuid, name: &[u8]) -> u64 {
    let hash = member
        .as_bytes()
        .iter()
        .chain(name)
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Since when each member's record has stood still, by the own clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(BTreeMap<Uuid, (Version, Instant)>);

impl Watch {
    /// The records of members as they were read now; those that have stood still for longer than `most`.
    pub(super) fn observe(
        &mut self,
        records: impl IntoIterator<Item = (Uuid, Version)>,
        now: Instant,
        most: Duration,
    ) -> Vec<Uuid> {
        let mut next = BTreeMap::new();
        for (id, version) in records {
            let since = match self.0.get(&id) {
                Some((known, since)) if *known == version => *since,
                _ => now,
            };
            next.insert(id, (version, since));
        }
        self.0 = next;
        let still = |(_, since): &(Version, Instant)| now.saturating_duration_since(*since) > most;
        self.0
            .iter()
            .filter(|(_, seen)| still(seen))
            .map(|(id, _)| *id)
            .collect()
    }

    /// The records could not be read: a member that stood still meanwhile may not have been able to write.
    pub(super) fn interrupted(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn member(number: u128, since: u64, standing: Standing) -> MemberRecord {
        MemberRecord {
            id: Uuid::from_u128(number),
            instance: String::new(),
            root: String::new(),
            since,
            delivered: 0,
            beats: 0,
            standing,
        }
    }

    /// The same records as each of their members sees them.
    fn views(records: &[(MemberRecord, Version)]) -> Vec<View> {
        let active = records
            .iter()
            .filter(|(record, _)| record.standing == Standing::Active);
        active
            .map(|(record, _)| View::new(record.id, records.to_vec()))
            .collect()
    }

    proptest! {
        #[test]
        fn exactly_one_member_notifies_of_a_change(
            since in prop::collection::vec((0u64..100, 0u8..4, 0u64..100), 1..6),
            name in "[a-f0-9]{8}", at in 0u64..120, later in 0u64..50,
        ) {
            let mut records: Vec<(MemberRecord, Version)> = since.iter().zip(1..).map(|((since, standing, until), number)| {
                let standing = match standing { 0 => Standing::Dead, 1 => Standing::Left, _ => Standing::Active };
                (member(number, *since, standing), Version::at(since + until))
            }).collect();
            records[0].0.standing = Standing::Active;
            let views = views(&records);
            let notifying = views.iter().filter(|view| view.notifies(&name, at, at + later)).count();
            prop_assert_eq!(notifying, 1);
            let owning = views.iter().filter(|view| view.owns(name.as_bytes(), at)).count();
            prop_assert_eq!(owning, 1);
        }

        /// All changes that a member had to notify of have exactly one heir when it dies; no other changes have one.
        #[test]
        fn each_change_of_a_dead_member_is_inherited_once(name in "[a-f0-9]{8}", at in 50u64..90, others in 0u128..5, since in 0u64..100) {
            let mut records: Vec<(MemberRecord, Version)> =
                (0..=others).map(|number| (member(number + 1, since, Standing::Active), Version::at(1))).collect();
            // One that joins after all that.
            records.push((member(9, 120, Standing::Active), Version::at(110)));
            let owner = views(&records).into_iter().find(|view| view.notifies(&name, at, at)).map(|view| view.own());
            records[0].0.standing = Standing::Dead;
            records[0].1 = Version::at(100);
            let heirs = views(&records).iter().filter(|view| view.inherits(&name, at, 130)).count();
            prop_assert_eq!(heirs, usize::from(owner == Some(records[0].0.id)));
        }

        #[test]
        fn a_new_member_changes_nothing_before_it_begins(name in "[a-f0-9]{8}", at in 10u64..50) {
            let mut records: Vec<(MemberRecord, Version)> =
                (1..=3).map(|number| (member(number, 0, Standing::Active), Version::at(1))).collect();
            let before: Vec<bool> = views(&records).iter().map(|view| view.notifies(&name, at, at)).collect();
            records.push((member(4, 50, Standing::Active), Version::at(40)));
            let after: Vec<bool> = views(&records).iter().map(|view| view.notifies(&name, at, 60)).collect();
            prop_assert_eq!(&after[..3], &before[..]);
            prop_assert!(!after[3]);
        }
    }

    #[test]
    fn shares_are_even() {
        let records: Vec<(MemberRecord, Version)> = (1..=2)
            .map(|number| (member(number, 0, Standing::Active), Version::at(1)))
            .collect();
        let view = View::new(Uuid::from_u128(1), records);
        let own = (0..1_000u32)
            .filter(|name| view.owns(&name.to_be_bytes(), 1))
            .count();
        assert!((400..600).contains(&own), "{own}");
    }

    #[test]
    fn a_record_that_stands_still_is_noticed_unless_nothing_could_be_read() {
        let (start, most) = (Instant::now(), Duration::from_secs(5));
        let at = |seconds| start + Duration::from_secs(seconds);
        let one = Uuid::from_u128(1);
        let mut watch = Watch::default();
        let observe =
            |watch: &mut Watch, version, seconds| watch.observe([(one, Version(version))], at(seconds), most);
        assert!(observe(&mut watch, 1, 0).is_empty());
        assert!(observe(&mut watch, 2, 4).is_empty());
        assert!(observe(&mut watch, 2, 9).is_empty());
        assert_eq!(observe(&mut watch, 2, 10), [one]);
        watch.interrupted();
        assert!(observe(&mut watch, 2, 11).is_empty());
        assert_eq!(observe(&mut watch, 2, 17), [one]);
    }
}
