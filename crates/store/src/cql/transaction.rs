//! Carrying out a plan.
//!
//! **One row**: a conditional write (`IF version = ?`) of this row.
//!
//! **Several rows** (several records, or a record and its unique keys), after the manner of Percolator:
//! 1. each row gets the intent of the transaction, on the condition that it has the expected version and no intent;
//! 2. the transaction is committed by the conditional insertion of its row, see [`super::core`]: from here on it is
//!    acknowledged, and readers take the images of the intents;
//! 3. the intents become the rows' images, and the row of the transaction is removed.
//!
//! **An outcome that is not known** (a timeout) is settled before anything else: a serial read carries the write out, or
//! makes sure that it never will be, and shows which. What stays unknown until the deadline is reported as such.
//!
//! Entries of indexes are written before and removed after, see [`super::entries`].

use std::time::{Duration, Instant};

use super::client::Failure;
use super::core::{COMMITTED, Core, encode_participants};
use super::image::{Image, Intent, Kind, Loaded, encode_keys, signed};
use super::plan::{Fault, Participant, Plan};
use super::together::{Request, all};
use crate::version::Version;

/// Pause between two attempts to find out an outcome.
const PAUSE: Duration = Duration::from_millis(50);

impl Core {
    /// Writes what is planned. What is left to do, [`Core::tidy`] does after the acknowledgement.
    pub(super) async fn carry_out(&self, plan: &Plan, deadline: Instant) -> Result<Option<Vec<u8>>, Fault> {
        if let Err(failure) = self.insert_entries(&plan.added).await {
            self.remove_entries(&plan.added).await;
            return Err(failure.into());
        }
        let written = match plan.participants.as_slice() {
            // The conditions hold, and nothing is to be written.
            [] => Ok(None),
            [one] if one.kind == Kind::Keep => Ok(None),
            [one] => self.write_one(one, deadline).await.map(|()| None),
            several => {
                let transaction = self.transaction();
                let written = self.write_several(&transaction, several, deadline).await;
                written.map(|()| Some(transaction))
            }
        };
        if matches!(
            written,
            Err(Fault::Again(_) | Fault::Conflict(_) | Fault::Final(_))
        ) {
            self.remove_entries(&plan.added).await;
        }
        written
    }

    /// Finishes the rows of a committed transaction and removes entries that nothing needs any more. What fails, others do
    /// when they meet it.
    pub(super) async fn tidy(&self, plan: &Plan, transaction: Option<Vec<u8>>) {
        if let Some(transaction) = transaction {
            let mut finishes: Vec<Request<'_, _>> = Vec::with_capacity(plan.participants.len());
            for participant in &plan.participants {
                let loaded = intended(participant, &transaction);
                finishes.push(Box::pin(
                    async move { self.finish(participant.rows, &loaded).await },
                ));
            }
            if all(finishes).await.iter().all(Result::is_ok) {
                self.forget(&transaction).await;
            }
        }
        self.remove_entries(&plan.removed).await;
    }

    async fn write_one(&self, participant: &Participant, deadline: Instant) -> Result<(), Fault> {
        let statements = &self.tables.rows[participant.rows];
        let expected = participant.expected.map(|version| signed(version.0));
        let written = match &participant.image {
            Some(image) => {
                let values = (
                    self.lifetime(participant.rows, &image.keys),
                    signed(image.version.0),
                    signed(image.created),
                    &*image.site,
                    &image.value,
                    encode_keys(&image.keys),
                    expected,
                    &participant.key,
                    expected,
                );
                self.client.applied(&statements.put, values).await
            }
            None => {
                let values = (&participant.key, expected);
                self.client.applied(&statements.delete, values).await
            }
        };
        match written {
            Ok(true) => Ok(()),
            // Or our own, which the coordinator has tried twice.
            Ok(false) => match self.load(participant.rows, &participant.key).await {
                Ok(loaded) if is_written(participant, &loaded) => Ok(()),
                _ => Err(Fault::Again("the record is written by others".to_owned())),
            },
            Err(Failure::Doubt(reason)) => self.settle_one(participant, reason, deadline).await,
            Err(failure) => Err(failure.into()),
        }
    }

    /// Finds out whether a write of one row was carried out.
    async fn settle_one(
        &self,
        participant: &Participant,
        mut reason: String,
        deadline: Instant,
    ) -> Result<(), Fault> {
        loop {
            match self.load_serial(participant.rows, &participant.key).await {
                Ok(loaded) if is_written(participant, &loaded) => return Ok(()),
                Ok(loaded) if loaded.version() == participant.expected => return Err(Fault::Again(reason)),
                Ok(_) => {
                    return Err(Fault::Doubt(format!(
                        "{reason}; others have written the record since"
                    )));
                }
                Err(failure) if Instant::now() >= deadline => return Err(Fault::Doubt(failure.reason())),
                Err(failure) => reason = failure.reason(),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn write_several(
        &self,
        transaction: &[u8],
        participants: &[Participant],
        deadline: Instant,
    ) -> Result<(), Fault> {
        for (position, participant) in participants.iter().enumerate() {
            if let Err(fault) = self.prepare(transaction, participant, deadline).await {
                self.give_up(transaction, &participants[..=position]).await;
                return Err(fault);
            }
        }
        let rows = participants
            .iter()
            .map(|participant| (&*self.tables.rows[participant.rows].name, &*participant.key));
        let rows = encode_participants(rows);
        let decided = self.commit(transaction, &rows, deadline).await;
        if matches!(decided, Err(Fault::Again(_) | Fault::Final(_))) {
            self.give_up(transaction, participants).await;
        }
        decided
    }

    /// Sets the intent on a row.
    async fn prepare(
        &self,
        transaction: &[u8],
        participant: &Participant,
        deadline: Instant,
    ) -> Result<(), Fault> {
        let again = |reason: &str| Err(Fault::Again(reason.to_owned()));
        let image = participant.image.as_ref();
        loop {
            let values = (
                transaction,
                participant.kind.code(),
                image.map(|image| signed(image.version.0)),
                image.map(|image| signed(image.created)),
                image.map(|image| &*image.site),
                image.map(|image| &image.value),
                image.map(|image| encode_keys(&image.keys)),
                &participant.key,
                participant.expected.map(|version| signed(version.0)),
            );
            let statement = &self.tables.rows[participant.rows].prepare;
            let loaded = match self.client.applied(statement, values).await {
                Ok(true) => return Ok(()),
                Ok(false) => self.load(participant.rows, &participant.key).await?,
                Err(Failure::Doubt(reason)) => {
                    // After it, an attempt that is not seen will never be.
                    match self.load_serial(participant.rows, &participant.key).await {
                        Ok(loaded) => loaded,
                        Err(_) => return Err(Fault::Again(reason)),
                    }
                }
                Err(failure) => return Err(failure.into()),
            };
            match &loaded.intent {
                Some(intent) if intent.transaction == transaction => return Ok(()),
                Some(_) => {
                    self.unlocked(participant.rows, &participant.key).await?;
                }
                None if loaded.version() != participant.expected => {
                    return again("a record is written by others");
                }
                None => {}
            }
            if Instant::now() >= deadline {
                return again("the intents of a transaction are not taken in time");
            }
        }
    }

    /// Decides that the transaction is committed.
    async fn commit(&self, transaction: &[u8], rows: &[u8], deadline: Instant) -> Result<(), Fault> {
        let mut reason = match self.decide(transaction, COMMITTED, rows).await {
            Ok(true) => return Ok(()),
            // Decided: by others, or by an attempt that the coordinator has made twice.
            Ok(false) => String::new(),
            Err(Failure::Doubt(reason)) => reason,
            Err(failure) => return Err(failure.into()),
        };
        loop {
            match self.decision(transaction, true).await {
                Ok(Some(decision)) if decision.committed => return Ok(()),
                Ok(Some(_)) => {
                    return Err(Fault::Again(
                        "the transaction took too long and was rolled back".to_owned(),
                    ));
                }
                Ok(None) => match self.decide(transaction, COMMITTED, rows).await {
                    Ok(true) => return Ok(()),
                    Ok(false) => {}
                    Err(failure) => reason = failure.reason(),
                },
                Err(failure) => reason = failure.reason(),
            }
            if Instant::now() >= deadline {
                return Err(Fault::Doubt(reason));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Removes the intents of a transaction that is not committed. One that stays, or that arrives late, is rolled back by
    /// those who meet it.
    async fn give_up(&self, transaction: &[u8], participants: &[Participant]) {
        let mut rolls: Vec<Request<'_, _>> = Vec::with_capacity(participants.len());
        for participant in participants {
            rolls.push(Box::pin(self.roll_back(
                participant.rows,
                &participant.key,
                transaction,
            )));
        }
        all(rolls).await;
    }
}

/// Whether a row shows that this write was carried out.
fn is_written(participant: &Participant, loaded: &Loaded) -> bool {
    match &participant.image {
        Some(image) => [loaded.version(), loaded.prior].contains(&Some(image.version)),
        None => loaded.image.is_none(),
    }
}

/// A row as it is once it has the intent.
fn intended(participant: &Participant, transaction: &[u8]) -> Loaded {
    let before = |version: Version| Image {
        version,
        created: 0,
        site: "".into(),
        value: Vec::new(),
        keys: Vec::new(),
    };
    Loaded {
        key: participant.key.clone(),
        image: participant.expected.map(before),
        prior: None,
        intent: Some(Intent {
            transaction: transaction.to_vec(),
            kind: participant.kind,
            image: participant.image.clone(),
        }),
    }
}
