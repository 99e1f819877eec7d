//! The journal of subscriber database servers: followed, taken again, continued after a crash.

use std::cell::RefCell;
use std::net::TcpListener;
use std::path::Path;
use std::rc::Rc;

use dp::Config;
use dp::config::Sds;
use dp_proto::{Kind, Outcome};
use sbi::{Response, Value};
use testpeer::sbi::{Seen, Server};
use testpeer::{local, until};

use crate::process;
use crate::support::{Router, config, damage, metric};

/// What a server has.
#[derive(Clone)]
struct Journal {
    id: String,
    /// Offset of the text, and the text.
    checkpoint: (u64, String),
    /// The lines behind `begin`.
    begin: u64,
    lines: Vec<String>,
}

impl Journal {
    fn new(id: &str, offset: u64, lines: &str) -> Self {
        let count = lines.lines().count();
        Self {
            id: id.to_owned(),
            checkpoint: (offset, format!("#signalbox-numbers,1\n{lines}#end,{count}\n")),
            begin: offset,
            lines: Vec::new(),
        }
    }

    fn head(&self) -> u64 {
        self.begin + self.lines.len() as u64
    }

    /// Appends a transaction with one change of an IMSI.
    fn put(&mut self, imsi: &str, destinations: &str) {
        let record = format!(r#"{{"imsi": "{imsi}", "destinations": "{destinations}"}}"#);
        self.append(&record);
    }

    fn append(&mut self, records: &str) {
        let offset = self.head() + 1;
        self.lines.push(format!(
            r#"{{"offset": {offset}, "changes": [{}]}}"#,
            records.replace('\n', " ")
        ));
    }

    fn answer(&self, seen: &Seen) -> Response {
        if seen.path.starts_with("/checkpoint?") {
            let ok = Response::ok(self.checkpoint.1.clone().into_bytes());
            let ok = with(ok, "journal-offset", &self.checkpoint.0.to_string());
            return with(ok, "journal-id", &self.id);
        }
        let after = seen.path.split("after=").nth(1).unwrap();
        let after: u64 = after.split('&').next().unwrap().parse().unwrap();
        if after < self.begin {
            return Response::new(http::StatusCode::GONE);
        }
        let lines = self.lines.iter().skip((after - self.begin) as usize);
        let body: String = lines.map(|line| format!("{line}\n")).collect();
        let ok = with(Response::ok(body.into_bytes()), "journal-id", &self.id);
        with(ok, "journal-head", &self.head().to_string())
    }
}

fn with(response: Response, name: &str, text: &str) -> Response {
    response.with(name, Value::new(text.as_bytes()).unwrap())
}

type Shared = Rc<RefCell<Journal>>;

fn served(journal: Journal) -> (Server, Shared) {
    let journal = Rc::new(RefCell::new(journal));
    let shown = journal.clone();
    let server = Server::start(move |seen| shown.borrow().answer(seen));
    (server, journal)
}

fn following(roots: &[String], directory: &Path) -> Config {
    Config {
        sds: Some(Sds {
            addresses: roots.to_vec(),
            name: "dp1".to_owned(),
        }),
        directory: Some(directory.to_owned()),
        ..config()
    }
}

/// Waits until the first transaction or text with this offset is in effect.
async fn reached(processor: &dp::Running, offset: u64) {
    until("the offset", async || {
        metric(processor, "signalbox_dp_journal_offset") == offset as f64
    })
    .await;
}

/// Whether the alarm is active that no server gives a usable answer.
fn is_not_followed(processor: &dp::Running) -> bool {
    let active = processor.handle().alarms().active();
    active.iter().any(|alarm| alarm.number == 10_590)
}

fn checkpoints(server: &Server) -> usize {
    let seen = server.seen();
    seen.iter()
        .filter(|seen| seen.path.starts_with("/checkpoint?"))
        .count()
}

const TEXT: &str = "imsi,001010000000001,hss1\nimsi,001010000000002,hss1,pcrf=pcrf7\nname,a@b,hss1\n";

#[test]
fn transactions_are_in_effect_on_every_worker() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let (server, journal) = served(Journal::new("j1", 5, TEXT));
        server.holds();
        let processor = dp::start(following(&[server.root()], folder.path())).unwrap();
        let not_ready = || processor.handle().health().not_ready().contains_key("data");
        assert!(not_ready());
        server.releases();
        reached(&processor, 5).await;
        until("readiness", async || !not_ready()).await;
        // Connections of several workers.
        let at = processor.addresses()[0];
        let mut routers: Vec<Router> = (0..8).map(|_| Router::new(at)).collect();
        assert!(
            routers
                .iter_mut()
                .all(|router| router.imsi("001010000000001") == "exact hss1")
        );
        journal.borrow_mut().put("001010000000003", "hss3");
        journal.borrow_mut().append(
            r#"{"imsi": "001010000000001", "destinations": null},
               {"name": "A@b", "destinations": "hss2"}, {"name": "c@d", "destinations": "hss3"}"#,
        );
        reached(&processor, 7).await;
        for router in &mut routers {
            assert_eq!(router.imsi("001010000000001"), "unknown");
            assert_eq!(router.imsi("001010000000003"), "exact hss3");
            assert_eq!(router.ask(Kind::Name, "", "a@b"), "exact hss2");
            assert_eq!(router.ask(Kind::Name, "", "c@d"), "exact hss3");
            assert_eq!(router.ask(Kind::Imsi, "pcrf", "001010000000002"), "exact pcrf7");
        }
        assert_eq!(checkpoints(&server), 1);
        let poll = server.seen().pop().unwrap();
        assert!(poll.path.contains("&limit=1000&wait=4&dp=dp1"), "{}", poll.path);
    });
}

#[test]
fn all_is_taken_again_where_the_journal_cannot_be_followed() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let (server, journal) = served(Journal::new("j1", 5, TEXT));
        let processor = dp::start(following(&[server.root()], folder.path())).unwrap();
        reached(&processor, 5).await;
        let mut router = Router::new(processor.addresses()[0]);
        // A gap: nothing of the answer is in effect.
        let mut next = Journal::new("j1", 20, "imsi,001010000000009,hss9\n");
        next.begin = 5;
        next.lines = vec![
            r#"{"offset": 6, "changes": [{"imsi": "001010000000007", "destinations": "hss7"}]}"#.to_owned(),
            r#"{"offset": 8, "changes": [{"imsi": "001010000000008", "destinations": "hss8"}]}"#.to_owned(),
        ];
        let before = metric(&processor, "signalbox_dp_transactions_total");
        *journal.borrow_mut() = next;
        reached(&processor, 20).await;
        assert_eq!(router.imsi("001010000000007"), "unknown");
        assert_eq!(router.imsi("001010000000009"), "exact hss9");
        assert_eq!(metric(&processor, "signalbox_dp_transactions_total"), before);
        // The journal begins later (410).
        *journal.borrow_mut() = Journal::new("j1", 30, "imsi,001010000000010,hss10\n");
        reached(&processor, 30).await;
        assert_eq!(router.imsi("001010000000009"), "unknown");
        // Another journal, at an earlier offset.
        *journal.borrow_mut() = Journal::new("j2", 3, "imsi,001010000000011,hss11\n");
        reached(&processor, 3).await;
        assert_eq!(router.imsi("001010000000011"), "exact hss11");
        // An empty one.
        *journal.borrow_mut() = Journal::new("j3", 0, "");
        reached(&processor, 0).await;
        assert_eq!(router.imsi("001010000000011"), "unknown");
        journal.borrow_mut().put("001010000000012", "hss12");
        reached(&processor, 1).await;
        assert_eq!(router.imsi("001010000000012"), "exact hss12");
    });
}

#[test]
fn a_text_that_is_cut_changes_nothing_and_raises_the_alarm() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let (server, journal) = served(Journal::new("j1", 5, TEXT));
        let processor = dp::start(following(&[server.root()], folder.path())).unwrap();
        reached(&processor, 5).await;
        let mut cut = Journal::new("j2", 9, "imsi,001010000000001,hss9\nimsi,001010000000002,hss9\n");
        cut.checkpoint
            .1
            .truncate(cut.checkpoint.1.len() - "imsi,001010000000002,hss9\n#end,2\n".len());
        *journal.borrow_mut() = cut;
        let raised = async || is_not_followed(&processor);
        until("the alarm", raised).await;
        let mut router = Router::new(processor.addresses()[0]);
        assert_eq!(router.imsi("001010000000001"), "exact hss1");
        *journal.borrow_mut() = Journal::new("j2", 9, "imsi,001010000000001,hss9\n");
        reached(&processor, 9).await;
        until("it is cleared", async || !raised().await).await;
        assert_eq!(router.imsi("001010000000001"), "exact hss9");
    });
}

#[test]
fn a_part_that_fails_is_requested_again() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let asked = Rc::new(RefCell::new(Vec::new()));
        let shown = asked.clone();
        let server = Server::start(move |seen| {
            let answer = |text: &str| {
                let ok = with(Response::ok(text.as_bytes().to_vec()), "journal-offset", "5");
                with(with(ok, "journal-id", "j1"), "journal-head", "5")
            };
            if !seen.path.starts_with("/checkpoint?") {
                return answer("");
            }
            shown.borrow_mut().push(seen.path.clone());
            match shown.borrow().len() {
                1 => answer(
                    "#signalbox-numbers,1\nimsi,001010000000001,hss1\n#next,imsi,001010000000001\n#end,1\n",
                ),
                2 => Response::new(http::StatusCode::SERVICE_UNAVAILABLE),
                _ => answer("#signalbox-numbers,1\nname,a@b,hss1\n#end,1\n"),
            }
        });
        let processor = dp::start(following(&[server.root()], folder.path())).unwrap();
        reached(&processor, 5).await;
        let mut router = Router::new(processor.addresses()[0]);
        assert_eq!(router.imsi("001010000000001"), "exact hss1");
        assert_eq!(router.ask(Kind::Name, "", "a@b"), "exact hss1");
        let next = "/checkpoint?limit=10000&after=imsi%2C001010000000001";
        assert_eq!(asked.borrow()[..], ["/checkpoint?limit=10000", next, next]);
    });
}

#[test]
fn a_silent_server_raises_the_alarm_within_the_second_request() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let (server, _) = served(Journal::new("j1", 5, TEXT));
        let processor = dp::start(following(&[server.root()], folder.path())).unwrap();
        reached(&processor, 5).await;
        server.holds();
        until("the alarm", async || is_not_followed(&processor)).await;
        // It has 10 s beyond the seven of the first one.
        let failed = metric(&processor, "signalbox_dp_polls_total{outcome=\"failed\"}");
        assert_eq!(failed, 1.0);
        let mut router = Router::new(processor.addresses()[0]);
        assert_eq!(router.imsi("001010000000001"), "exact hss1");
        server.releases();
        until("it is cleared", async || !is_not_followed(&processor)).await;
    });
}

#[test]
fn a_text_of_an_earlier_offset_changes_nothing() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let (server, journal) = served(Journal::new("j1", 5, TEXT));
        let processor = dp::start(following(&[server.root()], folder.path())).unwrap();
        reached(&processor, 5).await;
        // A server that is late: it has no transaction behind ours (410), and the text of an earlier one.
        let mut late = Journal::new("j1", 4, "imsi,001010000000001,hss9\n");
        late.begin = 6;
        *journal.borrow_mut() = late;
        until("the alarm", async || is_not_followed(&processor)).await;
        let mut router = Router::new(processor.addresses()[0]);
        assert_eq!(router.imsi("001010000000001"), "exact hss1");
        assert_eq!(metric(&processor, "signalbox_dp_journal_offset"), 5.0);
        *journal.borrow_mut() = Journal::new("j1", 7, "imsi,001010000000001,hss9\n");
        reached(&processor, 7).await;
        assert_eq!(router.imsi("001010000000001"), "exact hss9");
    });
}

#[test]
fn another_server_is_asked_where_one_does_not_answer() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let dead = TcpListener::bind("127.0.0.1:0").unwrap();
        let root = format!("http://{}", dead.local_addr().unwrap());
        drop(dead);
        let (server, journal) = served(Journal::new("j1", 5, TEXT));
        let mut config = following(&[root, server.root()], folder.path());
        // Servers need no name, and refuse an empty one.
        config.sds.iter_mut().for_each(|sds| sds.name.clear());
        let processor = dp::start(config).unwrap();
        reached(&processor, 5).await;
        journal.borrow_mut().put("001010000000003", "hss3");
        reached(&processor, 6).await;
        let (_, data) = testpeer::page(processor.handle().routes(), "/dp/data").await;
        assert!(data.contains("\"numbers\":3,"), "{data}");
        assert!(server.seen().iter().all(|seen| !seen.path.contains("dp=")));
    });
}

#[test]
fn a_crash_between_transactions_continues_where_it_was() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let (server, journal) = served(Journal::new("j1", 5, TEXT));
        let config = following(&[server.root()], folder.path());
        let (process, at) = process::start(&config);
        until("the first data", async || {
            Router::new(at).imsi("001010000000001") == "exact hss1"
        })
        .await;
        for number in 10..30 {
            journal
                .borrow_mut()
                .put(&format!("0010100000000{number}"), "hss4");
        }
        until("the last one", async || {
            Router::new(at).imsi("001010000000029") == "exact hss4"
        })
        .await;
        process.kill();
        // What a power failure may leave: a line that was not written whole.
        let log = folder.path().join("1.log");
        let mut bytes = std::fs::read(&log).unwrap();
        bytes.truncate(bytes.len() - 7);
        std::fs::write(&log, bytes).unwrap();
        let before = checkpoints(&server);
        // Another name: requests of the process before may still arrive.
        let mut config = config;
        config.sds.iter_mut().for_each(|sds| sds.name = "dp2".to_owned());
        let processor = dp::start(config).unwrap();
        // Before any answer of the server.
        let mut router = Router::new(processor.addresses()[0]);
        assert_eq!(router.imsi("001010000000028"), "exact hss4");
        reached(&processor, 25).await;
        assert_eq!(router.imsi("001010000000029"), "exact hss4");
        assert_eq!(router.ask(Kind::Name, "", "a@b"), "exact hss1");
        let seen = server.seen();
        let first = seen.iter().find(|seen| seen.path.ends_with("&dp=dp2")).unwrap();
        assert!(first.path.starts_with("/journal?after=24&"), "{}", first.path);
        assert_eq!(checkpoints(&server), before);
        assert_eq!(metric(&processor, "signalbox_dp_transactions_total"), 1.0);
    });
}

#[test]
fn what_old_data_lack_is_unavailable_until_a_server_was_asked() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let text = TEXT.replace("name,a@b,", "name,*@b,hss1\nname,a@b,");
        let (server, journal) = served(Journal::new("j1", 5, &text));
        let config = following(&[server.root()], folder.path());
        let processor = dp::start(config.clone()).unwrap();
        reached(&processor, 5).await;
        processor.stop().unwrap();
        journal.borrow_mut().put("001010000000003", "hss3");
        journal
            .borrow_mut()
            .append(r#"{"name": "c@b", "destinations": "hss3"}"#);
        server.holds();
        let processor = dp::start(config.clone()).unwrap();
        let mut router = Router::new(processor.addresses()[0]);
        assert_eq!(router.imsi("001010000000001"), "exact hss1");
        assert_eq!(router.imsi("001010000000003"), "unavailable");
        assert_eq!(router.ask(Kind::Name, "", "a@b"), "exact hss1");
        assert_eq!(router.ask(Kind::Name, "", "c@b"), "unavailable");
        server.releases();
        reached(&processor, 7).await;
        assert_eq!(router.imsi("001010000000003"), "exact hss3");
        assert_eq!(router.ask(Kind::Name, "", "c@b"), "exact hss3");
        until("the first poll has settled", async || {
            router.imsi("001010000000004") == "unknown"
        })
        .await;
        assert_eq!(router.ask(Kind::Name, "", "d@b"), "realm hss1");
        processor.stop().unwrap();
        // No server at all: the data serve as they are.
        server.stop();
        let processor = dp::start(config).unwrap();
        let mut router = Router::new(processor.addresses()[0]);
        until("the first poll has failed", async || {
            router.imsi("001010000000004") == "unknown"
        })
        .await;
        assert_eq!(router.imsi("001010000000003"), "exact hss3");
    });
}

#[test]
fn damaged_entries_are_taken_from_a_server_again() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let (server, _) = served(Journal::new("j1", 5, TEXT));
        let config = following(&[server.root()], folder.path());
        let processor = dp::start(config.clone()).unwrap();
        reached(&processor, 5).await;
        processor.stop().unwrap();
        damage(&folder.path().join("1.num"), "001010000000001");
        // The first page of names, behind the header.
        let names = folder.path().join("1.names");
        let mut bytes = std::fs::read(&names).unwrap();
        bytes[130] ^= 1;
        std::fs::write(&names, bytes).unwrap();
        let processor = dp::start(config).unwrap();
        reached(&processor, 5).await;
        assert_eq!(checkpoints(&server), 1);
        let mut router = Router::new(processor.addresses()[0]);
        router.send(&[(Kind::Name, "", "a@b"), (Kind::Imsi, "", "001010000000001")]);
        let answers = router.next().unwrap();
        assert!(
            answers.iter().all(|(_, outcome, _)| *outcome == Outcome::Damaged),
            "{answers:?}"
        );
        until("it is mended", async || {
            router.imsi("001010000000001") == "exact hss1"
        })
        .await;
        assert_eq!(router.ask(Kind::Name, "", "a@b"), "exact hss1");
        assert_eq!(checkpoints(&server), 2);
    });
}
