//! Requests to the servers: the journal behind our offset, and where that is not possible all subscribers, part by part.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use dp_proto::Outcome;
use http::{Request, StatusCode};
use nrf_client::{PeerService, PeerTokens};
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
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
/// Subscribers of one answer.
const MOST_RECORDS: u64 = 10_000;
/// Bytes of one answer.
const MOST_ANSWER_BYTES: u64 = 64 << 20;
/// How long a server waits for a transaction before it answers that there is none.
const WAIT: Duration = Duration::from_secs(4);
/// Time beyond that to the whole answer: while there is another server that may be asked, and where all have failed.
const PATIENCE: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time from the request for a part of all subscribers to the whole answer, and attempts to take a part behind the first one.
const PART_TIMEOUT: Duration = Duration::from_secs(30);
const PART_ATTEMPTS: usize = 5;
/// Pause after a round in which no server has answered, and longest one before all data are taken again once more.
const PAUSE: Duration = Duration::from_secs(1);
const MOST_PAUSE: Duration = Duration::from_secs(64);
/// Time without a usable answer after which the alarm is raised: a server restarts in less.
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

/// A part of all subscribers.
struct Part {
    journal: String,
    offset: u64,
    text: Bytes,
}

impl Part {
    /// The subject behind which the next part begins; none: this one is the last.
    fn next(&self) -> Option<String> {
        let lines = self.text.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n');
        let mut end = lines.take_while(|line| line.starts_with(b"#"));
        let next = end.find_map(|line| line.strip_prefix(b"#next,"))?;
        // What is not in UTF-8 is refused with the text.
        String::from_utf8(next.to_vec()).ok()
    }
}

/// When the first request since the last usable answer was sent.
#[derive(Default)]
struct Outage(Cell<Option<Instant>>);

impl Outage {
    /// A request is sent; when the alarm is due, none: it was due before.
    fn sent(&self, now: Instant) -> Option<Instant> {
        let begun = self.0.get().unwrap_or(now);
        self.0.set(Some(begun));
        Some(begun + OUTAGE).filter(|due| *due > now)
    }

    fn ends(&self) {
        self.0.set(None);
    }

    /// Whether it lasts as long as an alarm takes.
    fn is_long(&self, now: Instant) -> bool {
        let begun = self.0.get();
        begun.is_some_and(|begun| now.saturating_duration_since(begun) >= OUTAGE)
    }
}

struct Poller {
    client: Client,
    tokens: Option<PeerTokens>,
    origins: Vec<Origin>,
    name: String,
    keeper: Arc<Mutex<Keeper>>,
    control: Arc<Control>,
    ready: Component,
    /// Requests in a row that have led to nothing.
    failed: Cell<usize>,
    outage: Outage,
    /// No server has been asked yet, or it has more than it has sent.
    is_new: Cell<bool>,
    /// Queries that had met damaged entries when these were mended last, and when that was.
    mended: Cell<(u64, Option<Instant>)>,
    /// Before all data are taken again: those of a journal that cannot be used are not taken over and over.
    pause: Cell<Duration>,
}

/// The client of the servers.
pub(crate) fn client(tls: Option<ClientTls>) -> Client {
    let config = ClientConfig {
        user_agent: "DP".to_owned(),
        max_body: settings::ByteSize(MOST_ANSWER_BYTES),
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
    let poller = Poller {
        client,
        tokens,
        origins: sds.origins().collect(),
        name: sds.name,
        keeper: Arc::new(Mutex::new(keeper)),
        control,
        ready,
        failed: Cell::default(),
        outage: Outage::default(),
        is_new: Cell::new(true),
        mended: Cell::default(),
        pause: Cell::default(),
    };
    poller
        .ready
        .not_ready("no data yet: no subscriber database server has answered");
    poller.show_ready();
    poller.report(0);
    let mut at = 0;
    // By server, what has been logged: one line, and not one a second for as long as a server is away.
    let mut logged: Vec<Option<String>> = vec![None; poller.origins.len()];
    loop {
        let Some(origin) = poller.origins.get(at) else {
            return;
        };
        match poller.ask(origin).await {
            Ok(()) => {
                poller.failed.set(0);
                logged.fill(None);
                let is_in_effect = poller.keeper.lock().is_in_effect();
                if is_in_effect && poller.control.progress.behind() == 0 {
                    poller.settle();
                }
                poller.show_ready();
                poller.control.alarms.clear(&NOT_FOLLOWED, "sds");
            }
            Err(error) => {
                if let Some(logged) = logged.get_mut(at)
                    && logged.as_ref() != Some(&error)
                {
                    tracing::warn!(server = %origin, %error, "subscriber data are not followed");
                    *logged = Some(error.clone());
                }
                poller.failed.set(poller.failed.get() + 1);
                at = (at + 1) % poller.origins.len();
                if poller.have_all_failed() {
                    poller.settle();
                    poller.show_ready();
                    // Data that cannot be used are not a restart.
                    if poller.outage.is_long(Instant::now()) || !poller.pause.get().is_zero() {
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
        self.is_new.set(false);
        self.keeper.lock().settle();
    }

    fn show_ready(&self) {
        if self.keeper.lock().is_in_effect() {
            self.ready.ready();
        }
    }

    /// Whether each server has failed since the last usable answer.
    fn have_all_failed(&self) -> bool {
        self.failed.get() >= self.origins.len()
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
        // A server that is asked in place of another one shows at once whether it answers.
        let waits = !self.is_new.get() && self.failed.get() == 0;
        let wait = if waits { WAIT } else { Duration::ZERO };
        let patience = if self.have_all_failed() { TIMEOUT } else { PATIENCE };
        let seconds = wait.as_secs();
        let mut target = format!("/journal?after={offset}&limit={MOST_TRANSACTIONS}&wait={seconds}");
        if !self.name.is_empty() {
            target.push_str("&dp=");
            target.push_str(&self.name);
        }
        let answer = self.send(origin, &target, wait + patience).await?;
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
        self.outage.ends();
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

    /// Takes all subscribers, part by part: a part is in memory, and the rest on the disk.
    async fn take(&self, origin: &Origin) -> Result<(), String> {
        let unusable = |wrong: String| {
            self.back_off();
            format!("checkpoint: {wrong}")
        };
        let (mut part, mut before) = (self.first_part(origin).await?, None);
        let mut taking = self.blocking(|keeper| keeper.begin()).await??;
        loop {
            let next = part.next();
            let adding = move || {
                let Part {
                    journal,
                    offset,
                    text,
                } = part;
                let added = taking.add(&mut text.reader(), &journal, offset);
                added.map(|()| taking)
            };
            let added = tokio::task::spawn_blocking(adding).await;
            taking = added.map_err(|error| error.to_string())?.map_err(unusable)?;
            self.outage.ends();
            let Some(after) = next else { break };
            if before.as_ref() == Some(&after) {
                return Err(unusable(format!("two parts end with {after}")));
            }
            part = self.next_part(origin, &after).await?;
            before = Some(after);
        }
        let completed = self.blocking(move |keeper| keeper.complete(taking)).await?;
        let through = completed.map_err(unusable)?;
        self.report(through);
        Ok(())
    }

    /// The first part of all subscribers; from a server that is behind the data none is taken.
    async fn first_part(&self, origin: &Origin) -> Result<Part, String> {
        let part = self.part(origin, "").await?;
        let own = self.position().filter(|(own, _)| *own == part.journal);
        match own {
            // Changes that are in effect would be undone.
            Some((_, own)) if own > part.offset => {
                let offset = part.offset;
                Err(format!("the server is at offset {offset}, behind ours of {own}"))
            }
            _ => Ok(part),
        }
    }

    /// The part of all subscribers behind a subject: what was taken so far is not given up for one answer.
    async fn next_part(&self, origin: &Origin, after: &str) -> Result<Part, String> {
        let after = format!("&after={}", utf8_percent_encode(after, NON_ALPHANUMERIC));
        for _ in 1..PART_ATTEMPTS {
            match self.part(origin, &after).await {
                Ok(part) => return Ok(part),
                Err(error) => tracing::debug!(server = %origin, error, "a part is requested again"),
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.part(origin, &after).await
    }

    async fn part(&self, origin: &Origin, after: &str) -> Result<Part, String> {
        let target = format!("/checkpoint?limit={MOST_RECORDS}{after}");
        let answer = self.send(origin, &target, PART_TIMEOUT).await?;
        if answer.status() != StatusCode::OK {
            return Err(self.refusal(answer));
        }
        Ok(Part {
            journal: header(&answer, "journal-id").ok_or("the answer has no journal-id")?,
            offset: number(&answer, "journal-offset")?,
            text: answer.into_body().into_bytes(),
        })
    }

    async fn send(&self, origin: &Origin, target: &str, deadline: Duration) -> Result<Response, String> {
        let options = SendOptions {
            deadline,
            ..SendOptions::default()
        };
        let request = || Request::get(target).body(Body::empty()).ok();
        let exchange = async {
            match (&self.tokens, request()) {
                (Some(tokens), _) => {
                    tokens
                        .send(&self.client, (JOURNAL, origin), options, request)
                        .await
                }
                (None, Some(request)) => Some(self.client.send(origin, request, options).await),
                (None, None) => None,
            }
        };
        let answer = self.watched(exchange).await;
        let answer = answer.ok_or_else(|| format!("`{target}` is not a path"))?;
        answer.map_err(|error| {
            if error.kind == SendErrorKind::TooLarge {
                self.back_off();
            }
            error.to_string()
        })
    }

    /// Awaits an exchange, and raises the alarm within it when no server has answered for long enough: one that takes
    /// connections and says nothing does not delay it.
    async fn watched<T>(&self, exchange: impl Future<Output = T>) -> T {
        let Some(due) = self.outage.sent(Instant::now()) else {
            return exchange.await;
        };
        let mut exchange = std::pin::pin!(exchange);
        if let Ok(answer) = tokio::time::timeout_at(due.into(), &mut exchange).await {
            return answer;
        }
        let detail = format!("no server has answered for {} s", OUTAGE.as_secs());
        self.control.alarms.raise(&NOT_FOLLOWED, "sds", detail);
        exchange.await
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

    /// Shows where the data are, and the newest offset that is known.
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
        let (begun, outage) = (Instant::now(), Outage::default());
        let at = |seconds| begun + Duration::from_secs(seconds);
        for seconds in 0..10 {
            assert_eq!(outage.sent(at(seconds)), Some(begun + OUTAGE));
            assert!(!outage.is_long(at(seconds)));
        }
        assert!(outage.is_long(at(10)));
        assert_eq!(outage.sent(at(10)), None, "it was due before");
        outage.ends();
        assert_eq!(outage.sent(at(11)), Some(at(11) + OUTAGE));
    }

    #[test]
    fn a_part_names_what_the_next_one_begins_behind() {
        let next = |text: &'static str| {
            let part = Part {
                journal: "j1".to_owned(),
                offset: 1,
                text: Bytes::from_static(text.as_bytes()),
            };
            part.next()
        };
        assert_eq!(
            next("imsi,1,a\n#next,imsi,1\n#crc32c,0\n#end,1\n").as_deref(),
            Some("imsi,1")
        );
        assert_eq!(next("#next,name,\n#end,0\n").as_deref(), Some("name,"));
        assert_eq!(next("#next,imsi,1\nimsi,1,a\n#end,1\n"), None);
        assert_eq!(next("imsi,1,a\n#end,1\n"), None);
    }
}
