//! Full address resolution by database processors: processes that are killed, silent ones, congested ones.

use std::net::SocketAddr;
use std::path::Path;

use diameter::proto::known::{self, command};
use diameter::proto::{MessageMut, ResultCode};
use dp_proto::{Answer, Bundle, Frame, Query};
use dsr::Running;
use dsr_fabr::{Event, Fabr};
use testpeer::diameter::Peer;
use testpeer::process;
use tls::authority::Authority;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{MME, Waiting, client, config, is_led, read, run, ulr, until, world};

const HSS: [&str; 2] = ["hss1.example", "hss2.example"];

/// Not a test of its own: what the process of a database processor does.
#[test]
fn child() {
    if let Some(settings) = process::settings() {
        let running = dp::start(serde_json::from_str(&settings).unwrap()).unwrap();
        process::serve(&running.addresses()[0].to_string());
    }
}

/// Settings of a processor with these lines in its files.
fn settings(folder: &Path, listen: SocketAddr) -> dp::Config {
    let options = numbers::csv::Options {
        sort: true,
        sort_memory: 1 << 20,
    };
    let (numbers, names) = (folder.join("s.num"), folder.join("names.csv"));
    let lines =
        "imsi,001010000000001,one\nimsi,001010000000002,one,lte-hss=two\nimsi,001010000000003,three\n";
    numbers::csv::import(lines.as_bytes(), &numbers, options, |_| Ok(())).unwrap();
    std::fs::write(&names, "name,*@iot.example,two\nname,meter8@iot.example,two\n").unwrap();
    dp::Config {
        admin: "127.0.0.1:0".parse().unwrap(),
        workers: 1,
        listen: listen.into(),
        numbers: Some(numbers),
        names: Some(names),
        ..dp::Config::default()
    }
}

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A processor in a process of its own, and where it listens.
fn processor(folder: &Path, listen: SocketAddr) -> (process::Process, SocketAddr) {
    let settings = serde_json::to_string(&settings(folder, listen)).unwrap();
    let process = process::Process::start("processors::child", &settings);
    let address = process.ready.parse().unwrap();
    (process, address)
}

/// Settings of a router that asks these processors, with a deadline in seconds.
fn resolution(processors: &[SocketAddr], deadline: u32) -> String {
    let processors: Vec<String> = processors
        .iter()
        .map(|address| format!("{{address: \"{address}\"}}"))
        .collect();
    format!(
        "applications:
  - name: resolve
    fabr:
      lookups:
        - {{applications: [16777251], service: lte-hss, \
         entities: [{{entity: imsi, avps: [userName]}}, {{entity: nai, avps: [userName]}}]}}
      destinations:
        - {{name: one, host: hss1.example}}
        - {{name: two, host: hss2.example}}
      processors: [{}]
      processorDeadline: {deadline}s
      onNoMatch: {{answer: {{resultCode: 5030, message: nowhere}}}}
      onDatabaseError: {{answer: {{resultCode: 3010, message: no database}}}}
      onDatabaseCongested: {{answer: {{resultCode: 3004, message: congested}}}}
routing:
  applicationRouteTables:
    - name: default
      rules: [{{when: {{applications: [16777251]}}, action: {{application: resolve}}}}]
",
        processors.join(", ")
    )
}

/// A router that is connected to all of these processors, its servers and a client.
async fn connected(processors: &[SocketAddr], deadline: u32) -> (Running, Vec<Waiting>, Vec<Peer>, Peer) {
    let (dsr, servers, peers) = world(read(config(), &resolution(processors, deadline)), HSS, "").await;
    let count = processors.len() as u64;
    until(|| dsr.count_of::<Fabr>(Event::ProcessorConnected) >= count).await;
    let mme = client(&dsr, MME).await;
    (dsr, servers, peers, mme)
}

fn is_raised(dsr: &Running, number: u32) -> bool {
    let active = dsr.handle().alarms().active();
    active.iter().any(|alarm| alarm.number == number)
}

/// The code of the answer to the request of a subscriber that leads to no server.
async fn refused(mme: &mut Peer, user: &str) -> u32 {
    mme.send(ulr(user).as_bytes()).await;
    let answer = mme.expect(command::UPDATE_LOCATION).await;
    answer.require(known::RESULT_CODE).unwrap()
}

#[test]
fn a_subscriber_leads_to_its_server_and_why_asks_a_processor() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (_first, one) = processor(folder.path(), any());
        let (_second, two) = processor(folder.path(), any());
        let (dsr, _servers, mut peers, mut mme) = connected(&[one, two], 30).await;
        for _ in 0..4 {
            for (user, server) in [
                ("001010000000001", 0),
                ("001010000000002", 1),
                ("meter7@iot.example", 1),
            ] {
                is_led(&mut mme, user, &mut peers[server], HSS[server]).await;
            }
        }
        assert_eq!(refused(&mut mme, "001010000000009").await, 5030);
        // Its destination is not one of the router's.
        assert_eq!(refused(&mut mme, "001010000000003").await, 3010);
        let count = |event| dsr.count_of::<Fabr>(event);
        let all = [Event::Queries, Event::Exact, Event::Ranged, Event::NoMatch];
        assert_eq!(all.map(count), [14, 8, 4, 1]);
        let request =
            "ULR app=16777251 flags=RP { User-Name = \"001010000000002\" Destination-Realm = \"x\" }";
        let why = dsr.why(MME, request);
        assert_eq!(
            why["application"]["outcome"],
            "fabr: to host `hss2.example`, realm ``"
        );
        let asked = format!("001010000000002: asked database processor {one}");
        let findings = why["application"]["findings"].as_array().unwrap();
        for wanted in [asked.as_str(), "destination two by a database processor"] {
            assert!(findings.contains(&wanted.into()), "{why}");
        }
        let rows = dsr.look_up("imsi:001010000000002");
        let shown = rows[0]["destinations"].as_str().unwrap();
        assert_eq!(
            shown,
            "one by a database processor, lte-hss=two by a database processor"
        );
        until(|| dsr.indicators().iter().any(|row| row.id == 4170)).await;
    });
}

/// Sends requests of two subscribers in turns, a few of them at a time, until `done` and all are answered: each meets its own
/// server.
async fn led_until(mme: &mut Peer, peers: &mut [Peer], mut done: impl FnMut(usize) -> bool) -> usize {
    const USERS: [&str; 2] = ["001010000000001", "001010000000002"];
    const TOGETHER: usize = 8;
    let mut sent = 0;
    while !done(sent) {
        for _ in 0..TOGETHER {
            for user in USERS {
                mme.send(ulr(user).as_bytes()).await;
                sent += 1;
            }
        }
        for (server, user) in USERS.iter().enumerate() {
            for _ in 0..TOGETHER {
                let request: MessageMut = peers[server].expect(command::UPDATE_LOCATION).await;
                assert_eq!(request.require(known::USER_NAME).unwrap(), *user);
                assert_eq!(request.require(known::DESTINATION_HOST).unwrap(), HSS[server]);
                peers[server].answer(&request, ResultCode::SUCCESS).await;
            }
        }
        for _ in 0..2 * TOGETHER {
            mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                .await;
        }
    }
    sent
}

#[test]
fn another_processor_takes_over_and_without_one_the_exception_applies() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (first, one) = processor(folder.path(), any());
        let (second, two) = processor(folder.path(), any());
        let (dsr, _servers, mut peers, mut mme) = connected(&[one, two], 30).await;
        let count = |event| dsr.count_of::<Fabr>(event);
        let mut first = Some(first);
        led_until(&mut mme, &mut peers, |sent| {
            if sent >= 64
                && let Some(first) = first.take()
            {
                first.kill();
            }
            sent >= 64 && count(Event::ProcessorLost) > 0
        })
        .await;
        assert_eq!((count(Event::DatabaseError), count(Event::NoMatch)), (0, 0));
        assert!(!is_raised(&dsr, 19_831));
        second.kill();
        until(|| is_raised(&dsr, 19_831)).await;
        assert_eq!(refused(&mut mme, "001010000000001").await, 3010);
        assert_eq!(refused(&mut mme, "meter7@iot.example").await, 3010);
        // A processor that answers again is asked again.
        let (_third, _) = processor(folder.path(), two);
        until(|| !is_raised(&dsr, 19_831)).await;
        is_led(&mut mme, "001010000000001", &mut peers[0], HSS[0]).await;
        until(|| is_raised(&dsr, 19_825) || count(Event::DatabaseError) == 2).await;
    });
}

#[test]
fn other_processors_take_over_at_a_reload_beside_requests() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (_first, one) = processor(folder.path(), any());
        let (_second, two) = processor(folder.path(), any());
        let (dsr, _servers, mut peers, mut mme) = connected(&[one], 30).await;
        let before = dsr.snapshot().config.as_ref().clone();
        let mut next = [(vec![one, two], 30), (vec![two], 30), (vec![two], 20)].into_iter();
        led_until(&mut mme, &mut peers, |sent| match next.next() {
            Some((processors, deadline)) => {
                let next = read(before.clone(), &resolution(&processors, deadline));
                dsr.reload(&next).unwrap();
                false
            }
            None => sent >= 256,
        })
        .await;
        let count = |event| dsr.count_of::<Fabr>(event);
        assert_eq!((count(Event::DatabaseError), count(Event::NoMatch)), (0, 0));
    });
}

/// What a processor made by hand does with a frame of queries.
#[derive(Clone, Copy, PartialEq)]
enum Odd {
    /// It answers probes alone.
    Silent,
    /// It answers queries by bytes that are not a frame.
    Malformed,
    /// It answers the ids of other queries.
    Others,
    /// It answers that its entries are damaged.
    Damaged,
    /// It answers as it should.
    Not,
}

/// Serves routers oddly.
async fn odd() -> (SocketAddr, impl Fn(Odd)) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let how = std::rc::Rc::new(std::cell::Cell::new(Odd::Silent));
    let served = how.clone();
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::task::spawn_local(odd_connection(stream, served.clone()));
        }
    });
    (address, move |odd| how.set(odd))
}

async fn odd_connection(mut stream: TcpStream, how: std::rc::Rc<std::cell::Cell<Odd>>) {
    let mut input = Vec::new();
    while stream.read_buf(&mut input).await.is_ok_and(|read| read > 0) {
        let mut out = Bundle::default();
        while let Ok(Some((frame, length))) = Frame::<Query<'_>>::split(&input) {
            match (frame.count(), how.get()) {
                (0, _) => out.probe::<Answer<'_>>(),
                (_, Odd::Silent) => {}
                (_, Odd::Malformed) => {
                    let _ = stream.write_all(&[0xff; 32]).await;
                }
                (_, odd @ (Odd::Others | Odd::Damaged | Odd::Not)) => {
                    let (outcome, destination) = match odd {
                        Odd::Damaged => (dp_proto::Outcome::Damaged, &b""[..]),
                        _ => (dp_proto::Outcome::Exact, &b"one"[..]),
                    };
                    let answer = |query: Query<'_>| {
                        out.push(&Answer {
                            id: if odd == Odd::Others { !query.id } else { query.id },
                            outcome,
                            destination,
                        });
                    };
                    frame.each(answer).unwrap();
                }
            }
            input.drain(..length);
        }
        let mut octets = Vec::new();
        out.take_into(&mut octets);
        if stream.write_all(&octets).await.is_err() {
            return;
        }
    }
}

#[test]
fn what_a_silent_or_odd_processor_was_asked_is_asked_of_another_one() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (_process, sound) = processor(folder.path(), any());
        let (address, be) = odd().await;
        let (dsr, _servers, mut peers, mut mme) = connected(&[address, sound], 6).await;
        let count = |event| dsr.count_of::<Fabr>(event);
        // Malformed answers end the connection at once; the other two are found by silence, after a third of the deadline.
        for (how, times) in [(Odd::Malformed, 2), (Odd::Others, 1), (Odd::Silent, 1)] {
            for _ in 0..times {
                be(how);
                let repeated = count(Event::Repeated);
                let mut asked = 0;
                while count(Event::Repeated) == repeated {
                    is_led(&mut mme, "001010000000002", &mut peers[1], HSS[1]).await;
                    asked += 1;
                    assert!(asked < 10_000, "{repeated}");
                }
            }
        }
        assert_eq!(count(Event::DatabaseError) + count(Event::NoMatch), 0);
    });
}

#[test]
fn an_entry_that_is_damaged_at_one_processor_is_asked_of_another_one() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (_process, sound) = processor(folder.path(), any());
        let (damaged, be) = odd().await;
        be(Odd::Damaged);
        let (dsr, _servers, mut peers, mut mme) = connected(&[damaged, sound], 30).await;
        let count = |event| dsr.count_of::<Fabr>(event);
        for _ in 0..8 {
            is_led(&mut mme, "001010000000002", &mut peers[1], HSS[1]).await;
        }
        until(|| count(Event::Repeated) > 0).await;
        assert_eq!(count(Event::DatabaseError) + count(Event::NoMatch), 0);
        // Where no other one is left it is an error, at once.
        let (dsr, _servers, _peers, mut mme) = connected(&[damaged], 30).await;
        assert_eq!(refused(&mut mme, "001010000000002").await, 3010);
        until(|| dsr.count_of::<Fabr>(Event::DatabaseError) == 1).await;
    });
}

#[test]
fn an_explanation_passes_over_a_processor_whose_entry_is_damaged() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (_process, sound) = processor(folder.path(), any());
        let (damaged, be) = odd().await;
        be(Odd::Damaged);
        let (dsr, _servers, _peers, _mme) = connected(&[damaged, sound], 30).await;
        let page = "/dsr/subscribers/imsi:001010000000001";
        let (_, shown) = testpeer::page(dsr.handle().routes(), page).await;
        assert!(shown.contains("one by a database processor"), "{shown}");
        let (dsr, _servers, _peers, _mme) = connected(&[damaged], 30).await;
        let (_, shown) = testpeer::page(dsr.handle().routes(), page).await;
        assert!(shown.contains("damaged"), "{shown}");
    });
}

#[test]
fn the_realm_of_the_router_goes_before_that_of_a_processor() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (_process, processor) = processor(folder.path(), any());
        let file = folder.path().join("own.csv");
        std::fs::write(&file, "nai,*@iot.example,one\n").unwrap();
        let own = format!("      file: {}\n      processors", file.display());
        let routing = resolution(&[processor], 30).replace("      processors", &own);
        let (dsr, _servers, mut peers) = world(read(config(), &routing), HSS, "").await;
        until(|| dsr.count_of::<Fabr>(Event::ProcessorConnected) >= 1).await;
        let mut mme = client(&dsr, MME).await;
        is_led(&mut mme, "meter7@iot.example", &mut peers[0], HSS[0]).await;
        // A name that the processor has goes before both.
        is_led(&mut mme, "meter8@iot.example", &mut peers[1], HSS[1]).await;
    });
}

#[test]
fn pages_that_query_a_processor_do_not_block_their_thread() {
    run(async {
        // The processor answers on the thread of the pages.
        let (address, be) = odd().await;
        be(Odd::Not);
        let (dsr, _servers, _peers, _mme) = connected(&[address], 20).await;
        let request = "ULR%20app%3D16777251%20flags%3DRP%20%7B%20User-Name%20%3D%20%22001010000000001%22%20\
                       Destination-Realm%20%3D%20%22x%22%20%7D";
        for (page, wanted) in [
            (
                "/dsr/subscribers/imsi:001010000000001".to_owned(),
                "one by a database processor",
            ),
            (
                format!("/dsr/why?peer={MME}&message={request}"),
                "to host `hss1.example`",
            ),
        ] {
            let (_, shown) = testpeer::page(dsr.handle().routes(), &page).await;
            assert!(shown.contains(wanted), "{shown}");
        }
    });
}

#[test]
fn a_processor_is_queried_over_mutual_tls() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("operator").unwrap();
        let files = |authority: &Authority, name: &str| {
            let identity = authority.issue(&[name]).unwrap();
            authority.write(&identity, folder.path(), name).unwrap()
        };
        let mut settings = settings(folder.path(), any());
        settings.tls = Some(tls::TlsFiles {
            require_client_certificate: Some(true),
            ..files(&authority, "dp.example")
        });
        let processor = dp::start(settings).unwrap();
        let of_router = files(&authority, "dsr.example");
        let secured = |name: &str| {
            let [certificate, key, authorities] = [
                &of_router.certificate,
                &of_router.key,
                of_router.authorities.as_ref().unwrap(),
            ]
            .map(|path| path.display().to_string());
            resolution(&[processor.addresses()[0]], 30)
                .replace("\"}]", &format!("\", name: {name}}}]"))
                .replace(
                    "      processorDeadline",
                    &format!(
                        "      processorTls: {{certificate: {certificate}, key: {key}, authorities: {authorities}}}\n      \
                         processorDeadline"
                    ),
                )
        };
        let (dsr, _servers, mut peers) = world(read(config(), &secured("dp.example")), HSS, "").await;
        until(|| dsr.count_of::<Fabr>(Event::ProcessorConnected) >= 1).await;
        let mut mme = client(&dsr, MME).await;
        for _ in 0..20 {
            is_led(&mut mme, "001010000000002", &mut peers[1], HSS[1]).await;
        }
        let rows = dsr.look_up("imsi:001010000000001");
        assert_eq!(rows[0]["destinations"], "one by a database processor");
        // A processor with another name is not queried, and a router without a certificate not answered.
        for routing in [
            secured("other.example"),
            resolution(&[processor.addresses()[0]], 30),
        ] {
            let (dsr, _servers, _peers) = world(read(config(), &routing), HSS, "").await;
            let mut mme = client(&dsr, MME).await;
            until(|| is_raised(&dsr, 19_831)).await;
            assert_eq!(refused(&mut mme, "001010000000001").await, 3010);
        }
        until(|| {
            let page = processor.handle().registry().render();
            let failed = "signalbox_dp_connections_total{outcome=\"handshake\"}";
            page.lines()
                .any(|line| line.starts_with(failed) && !line.ends_with(" 0"))
        })
        .await;
    });
}

#[test]
fn congestion_of_a_processor_leads_to_its_exception_and_alarm() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings(folder.path(), any());
        settings.queries_per_second = 1;
        let processor = dp::start(settings).unwrap();
        let (dsr, _servers, mut peers, mut mme) = connected(&[processor.addresses()[0]], 30).await;
        // Two requests at once, of which one is beyond the rate, until the alarm was seen.
        while !is_raised(&dsr, 19_826) {
            for _ in 0..2 {
                mme.send(ulr("001010000000001").as_bytes()).await;
            }
            for _ in 0..2 {
                loop {
                    tokio::select! {
                        request = peers[0].expect(command::UPDATE_LOCATION) => {
                            peers[0].answer(&request, ResultCode::SUCCESS).await;
                        }
                        answer = mme.expect(command::UPDATE_LOCATION) => {
                            let code = answer.require(known::RESULT_CODE).unwrap();
                            assert!([2001, 3004].contains(&code), "{code}");
                            break;
                        }
                    }
                }
            }
        }
        assert!(dsr.count_of::<Fabr>(Event::DatabaseCongested) > 0);
        until(|| !is_raised(&dsr, 19_826)).await;
    });
}

#[test]
fn a_reload_asks_other_processors() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let dead = TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap()
            .local_addr()
            .unwrap();
        let (dsr, _servers, mut peers) = world(read(config(), &resolution(&[dead], 30)), HSS, "").await;
        let mut mme = client(&dsr, MME).await;
        assert_eq!(refused(&mut mme, "001010000000001").await, 3010);
        until(|| is_raised(&dsr, 19_831)).await;
        let (_process, sound) = processor(folder.path(), any());
        let now = dsr.snapshot().config.as_ref().clone();
        let peers_of = now.peers.clone();
        let mut wanted = read(now, &resolution(&[sound], 30));
        wanted.peers = peers_of;
        dsr.reload(&wanted).unwrap();
        until(|| !is_raised(&dsr, 19_831)).await;
        is_led(&mut mme, "001010000000001", &mut peers[0], HSS[0]).await;
    });
}
