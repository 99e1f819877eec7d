//! The own member: its record, the heart-beats that it received, and what it reads of the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use futures_util::future::join_all;
use model::NfInstanceId;
use registry::{ProfileRecord, SubscriptionRecord};
use store::{Batch, Condition, Error, Record, Scan, Store, Stored, Table, TableDef, Version};
use uuid::Uuid;

use super::handoff::{Drift, Handoff};
use super::membership::{Absences, View, Watch};
use super::micros;
use super::record::{Beat, BeatRecord, ChangeRecord, Key, MemberRecord, Standing};
use super::schedule::{Reading, Schedule};
use crate::config::{Cluster as Settings, Config};

/// The own member, and what it knows of the others.
pub(crate) struct Cluster {
    pub(super) settings: Settings,
    pub(crate) handoff: Handoff,
    pub(crate) changes: Table<ChangeRecord>,
    pub(super) members: Table<MemberRecord>,
    pub(super) beats: Table<BeatRecord>,
    profiles: Table<ProfileRecord>,
    subscriptions: Table<SubscriptionRecord>,
    own: MemberRecord,
    version: Version,
    /// Heart-beats that are not written yet.
    unwritten: AHashMap<NfInstanceId, Beat>,
    schedule: Schedule,
    pub(super) watch: Watch,
    absences: Absences,
    /// The number of the last record of beats that was read, by member.
    beats_read: BTreeMap<Uuid, u64>,
    view: Arc<View>,
    /// Changes after the first moment were inherited from others; they are delivered when all up to the second are.
    inherited: Option<(u64, u64)>,
}

/// Records of a page.
const PAGE: usize = 500;

impl Cluster {
    /// The tables of a cluster.
    pub(crate) fn tables() -> [TableDef; 3] {
        [
            TableDef::of::<ChangeRecord>(),
            TableDef::of::<MemberRecord>(),
            TableDef::of::<BeatRecord>(),
        ]
    }

    /// Becomes a member. What is read of the store after that, and the polls, show every change.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub(crate) async fn join(store: &Store, config: &Config) -> Result<Self, Error> {
        let began = micros();
        let settings = config.cluster.clone();
        let late = Settings::latest_commit(&config.store);
        let mut cluster = Self {
            schedule: Schedule::new(&settings, late, began),
            handoff: Handoff::default(),
            changes: store.table()?,
            members: store.table()?,
            beats: store.table()?,
            profiles: store.table()?,
            subscriptions: store.table()?,
            own: MemberRecord {
                id: Uuid::nil(),
                instance: config.nf_instance_id.clone(),
                root: config.root(),
                since: 0,
                delivered: began,
                beats: 0,
                standing: Standing::Active,
            },
            version: Version::default(),
            unwritten: AHashMap::new(),
            settings,
            watch: Watch::default(),
            absences: Absences::default(),
            beats_read: BTreeMap::new(),
            view: Arc::default(),
            inherited: None,
        };
        cluster.handoff.settle(began);
        cluster.enlist().await?;
        let members = cluster.read_members().await?;
        cluster.own_view(&members);
        // A lone member takes over from those that have left before it came.
        let others = members
            .iter()
            .any(|one| one.id != cluster.own.id && one.standing == Standing::Active);
        if !others {
            let left = members.iter().filter(|one| one.standing != Standing::Active);
            cluster.inherit(left.map(|one| one.delivered).max());
        }
        // Heart-beats before this moment are older than what is read of the store.
        cluster.beats_read = members.iter().map(|one| (one.id, one.beats)).collect();
        cluster.handoff.read();
        Ok(cluster)
    }

    /// Writes the record of a new member.
    async fn enlist(&mut self) -> Result<(), Error> {
        let now = micros();
        self.own.id = Uuid::new_v4();
        self.own.since = now.saturating_add(micros_of(self.settings.grace()));
        let mut batch = Batch::default();
        batch.insert(&self.members, &self.own);
        self.version = self.changes.store().commit(batch).await?;
        Ok(())
    }

    /// From now on the own record says no more than this until what was inherited is delivered.
    fn inherit(&mut self, delivered: Option<u64>) {
        if let Some(delivered) = delivered {
            let from = self.inherited.map_or(delivered, |(from, _)| from.min(delivered));
            self.inherited = Some((from, u64::MAX));
        }
    }

    /// One poll. It may be dropped while it waits: what it has read counts as read only behind the last wait.
    pub(super) async fn poll(&mut self) -> Result<Drift, Error> {
        let began = micros();
        self.write_own().await?;
        let members = self.read_members().await?;
        let before = self.view.clone();
        self.own_view(&members);
        self.bury(&members).await;
        let ended = members
            .iter()
            .filter(|one| one.standing != Standing::Active && before.is_active(one.id));
        self.inherit(ended.map(|one| one.delivered).min());
        let inherited = match self.inherited {
            Some((from, u64::MAX)) => {
                self.read_journal(from.saturating_sub(self.schedule.late()))
                    .await?
            }
            _ => Vec::new(),
        };
        let beats = self.read_beats(&members).await;
        let delay = self.changes.store().stats().replication_delay;
        let delay = delay.into_iter().map(|(_, delay)| delay).max();
        let reading = self.schedule.next(began, delay);
        let changes = match reading {
            Reading::From(from) => self.read_changes(from).await?,
            Reading::Everything => self.read_everything().await?,
        };
        // Nothing waits from here on.
        self.schedule.done(began, delay, reading);
        if let Some((_, until @ u64::MAX)) = &mut self.inherited {
            *until = began;
        }
        self.handoff.read();
        Ok(Drift {
            began,
            view: self.view.clone(),
            changes,
            complete: reading == Reading::Everything,
            beats,
            inherited,
        })
    }

    /// Writes the own record, and the heart-beats that came in since the last time.
    async fn write_own(&mut self) -> Result<(), Error> {
        let (beats, settled) = self.handoff.take();
        self.unwritten.extend(beats);
        self.own.delivered = match self.inherited {
            Some((from, until)) if settled < until => settled.min(from),
            _ => {
                self.inherited = None;
                settled
            }
        };
        let mut batch = Batch::default();
        let mut written = Vec::new();
        if !self.unwritten.is_empty() {
            // Also after a write whose outcome is not known: a record that others may have read does not change.
            self.own.beats += 1;
            written = self.unwritten.keys().take(BeatRecord::LARGEST).copied().collect();
            let beats = written.iter().filter_map(|id| self.unwritten.get(id).cloned());
            let record = BeatRecord {
                member: self.own.id,
                number: self.own.beats,
                beats: beats.collect(),
            };
            batch.put(&self.beats, &record, Condition::Always);
        }
        batch.update(&self.members, &self.own, self.version);
        match self.changes.store().commit(batch).await {
            Ok(version) => self.version = version,
            Err(Error::Conflict { .. }) => return self.rejoin().await,
            Err(error) => return Err(error),
        }
        for id in written {
            self.unwritten.remove(&id);
        }
        Ok(())
    }

    /// The own record is not as it was written last: that write had an outcome after all, or others have found this member
    /// dead.
    async fn rejoin(&mut self) -> Result<(), Error> {
        if let Some(stored) = self.members.get(self.own.id.as_bytes()).await?
            && stored.standing == Standing::Active
        {
            self.version = stored.version;
            return Ok(());
        }
        tracing::warn!(
            member = %self.own.id,
            "other NRFs of the cluster marked this one dead; it joins as a new member"
        );
        self.own.beats = 0;
        self.enlist().await
    }

    async fn read_members(&mut self) -> Result<Vec<Stored<MemberRecord>>, Error> {
        let members = read_all(&self.members, Scan::all(PAGE)).await?;
        if let Some(own) = members.iter().find(|one| one.id == self.own.id)
            && own.standing == Standing::Active
        {
            self.version = own.version;
        }
        Ok(members)
    }

    fn own_view(&mut self, members: &[Stored<MemberRecord>]) {
        let records = members.iter().map(|one| (one.record.clone(), one.version));
        let keep = micros_of(self.settings.keep_changes.duration());
        let mut view = View::new(self.own.id, records);
        view.note_absences(&mut self.absences, micros(), keep);
        self.view = Arc::new(view);
        self.handoff.set_view(self.view.clone());
    }

    async fn read_journal(&self, from: u64) -> Result<Vec<Stored<ChangeRecord>>, Error> {
        let from = Version::at(from).0.to_be_bytes();
        read_all(&self.changes, Scan::by_modified(PAGE).from_key(&from)).await
    }

    async fn read_changes(&self, from: u64) -> Result<Vec<(Key, Option<Version>)>, Error> {
        let changes = self.read_journal(from).await?;
        let seen = |stored: Stored<ChangeRecord>| {
            let version = stored.record.removed.is_none().then_some(stored.version);
            (stored.record.key, version)
        };
        Ok(changes.into_iter().map(seen).collect())
    }

    async fn read_everything(&self) -> Result<Vec<(Key, Option<Version>)>, Error> {
        tracing::info!("this NRF reads everything: the journal may not name all that others have changed");
        let mut all = versions(&self.profiles, |one| Key::Nf(NfInstanceId(one.id))).await?;
        all.extend(versions(&self.subscriptions, |one| Key::Subscription(one.id.clone())).await?);
        Ok(all)
    }

    /// The heart-beats that others have written since the last time. What cannot be read is read the next time.
    async fn read_beats(&mut self, members: &[Stored<MemberRecord>]) -> Vec<Beat> {
        let mut reads = Vec::new();
        for member in members.iter().filter(|member| member.id != self.own.id) {
            let read = self.beats_read.get(&member.id).copied().unwrap_or_default();
            let first = (read + 1).max(member.beats.saturating_sub(BeatRecord::SLOTS - 1));
            for number in first..=member.beats {
                let record = self.beats.get(&BeatRecord::key_of(member.id, number));
                reads.push(async move { (number, record.await) });
            }
        }
        let mut beats = Vec::new();
        let mut failed = false;
        for (number, record) in join_all(reads).await {
            match record {
                Ok(Some(stored)) if stored.number == number => beats.extend(stored.record.beats),
                Ok(_) => {}
                Err(error) => {
                    failed = true;
                    tracing::debug!(%error, "heart-beats received by another NRF could not be read");
                }
            }
        }
        if !failed {
            let known = members.iter().map(|member| (member.id, member.beats));
            self.beats_read = known.collect();
        }
        beats
    }

    /// Marks members dead whose records stand still.
    async fn bury(&mut self, members: &[Stored<MemberRecord>]) {
        let own = self.own.id;
        let others = members
            .iter()
            .filter(move |one| one.id != own && one.standing == Standing::Active);
        let most = self.settings.dead_after.duration();
        let still = self.watch.observe(
            others.clone().map(|one| (one.id, one.version)),
            Instant::now(),
            most,
        );
        for dead in others.filter(|one| still.contains(&one.id)) {
            let mut batch = Batch::default();
            let record = MemberRecord {
                standing: Standing::Dead,
                ..dead.record.clone()
            };
            batch.update(&self.members, &record, dead.version);
            // Should this member die as well, its record says what it had to deliver.
            let own = MemberRecord {
                delivered: self.own.delivered.min(dead.delivered),
                ..self.own.clone()
            };
            batch.update(&self.members, &own, self.version);
            match self.changes.store().commit(batch).await {
                Ok(version) => {
                    self.version = version;
                    self.inherit(Some(dead.delivered));
                    tracing::warn!(
                        instance = dead.instance,
                        root = dead.root,
                        "another NRF of the cluster is dead: its record was not updated for {most:?}"
                    );
                }
                // Another member was faster, or it lives.
                Err(error) => tracing::debug!(%error, "a member could not be marked dead"),
            }
        }
    }

    /// Ends the membership: the others go on from where this one has delivered.
    pub(super) async fn leave(mut self) {
        self.own.standing = Standing::Left;
        if let Err(error) = self.write_own().await {
            tracing::warn!(%error, "this NRF could not leave its cluster; the others will mark it dead");
        }
    }
}

fn micros_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The version of each record, by its key in the journal.
async fn versions<T: Record>(
    table: &Table<T>,
    key: impl Fn(&T) -> Key,
) -> Result<Vec<(Key, Option<Version>)>, Error> {
    let (mut all, mut next) = (Vec::new(), Some(Scan::all(PAGE)));
    while let Some(scan) = next {
        let page = table.scan(&scan).await?;
        all.extend(
            page.records
                .iter()
                .map(|one| (key(&one.record), Some(one.version))),
        );
        next = page.next;
    }
    Ok(all)
}

async fn read_all<T: Record>(table: &Table<T>, scan: Scan) -> Result<Vec<Stored<T>>, Error> {
    let (mut all, mut next) = (Vec::new(), Some(scan));
    while let Some(scan) = next {
        let page = table.scan(&scan).await?;
        all.extend(page.records);
        next = page.next;
    }
    Ok(all)
}
