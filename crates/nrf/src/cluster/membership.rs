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
    /// The version of its record.
    version: u64,
    /// The last time in which its changes did not arrive, though it was active.
    absence: Option<Absence>,
}

/// From which moment on, and until when, no change of a member arrived.
type Absence = (u64, u64);

/// Members whose changes did not arrive for some time, as the own member has seen it: those of other sites, whose database
/// replicates to the own one again.
#[derive(Clone, Debug, Default)]
pub(super) struct Absences {
    /// The last version of the record of each active member.
    seen: BTreeMap<Uuid, u64>,
    absences: BTreeMap<Uuid, Absence>,
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
            version: version.micros(),
            absence: None,
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

    /// Whether the own member notifies a subscription of a change at this moment: as its owner then, as its owner now when
    /// that one is not active any more, or as its owner then as far as the own member could know.
    pub(crate) fn notifies(&self, subscription: &str, at: u64, now: u64) -> bool {
        self.owner(subscription.as_bytes(), at).is_some_and(|owner| {
            owner == self.own
                || self.inherits_from(owner, subscription, now)
                || self.stands_in_for(owner, subscription, at)
        })
    }

    /// Whether the own member took the owner of a subscription for dead at this moment, and itself for the owner: the other
    /// one may not have known the subscription, which was made here.
    fn stands_in_for(&self, owner: Uuid, subscription: &str, at: u64) -> bool {
        let was_absent = |member: &Member| member.absence.is_some_and(|(from, to)| (from..to).contains(&at));
        let is_absent = |id| {
            self.members
                .iter()
                .any(|one| one.record.id == id && was_absent(one))
        };
        is_absent(owner) && {
            let then = self
                .members
                .iter()
                .filter(|one| at < one.until && !was_absent(one));
            let begun = then.filter(|one| one.record.since <= at);
            heaviest(begun, subscription.as_bytes()) == Some(self.own)
        }
    }

    /// Follows when changes of members did not arrive. `keep` is how long changes are of interest.
    pub(super) fn note_absences(&mut self, known: &mut Absences, now: u64, keep: u64) {
        let is_first = known.seen.is_empty();
        let Absences { seen, absences } = known;
        for member in &mut self.members {
            let id = member.record.id;
            if !member.is_active() {
                let last = seen.get(&id).copied().unwrap_or(member.version);
                let from = absences.get(&id).map_or(last, |(from, _)| *from);
                absences.insert(id, (from, u64::MAX));
                continue;
            }
            // One that began before it could be seen here began while its changes did not arrive.
            if seen.insert(id, member.version).is_none() && !is_first && member.record.since < now {
                absences.entry(id).or_insert((0, u64::MAX));
            }
            if let Some((_, to @ u64::MAX)) = absences.get_mut(&id) {
                *to = now;
            }
            member.absence = absences.get(&id).copied();
        }
        let is_known = |id: &Uuid| self.members.iter().any(|member| member.record.id == *id);
        seen.retain(|id, _| is_known(id));
        absences.retain(|id, (_, to)| is_known(id) && to.saturating_add(keep) > now);
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

        /// While two sites are cut off from one another, each takes the other's member for dead. Of what changed meanwhile
        /// each notifies all subscriptions, as the other one may not know them; of all else one of the two.
        #[test]
        fn changes_of_a_cut_are_notified_by_both(name in "[a-f0-9]{8}", at in 20u64..140) {
            let seen_by = |own: u128| {
                let mut absences = Absences::default();
                let reads = [(40, Standing::Active, 41), (80, Standing::Dead, 81), (120, Standing::Active, 121)];
                let views = reads.map(|(version, standing, now)| {
                    let here = (member(own, 0, Standing::Active), Version::at(now));
                    let there = (member(3 - own, 0, standing), Version::at(version));
                    let mut view = View::new(Uuid::from_u128(own), [here, there]);
                    view.note_absences(&mut absences, now, 1_000);
                    view
                });
                let [.., last] = views;
                last
            };
            let notify = [1, 2].map(|own| seen_by(own).notifies(&name, at, 141));
            if (40..121).contains(&at) {
                prop_assert_eq!(notify, [true, true]);
            } else {
                prop_assert!(notify[0] != notify[1], "{notify:?}");
            }
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
