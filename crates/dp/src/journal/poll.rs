//! Requests to the servers: the journal behind our offset, and where that is not possible the text of all subscribers.

use std::cell::Cell;
use std::io::BufReader;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Buf as _;
use dp_proto::Outcome;
use http::{Request, StatusCode};
use nrf_client::{PeerService, PeerTokens};
use parking_lot::Mutex;
use sbi::client::{Client, ClientConfig, Origin, SendErrorKind, SendOptions};
use sbi::tls::ClientTls;
use sbi::{Body, Response};
use telemetry::health::Component;

use super::Keeper;
use crate::alarms::NOT_FOLLOWED;
use crate::config::Sds;
use crate::control::Control;

/// What access tokens of the servers are for.
const JOURNAL: PeerService = PeerService {
    name: "sds-journal",
    nf_type: "SDS",
};
/// Transactions of one answer.
const MOST_TRANSACTIONS: u64 = 1_000;
/// Bytes of one answer, unless the text of all subscribers may have more.
const MOST_JOURNAL_BYTES: u64 = 64 << 20;
/// How long a server waits for a transaction before it answers that there is none.
const WAIT: Duration = Duration::from_secs(20);
/// Time from a request to the whole answer beyond that.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The same for the text of all subscribers.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(600);
/// Pause after a round in which no server has answered, and longest one before all data are taken again once more.
const PAUSE: Duration = Duration::from_secs(1);
const MOST_PAUSE: Duration = Duration::from_secs(64);
/// Time since the first failure after which the alarm is raised: a server restarts in less.
const OUTAGE: Duration = Duration::from_secs(10);
/// Time from one mending of damaged entries to the next one: a disk may damage what it is given.
const MENDING: Duration = Duration::from_secs(600);
/// Pause after an answer without transactions: a server may not wait for one.
const IDLE: Duration = Duration::from_millis(50);

/// What an answer has led to.
enum Step {
    /// This count of transactions was put into effect.
    Followed(u64),
    /// All data must be taken again.
    Retake(String),
}

/// When the first request since the last usable answer has failed.
#[derive(Default)]
struct Outage(Option<Instant>);

impl Outage {
    /// Whether requests fail for as long as an alarm takes; another one has failed now.
    fn lasts(&mut self, now: Instant) -> bool {
        let begun = *self.0.get_or_insert(now);
        now.saturating_duration_since(begun) >= OUTAGE
    }
}

struct Poller {
    client: Client,
    tokens: Option<PeerTokens>,
    origins: Vec<Origin>,
    name: String,
    keeper: Arc<Mutex<Keeper>>,
    control: Arc<Control>,
    /// No server has been asked yet, or it has more than it has sent.
    is_new: Cell<bool>,
    /// Queries that had met damaged entries when these were mended last, and when that was.
    mended: Cell<(u64, Option<Instant>)>,
    /// Before all data are taken again: those of a journal that cannot be used are not taken over and over.
    pause: Cell<Duration>,
}

/// The client of the servers.
pub(crate) fn client(sds: &Sds, tls: Option<ClientTls>) -> Client {
    let config = ClientConfig {
        user_agent: "DP".to_owned(),
        max_body: settings::ByteSize(sds.checkpoint_bytes.bytes().max(MOST_JOURNAL_BYTES)),
        ..ClientConfig::default()
    };
    Client::with_names(Arc::new(config), tls, None)
}

/// Follows the journal until the task is aborted.
pub(crate) async fn follow(
    sds: Sds,
    (client, tokens): (Client, Option<PeerTokens>),
    keeper: Keeper,
    control: Arc<Control>,
    ready: Component,
) {
    let has_data = keeper.position().is_some();
    let poller = Poller {
        client,
        tokens,
        origins: sds.origins().collect(),
        name: sds.name,
        keeper: Arc::new(Mutex::new(keeper)),
        control,
        is_new: Cell::new(true),
        mended: Cell::default(),
        pause: Cell::default(),
    };
    if has_data {
        ready.ready();
    } else {
        ready.not_ready("no data yet: no subscriber database server has answered");
    }
    poller.report(0);
    let (mut at, mut failed, mut outage) = (0, 0, Outage::default());
    // By server, what has been logged: one line, and not one a second for as long as a server is away.
    let mut logged: Vec<Option<String>> = vec![None; poller.origins.len()];
    loop {
        let Some(origin) = poller.origins.get(at) else {
            return;
        };
        match poller.ask(origin).await {
            Ok(()) => {
                failed = 0;
                outage = Outage::default();
                logged.fill(None);
                ready.ready();
                if poller.control.progress.behind() == 0 {
                    poller.settle();
                }
                poller.control.alarms.clear(&NOT_FOLLOWED, "sds");
            }
            Err(error) => {
                if let Some(logged) = logged.get_mut(at)
                    && logged.as_ref() != Some(&error)
                {
                    tracing::warn!(server = %origin, %error, "subscriber data are not followed");
                    *logged = Some(error.clone());
                }
                failed += 1;
                let lasts = outage.lasts(Instant::now());
                at = (at + 1) % poller.origins.len();
                if failed >= poller.origins.len() {
                    poller.settle();
                    // Data that cannot be used are not a restart.
                    if lasts || !poller.pause.get().is_zero() {
                        poller.control.alarms.raise(&NOT_FOLLOWED, "sds", error);
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

impl Poller {
    /// Asks a server for what is new; all that it has is in effect afterwards.
    async fn ask(&self, origin: &Origin) -> Result<(), String> {
        let polls = &self.control.meters.polls;
        let Some((journal, offset)) = self.position() else {
            tokio::time::sleep(self.pause.get()).await;
            return self.checkpoint(origin).await;
        };
        let step = match self.has_damage(Instant::now()) {
            true => Ok(Step::Retake("queries met damaged entries".to_owned())),
            false => self.journal(origin, &journal, offset).await,
        };
        match step.inspect_err(|_| polls.failed.inc())? {
            Step::Followed(count) => {
                polls.answered.inc();
                self.pause.set(Duration::ZERO);
                if count == 0 {
                    tokio::time::sleep(IDLE).await;
                }
                Ok(())
            }
            Step::Retake(reason) => {
                polls.refused.inc();
                tracing::warn!(server = %origin, reason, "all subscriber data are taken again");
                tokio::time::sleep(self.pause.get()).await;
                self.back_off();
                self.checkpoint(origin).await
            }
        }
    }

    /// From now on what the data do not have is unknown.
    fn settle(&self) {
        if self.is_new.replace(false) {
            self.keeper.lock().settle();
        }
    }

    /// Whether queries have met damaged entries since these were mended.
    fn has_damage(&self, now: Instant) -> bool {
        let queries = self.control.meters.value(Outcome::Damaged);
        let (before, last) = self.mended.get();
        let is_due = last.is_none_or(|last| now.saturating_duration_since(last) >= MENDING);
        let has_damage = queries > before && is_due;
        if has_damage {
            self.mended.set((queries, Some(now)));
        }
        has_damage
    }

    /// Makes the pause longer before all data are taken again.
    fn back_off(&self) {
        self.pause.set((self.pause.get() * 2).clamp(PAUSE, MOST_PAUSE));
    }

    /// The journal of the data in effect, and their offset in it; none: there are no data.
    fn position(&self) -> Option<(String, u64)> {
        let keeper = self.keeper.lock();
        let position = keeper.position();
        position.map(|(journal, offset)| (journal.to_owned(), offset))
    }

    async fn journal(&self, origin: &Origin, journal: &str, offset: u64) -> Result<Step, String> {
        let wait = if self.is_new.get() { Duration::ZERO } else { WAIT };
        let wait = wait.as_secs();
        let mut target = format!("/journal?after={offset}&limit={MOST_TRANSACTIONS}&wait={wait}");
        if !self.name.is_empty() {
            target.push_str("&dp=");
            target.push_str(&self.name);
        }
        let answer = self.send(origin, &target, WAIT + TIMEOUT).await?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::GONE => {
                let reason = format!("the journal does not lead on from offset {offset}");
                return Ok(Step::Retake(reason));
            }
            _ => return Err(self.refusal(answer)),
        }
        if header(&answer, "journal-id").is_none_or(|id| id != journal) {
            return Ok(Step::Retake("the journal is another one".to_owned()));
        }
        let head = number(&answer, "journal-head")?;
        if head < offset {
            return Err(format!("the server is at offset {head}, behind ours of {offset}"));
        }
        let body = answer.into_body().into_bytes();
        let applied = self.blocking(move |keeper| keeper.apply(&body)).await?;
        self.report(head);
        let count = match applied {
            Ok(count) => count,
            Err(reason) => return Ok(Step::Retake(reason)),
        };
        self.control.meters.transactions.add(count);
        if count == 0 && head > offset {
            return Ok(Step::Retake(format!(
                "no transaction behind offset {offset}, though the head is {head}"
            )));
        }
        Ok(Step::Followed(count))
    }

    async fn checkpoint(&self, origin: &Origin) -> Result<(), String> {
        let polls = &self.control.meters.polls;
        let taken = self.take(origin).await;
        match &taken {
            Ok(()) => polls.checkpoint.inc(),
            Err(_) => polls.failed.inc(),
        }
        taken
    }

    async fn take(&self, origin: &Origin) -> Result<(), String> {
        let answer = self.send(origin, "/checkpoint", CHECKPOINT_TIMEOUT).await?;
        if answer.status() != StatusCode::OK {
            return Err(self.refusal(answer));
        }
        let journal = header(&answer, "journal-id").ok_or("the answer has no journal-id")?;
        let offset = number(&answer, "journal-offset")?;
        let own = self.position().filter(|(own, _)| *own == journal);
        if let Some((_, own)) = own.filter(|(_, own)| *own > offset) {
            // Changes that are in effect would be undone.
            return Err(format!("the server is at offset {offset}, behind ours of {own}"));
        }
        let body = answer.into_body();
        let taken = self.blocking(move |keeper| {
            let mut text = BufReader::with_capacity(1 << 20, body.reader());
            keeper.take(&mut text, &journal, offset)
        });
        taken.await?.map_err(|wrong| {
            self.back_off();
            format!("checkpoint: {wrong}")
        })?;
        self.report(offset);
        Ok(())
    }

    async fn send(&self, origin: &Origin, target: &str, deadline: Duration) -> Result<Response, String> {
        let options = SendOptions {
            deadline,
            ..SendOptions::default()
        };
        let request = || Request::get(target).body(Body::empty()).ok();
        let answer = match (&self.tokens, request()) {
            (Some(tokens), _) => {
                tokens
                    .send(&self.client, (JOURNAL, origin), options, request)
                    .await
            }
            (None, Some(request)) => Some(self.client.send(origin, request, options).await),
            (None, None) => None,
        };
        let answer = answer.ok_or_else(|| format!("`{target}` is not a path"))?;
        answer.map_err(|error| match error.kind {
            SendErrorKind::TooLarge => {
                self.back_off();
                format!("{error}; dp.sds.checkpointBytes has to be larger")
            }
            _ => error.to_string(),
        })
    }

    /// Works beside the control thread, which serves pages meanwhile.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Keeper) -> T + Send + 'static,
    ) -> Result<T, String> {
        let keeper = self.keeper.clone();
        let done = tokio::task::spawn_blocking(move || work(&mut keeper.lock()));
        done.await.map_err(|error| error.to_string())
    }

    /// What an answer without data says.
    fn refusal(&self, answer: Response) -> String {
        let status = answer.status();
        let body = answer.into_body().into_bytes();
        let problem = serde_json::from_slice::<serde_json::Value>(&body).unwrap_or_default();
        let detail = problem.get("detail").and_then(serde_json::Value::as_str);
        let detail = detail.map_or_else(String::new, |detail| format!(": {detail}"));
        let advice = match &self.tokens {
            None if status == StatusCode::UNAUTHORIZED => "; set dp.nrfs, which grant access tokens",
            _ => "",
        };
        format!("status {status}{detail}{advice}")
    }

    fn report(&self, head: u64) {
        let offset = self.keeper.lock().position().map_or(0, |(_, offset)| offset);
        self.control.progress.report(offset, head);
    }
}

fn header(answer: &Response, name: &'static str) -> Option<String> {
    let value = answer.headers().get(name)?;
    value.to_str().ok().map(str::to_owned)
}

fn number(answer: &Response, name: &'static str) -> Result<u64, String> {
    let value = header(answer, name).and_then(|value| value.parse().ok());
    value.ok_or_else(|| format!("the answer has no {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_of_a_server_is_not_an_outage() {
        let (begun, mut outage) = (Instant::now(), Outage::default());
        for seconds in 0..10 {
            assert!(!outage.lasts(begun + Duration::from_secs(seconds)));
        }
        assert!(outage.lasts(begun + OUTAGE));
    }
}
