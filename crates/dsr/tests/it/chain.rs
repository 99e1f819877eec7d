//! Several applications in a row, answers and losses that they see, and transactions that they park.

use std::sync::Arc;
use std::time::Duration;

use diameter::proto::known::{self, command};
use diameter::proto::{Fault, MessageBuilder, MessageMut, Origin, ResultCode};
use dsr::config::Ready;
use dsr::{Event, Running};
use dsr_app::{Answered, Application, Flow, Lost, Memo, On, Request, Resume, Resumed, Ticket};
use parking_lot::Mutex;
use testpeer::diameter::Peer;

use crate::support::{MME, Waiting, answered, client, config, counted, read, run, ulr, until, world};

const HSS: [&str; 2] = ["hss1.example", "hss2.example"];
const LONG: Duration = Duration::from_secs(9);
const BUSY: ResultCode = ResultCode(3004);

mod happened {
    telemetry::events! {
        "dsr";
        /// The script saw a request.
        Seen = "scripted_requests";
    }
}

use happened::Event as Happened;

/// What it does depends on the last digit of the subscriber.
#[derive(Debug, Default)]
struct Script {
    seen: Mutex<Seen>,
    max_parked: usize,
}

#[derive(Debug, Default)]
struct Seen {
    parked: Vec<Ticket>,
    resume: Option<Resume<&'static str>>,
    /// Requests of a worker, by its state.
    count: u64,
    answers: Vec<(u8, Option<u32>)>,
    losses: Vec<String>,
    unparked: usize,
    ticks: usize,
    /// Whether the next tick sends a query.
    sends: bool,
    queries: usize,
    configured: usize,
}

impl Script {
    fn new() -> Arc<Self> {
        let max_parked = 2;
        Arc::new(Self {
            max_parked,
            ..Self::default()
        })
    }

    fn park(&self, on: &On<'_, Self>, wait: Duration) -> Flow<'static> {
        self.seen.lock().parked.push(on.ticket);
        Flow::Later(wait)
    }

    /// Resumes what was parked first.
    fn resume(&self, with: &'static str) {
        let mut seen = self.seen.lock();
        let ticket = seen.parked.remove(0);
        assert!(seen.resume.as_ref().unwrap().resume(ticket, with));
    }

    /// What came of a query: the parked transaction goes there.
    fn found(&self, on: &On<'_, Self>, to: &'static str) -> Flow<'static> {
        let mut seen = self.seen.lock();
        seen.queries += 1;
        seen.parked.clear();
        let number = u64::from_be_bytes(on.memo[8..16].try_into().unwrap());
        let worker = u16::from_be_bytes(on.memo[4..6].try_into().unwrap());
        seen.resume
            .as_ref()
            .unwrap()
            .resume(Ticket { worker, number }, to);
        Flow::Next
    }

    fn parked(&self) -> usize {
        self.seen.lock().parked.len()
    }
}

/// In the memo of a query.
const QUERY: u8 = b'q';

fn query_memo(ticket: Ticket) -> Memo {
    let mut memo = Memo::default();
    memo[0] = QUERY;
    memo[4..6].copy_from_slice(&ticket.worker.to_be_bytes());
    memo[8..16].copy_from_slice(&ticket.number.to_be_bytes());
    memo
}

fn query(names: &Origin) -> MessageMut {
    let mut query = MessageBuilder::request(command::UPDATE_LOCATION, known::application::S6A);
    query
        .put(known::SESSION_ID, "query")
        .put(known::ORIGIN_HOST, &names.host)
        .put(known::ORIGIN_REALM, &names.realm)
        .put(known::DESTINATION_REALM, "epc.example")
        .put(known::DESTINATION_HOST, HSS[1])
        .put(known::USER_NAME, "query");
    query.finish().unwrap()
}

/// The message with more AVPs at its end.
fn with(message: &MessageMut, fill: impl FnOnce(&mut MessageBuilder)) -> MessageMut {
    let mut builder = MessageBuilder::with_capacity(message.header(), message.as_bytes().len() + 64);
    for avp in message.avps().map_while(Result::ok) {
        builder.copy(&avp);
    }
    fill(&mut builder);
    builder.finish().unwrap()
}

fn with_host(request: &MessageMut, host: &str) -> MessageMut {
    with(request, |builder| {
        builder.put(known::DESTINATION_HOST, host);
    })
}

/// An answer with an Error-Message.
fn with_text(answer: &MessageMut, text: &str) -> MessageMut {
    with(answer, |builder| {
        builder.put(known::ERROR_MESSAGE, text);
    })
}

fn digit(user: Option<&[u8]>) -> u8 {
    user.and_then(<[u8]>::last).copied().unwrap_or_default()
}

impl Application for Script {
    const KIND: &'static str = "script";
    const FOLLOWS: bool = true;
    const TICK: Option<Duration> = Some(Duration::from_millis(5));

    type Event = Happened;
    type Worker = u64;
    type Found = &'static str;

    fn configure(&self, _: &mut u64, resume: Resume<&'static str>) {
        let mut seen = self.seen.lock();
        seen.resume = Some(resume);
        seen.configured += 1;
    }

    fn request<'a>(&'a self, on: &mut On<'_, Self>, request: &Request<'_>) -> Flow<'a> {
        on.count(Happened::Seen);
        *on.worker += 1;
        self.seen.lock().count = *on.worker;
        let digit = digit(request.view.routing.user_name);
        on.memo[0] = digit;
        match digit {
            b'1' => self.park(on, LONG),
            b'2' | b'3' => Flow::Later(Duration::from_millis(1)),
            // It asks the other server where to go.
            b'0' => {
                on.out.send(query(request.names), query_memo(on.ticket));
                self.park(on, LONG)
            }
            b'4' => Flow::Changed(with_host(request.message, HSS[1])),
            _ => Flow::Next,
        }
    }

    fn answer<'a>(&'a self, on: &mut On<'_, Self>, answered: &Answered<'_>) -> Flow<'a> {
        let code = answered.answer.get(known::RESULT_CODE).unwrap();
        if on.memo[0] == QUERY {
            return self.found(on, HSS[0]);
        }
        self.seen.lock().answers.push((on.memo[0], code));
        match code {
            Some(3004) => Flow::to("", HSS[1]),
            Some(2002) => self.park(on, LONG),
            // What the resolution behind it says of subscribers that no range holds.
            Some(5030) => Flow::Changed(with_text(answered.answer, "seen")),
            _ => Flow::Next,
        }
    }

    fn lost<'a>(&'a self, on: &mut On<'_, Self>, lost: &Lost<'_>) -> Flow<'a> {
        let digit = on.memo[0];
        if digit == QUERY {
            return self.found(on, HSS[1]);
        }
        self.seen
            .lock()
            .losses
            .push(format!("{} {:?}", digit as char, lost.why));
        match digit {
            b'8' => Flow::to("", HSS[1]),
            b'9' => Flow::refuse(Fault::new(BUSY, "no peer answers")),
            _ => Flow::Next,
        }
    }

    fn resume<'a>(&'a self, _: &mut On<'_, Self>, resumed: &Resumed<'_>, found: &'static str) -> Flow<'a> {
        match resumed {
            Resumed::Request(_) => Flow::to("", found),
            _ if found == "busy" => Flow::refuse(Fault::new(BUSY, found)),
            _ => Flow::Next,
        }
    }

    fn expired<'a>(&'a self, _: &mut On<'_, Self>, resumed: &Resumed<'_>) -> Flow<'a> {
        match resumed {
            Resumed::Request(request) if digit(request.view.routing.user_name) == b'3' => Flow::Next,
            _ => Flow::refuse(Fault::new(BUSY, "too late")),
        }
    }

    fn unparked(&self, _: &mut On<'_, Self>, resumed: &Resumed<'_>) {
        assert!(matches!(resumed, Resumed::Request(_)));
        self.seen.lock().unparked += 1;
    }

    fn tick(&self, on: &mut On<'_, Self>, names: &Origin) {
        let mut seen = self.seen.lock();
        seen.ticks += 1;
        if std::mem::take(&mut seen.sends) {
            on.out.send(query(names), query_memo(Ticket::default()));
        }
    }

    fn max_parked(&self) -> usize {
        self.max_parked
    }
}

/// The script first, then a resolution that gives each request a realm; requests go to the peer that they name, or to
/// the first one.
const ROUTES: &str = "applications:
  - name: script
  - name: resolve
    rbar:
      lookups: [{identities: [imsi]}]
      destinations: [{name: any, realm: home.example}]
      ranges: [{identity: imsi, start: '0', end: '7', destination: any}]
      onNoMatch: {answer: {resultCode: 5030}}
      onInvalidIdentity: abandon
routing:
  applicationRouteTables:
    - {name: default, rules: [{name: both, action: {applications: [script, resolve]}}]}
  peerRouteTables:
    - name: default
      rules: [{when: {destinationHost: {present: false}}, action: {routeList: first}}]
  routeLists: [{name: first, groups: [first]}]
  routeGroups: [{name: first, peers: [{host: hss1.example}]}]
  transaction: {answer: 9s}
";

async fn scripted(workers: usize) -> (Arc<Script>, Running, Vec<Waiting>, Vec<Peer>, Peer) {
    let script = Script::new();
    let mut base = config();
    base.workers = workers;
    base.peers = HSS
        .map(|host| dsr::config::Peer {
            host: host.to_owned(),
            ..dsr::config::Peer::default()
        })
        .to_vec();
    let mut config = read(base, ROUTES);
    config.peers.clear();
    config.applications[0].ready = Some(Ready(script.clone()));
    let (dsr, servers, peers) = world(config, HSS, "").await;
    let mme = client(&dsr, MME).await;
    (script, dsr, servers, peers, mme)
}

async fn outcome(mme: &mut Peer) -> (u32, Option<String>) {
    let answer = mme.expect(command::UPDATE_LOCATION).await;
    let message = answer.get(known::ERROR_MESSAGE).unwrap().map(str::to_owned);
    (answer.require(known::RESULT_CODE).unwrap(), message)
}

fn realm(request: &MessageMut) -> &str {
    request.require(known::DESTINATION_REALM).unwrap()
}

#[test]
fn applications_in_a_row_see_requests_in_their_order_and_why_says_so() {
    run(async {
        let (script, dsr, _servers, mut peers, mut mme) = scripted(1).await;
        mme.send(ulr("001010000000005").as_bytes()).await;
        let request = answered(&mut mme, &mut peers[0]).await;
        assert_eq!(realm(&request), "home.example");
        assert_eq!(script.seen.lock().answers, [(b'5', Some(2001))]);
        assert_eq!(dsr.count_of::<Script>(Happened::Seen), 1);
        let why = dsr.why(
            MME,
            "ULR app=16777251 { Destination-Realm = \"x\" User-Name = \"001010000000005\" }",
        );
        let said = why["application"]["outcome"].as_str().unwrap();
        assert_eq!(
            said,
            "script: goes on as it is, then rbar: to host ``, realm `home.example`"
        );
        assert_eq!(dsr.count_of::<Script>(Happened::Seen), 1, "why counts nothing");
        until(|| script.seen.lock().ticks > 1).await;
    });
}

#[test]
fn a_parked_request_goes_on_through_the_rest_of_the_chain_when_it_is_resumed() {
    for workers in [1, 2] {
        run(async move {
            let (script, dsr, _servers, mut peers, mut mme) = scripted(workers).await;
            for to in [0, 1] {
                mme.send(ulr("001010000000001").as_bytes()).await;
                until(|| script.parked() == 1).await;
                // Others pass meanwhile.
                mme.send(ulr("001010000000005").as_bytes()).await;
                answered(&mut mme, &mut peers[0]).await;
                let resumed = script.clone();
                std::thread::spawn(move || resumed.resume(HSS[to]))
                    .join()
                    .unwrap();
                let request = answered(&mut mme, &mut peers[to]).await;
                assert_eq!(realm(&request), "home.example");
                assert_eq!(request.require(known::DESTINATION_HOST).unwrap(), HSS[to]);
                assert_eq!(request.require(known::ROUTE_RECORD).unwrap(), MME);
            }
            assert_eq!((dsr.count(Event::Parked), dsr.count(Event::Resumed)), (2, 2));
            let text = dsr.handle().registry().render();
            assert!(text.contains("signalbox_dsr_parked 0"), "{text}");
        });
    }
}

#[test]
fn what_is_parked_for_too_long_is_answered_or_goes_on_as_its_application_wants() {
    run(async {
        let (_script, dsr, _servers, mut peers, mut mme) = scripted(1).await;
        mme.send(ulr("001010000000002").as_bytes()).await;
        assert_eq!(outcome(&mut mme).await, (3004, Some("too late".to_owned())));
        mme.send(ulr("001010000000003").as_bytes()).await;
        let request = answered(&mut mme, &mut peers[0]).await;
        assert_eq!(realm(&request), "home.example");
        assert_eq!(dsr.count(Event::ParkedTooLong), 2);
    });
}

#[test]
fn no_more_is_parked_than_the_application_may_have() {
    run(async {
        let (script, dsr, _servers, mut peers, mut mme) = scripted(1).await;
        for _ in 0..3 {
            mme.send(ulr("001010000000001").as_bytes()).await;
        }
        let (code, _) = outcome(&mut mme).await;
        assert_eq!(code, 3004, "exceptions.exhausted");
        assert_eq!((dsr.count(Event::Parked), dsr.count(Event::ParkingFull)), (2, 1));
        assert_eq!(script.seen.lock().unparked, 1);
        script.resume(HSS[0]);
        answered(&mut mme, &mut peers[0]).await;
        // There is room again, and the ticket of the one that was refused is not used again.
        mme.send(ulr("001010000000001").as_bytes()).await;
        counted(&dsr, Event::Parked, 3).await;
        let mut tickets = script.seen.lock().parked.clone();
        tickets.dedup();
        assert_eq!(tickets.len(), 3);
    });
}

#[test]
fn a_reload_loses_nothing_that_is_parked_and_keeps_the_state_of_workers() {
    run(async {
        let (script, dsr, _servers, mut peers, mut mme) = scripted(1).await;
        mme.send(ulr("001010000000001").as_bytes()).await;
        until(|| script.parked() == 1).await;
        let mut wanted = dsr.snapshot().config.as_ref().clone();
        wanted.routing.follow_redirects = true;
        // Positions change: another application comes first.
        let mut other = wanted.applications[1].clone();
        other.name = "other".to_owned();
        wanted.applications.insert(0, other);
        dsr.reload(&wanted).unwrap();
        until(|| script.seen.lock().configured > 1).await;
        script.resume(HSS[1]);
        let request = answered(&mut mme, &mut peers[1]).await;
        assert_eq!(realm(&request), "home.example");
        mme.send(ulr("001010000000005").as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
        assert_eq!(script.seen.lock().count, 2, "the state of the worker");
        assert_eq!(script.seen.lock().answers.len(), 2);

        // An application that a reload removes leaves its requests to those behind it.
        mme.send(ulr("001010000000001").as_bytes()).await;
        until(|| script.parked() == 1).await;
        wanted.applications.retain(|one| one.name != "script");
        let rule = &mut wanted.routing.application_route_tables[0].rules[0];
        rule.action = dsr::config::ApplicationAction::Application("resolve".to_owned());
        let version = dsr.snapshot().version;
        dsr.reload(&wanted).unwrap();
        until(|| dsr.snapshot().version > version).await;
        // Its worker follows by the next request.
        mme.send(ulr("001010000000005").as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
        script.resume(HSS[1]);
        let request = answered(&mut mme, &mut peers[0]).await;
        assert_eq!(realm(&request), "home.example");
    });
}

#[test]
fn an_application_sees_answers_and_sends_the_request_once_more_or_parks_them() {
    for workers in [1, 2] {
        run(async move {
            let (script, _dsr, _servers, mut peers, mut mme) = scripted(workers).await;
            // Busy there: to the other one.
            mme.send(ulr("001010000000005").as_bytes()).await;
            let request = peers[0].expect(command::UPDATE_LOCATION).await;
            peers[0].answer(&request, BUSY).await;
            let request = answered(&mut mme, &mut peers[1]).await;
            assert_eq!(request.require(known::DESTINATION_HOST).unwrap(), HSS[1]);
            assert_eq!(request.require(known::ROUTE_RECORD).unwrap(), MME);
            let seen = std::mem::take(&mut script.seen.lock().answers);
            assert_eq!(seen, [(b'5', Some(3004)), (b'5', Some(2001))]);
            // The answer is parked, and goes on or is replaced.
            for (with, code) in [("go", 2002), ("busy", 3004)] {
                mme.send(ulr("001010000000006").as_bytes()).await;
                let request = peers[0].expect(command::UPDATE_LOCATION).await;
                peers[0].answer(&request, ResultCode::LIMITED_SUCCESS).await;
                until(|| script.parked() == 1).await;
                script.resume(with);
                assert_eq!(outcome(&mut mme).await.0, code);
            }
        });
    }
}

#[test]
fn an_application_changes_messages_and_sees_what_those_behind_it_answer_or_drop() {
    run(async {
        let (script, dsr, _servers, mut peers, mut mme) = scripted(1).await;
        mme.send(ulr("001010000000004").as_bytes()).await;
        let request = answered(&mut mme, &mut peers[1]).await;
        assert_eq!(request.require(known::DESTINATION_HOST).unwrap(), HSS[1]);
        assert_eq!(realm(&request), "home.example", "the next one sees the change");
        script.seen.lock().answers.clear();
        // The resolution refuses.
        mme.send(ulr("801010000000005").as_bytes()).await;
        assert_eq!(outcome(&mut mme).await, (5030, Some("seen".to_owned())));
        assert_eq!(script.seen.lock().answers, [(b'5', Some(5030))]);
        // The resolution drops: the application has the last word.
        mme.send(ulr("alice@9").as_bytes()).await;
        assert_eq!(outcome(&mut mme).await.0, 3004);
        mme.send(ulr("alice@7").as_bytes()).await;
        counted(&dsr, Event::Abandoned, 1).await;
        assert_eq!(script.seen.lock().losses, ["9 Dropped", "7 Dropped"]);
    });
}

#[test]
fn an_application_sends_requests_of_its_own_and_learns_what_came_of_them() {
    for workers in [1, 2] {
        run(async move {
            let (script, dsr, _servers, mut peers, mut mme) = scripted(workers).await;
            mme.send(ulr("001010000000000").as_bytes()).await;
            let query = peers[1].expect(command::UPDATE_LOCATION).await;
            assert_eq!(query.require(known::USER_NAME).unwrap(), "query");
            assert_eq!(query.require(known::ORIGIN_HOST).unwrap(), crate::support::DSR);
            assert!(query.get(known::ROUTE_RECORD).unwrap().is_none());
            peers[1].answer(&query, ResultCode::SUCCESS).await;
            let request = answered(&mut mme, &mut peers[0]).await;
            assert_eq!(request.require(known::DESTINATION_HOST).unwrap(), HSS[0]);
            // By a tick, without a transaction.
            script.seen.lock().sends = true;
            let query = peers[1].expect(command::UPDATE_LOCATION).await;
            peers[1].answer(&query, ResultCode::SUCCESS).await;
            until(|| script.seen.lock().queries == 2).await;
            // Its connection is lost, and then no peer is there at once.
            mme.send(ulr("001010000000000").as_bytes()).await;
            let mut second = peers.remove(1);
            second.expect(command::UPDATE_LOCATION).await;
            second.break_off();
            assert_eq!(
                outcome(&mut mme).await.0,
                3002,
                "there is no way to where the query leads"
            );
            until(|| script.seen.lock().queries == 3).await;
            mme.send(ulr("001010000000000").as_bytes()).await;
            assert_eq!(outcome(&mut mme).await.0, 3002);
            assert_eq!(script.seen.lock().queries, 4);
            assert_eq!(dsr.count(Event::Originated), 3);
            assert_eq!(dsr.count(Event::AnswerLost), 0);
        });
    }
}

#[test]
fn an_application_that_always_asks_for_another_try_is_bounded() {
    run(async {
        let (script, _dsr, _servers, mut peers, mut mme) = scripted(1).await;
        mme.send(ulr("001010000000005").as_bytes()).await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        peers[0].answer(&request, BUSY).await;
        for _ in 0..8 {
            let request = peers[1].expect(command::UPDATE_LOCATION).await;
            peers[1].answer(&request, BUSY).await;
        }
        assert_eq!(outcome(&mut mme).await.0, 3002, "exceptions.noRoute");
        assert_eq!(script.seen.lock().answers.len(), 9);
    });
}

#[test]
fn an_application_sees_requests_that_no_peer_answers() {
    for workers in [1, 2] {
        run(async move {
            let (script, _dsr, _servers, mut peers, mut mme) = scripted(workers).await;
            let first = peers.remove(0);
            for user in ["001010000000008", "001010000000009", "001010000000007"] {
                mme.send(ulr(user).as_bytes()).await;
            }
            let mut first = first;
            for _ in 0..3 {
                first.expect(command::UPDATE_LOCATION).await;
            }
            first.break_off();
            // One is sent to the other server, the others are answered: by the application, and by the settings.
            let request = peers[0].expect(command::UPDATE_LOCATION).await;
            assert_eq!(request.require(known::USER_NAME).unwrap(), "001010000000008");
            assert!(
                request
                    .flags()
                    .contains(diameter::proto::CommandFlags::RETRANSMITTED)
            );
            peers[0].answer(&request, ResultCode::SUCCESS).await;
            let mut codes = vec![outcome(&mut mme).await.0, outcome(&mut mme).await.0];
            codes.push(outcome(&mut mme).await.0);
            codes.sort_unstable();
            assert_eq!(codes, [2001, 3002, 3004]);
            let mut losses = std::mem::take(&mut script.seen.lock().losses);
            losses.sort_unstable();
            assert_eq!(losses, ["7 Disconnected", "8 Disconnected", "9 Disconnected"]);
            // No peer is left for the next one.
            mme.send(ulr("001010000000007").as_bytes()).await;
            assert_eq!(outcome(&mut mme).await.0, 3002);
            assert_eq!(script.seen.lock().losses, ["7 NoPeer"]);
        });
    }
}

#[test]
fn a_chain_names_one_to_eight_applications_that_exist() {
    let report = |action: &str| {
        let rule = format!(
            "applications: [{{name: a}}, {{name: b}}]\nrouting:\n  applicationRouteTables:\n    - {{name: default, rules: \
             [{{action: {action}}}]}}\n"
        );
        let read = settings::from_str::<dsr::Config>(&rule, "test");
        read.map_or_else(|report| report.to_string(), |_| String::new())
    };
    assert_eq!(report("{applications: [a, b]}"), "");
    assert_eq!(report("{application: b}"), "");
    for (action, wrong) in [
        ("{applications: []}", "names 0 applications"),
        (
            "{applications: [a, b, a, b, a, b, a, b, a]}",
            "names 9 applications",
        ),
        ("{applications: [a, c]}", "unknown application `c`"),
        ("{application: c}", "unknown application `c`"),
    ] {
        let said = report(action);
        assert!(said.contains(wrong), "{action}: {said}");
    }
}
