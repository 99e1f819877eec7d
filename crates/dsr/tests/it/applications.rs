//! Applications inside the router, redirects, copies.

use std::fmt::Write as _;
use std::io::Write as _;

use diameter::proto::known::{self, command};
use diameter::proto::{CommandFlags, MessageMut, ResultCode};
use dsr::Event;

use crate::eir::is_answered;
use crate::support::{
    MME, answered, client, config, counted, is_led, one_list, read, run, ulr, ulr_with, until, world,
};

const HSS: [&str; 2] = ["hss1.example", "hss2.example"];

/// Requests that met address resolution, and those for which it found a destination.
fn resolutions(dsr: &dsr::Running) -> [u64; 2] {
    use dsr_rbar::Event::{Resolved, ResolvedTo};
    [Resolved, ResolvedTo].map(|event| dsr.count_of::<dsr_rbar::Rbar>(event))
}

fn rbar(file: &str) -> String {
    format!(
        "applications:
  - name: resolve
    rbar:
      lookups: [{{applications: [16777251], identities: [imsi, msisdn]}}]
      destinations:
        - {{name: one, host: hss1.example}}
        - {{name: two, host: hss2.example, realm: two.example}}
      ranges:
        - {{identity: imsi, start: '00101', end: '00101', destination: one}}
      file: {file}
      onInvalidIdentity: {{answer: {{resultCode: 5001, message: who}}}}
      onNoMatch: {{destination: two}}
routing:
  applicationRouteTables:
    - name: default
      rules:
        - {{when: {{commands: [316]}}, action: {{application: resolve}}}}
        - {{when: {{commands: [321]}}, action: abandon}}
"
    )
}

#[test]
fn ranges_decide_and_are_read_again_when_their_file_changes() {
    run(async {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "imsi,001010000000000,001010000000099,two").unwrap();
        let path = file.path().display().to_string();
        let (dsr, _servers, mut peers) = world(read(config(), &rbar(&path)), HSS, "").await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("001010000000100").as_bytes()).await;
        let request = answered(&mut mme, &mut peers[0]).await;
        assert_eq!(request.require(known::DESTINATION_HOST).unwrap(), HSS[0]);
        assert_eq!(request.require(known::DESTINATION_REALM).unwrap(), "epc.example");
        assert_eq!(request.require(known::ROUTE_RECORD).unwrap(), MME);
        // The longer range, and what no range holds.
        for user in ["001010000000001", "999990000000001"] {
            mme.send(ulr(user).as_bytes()).await;
            let request = answered(&mut mme, &mut peers[1]).await;
            assert_eq!(request.require(known::DESTINATION_HOST).unwrap(), HSS[1]);
            assert_eq!(request.require(known::DESTINATION_REALM).unwrap(), "two.example");
        }
        mme.send(ulr("unknown").as_bytes()).await;
        let answer = mme
            .expect_result(command::UPDATE_LOCATION, ResultCode(5001))
            .await;
        assert_eq!(answer.require(known::ERROR_MESSAGE).unwrap(), "who");
        assert_eq!(resolutions(&dsr), [4, 3]);

        writeln!(file, "imsi,001020000000000,001020000000099,one").unwrap();
        until(|| dsr.snapshot().version > 1).await;
        loop {
            mme.send(ulr("001020000000001").as_bytes()).await;
            let (first, second) = peers.split_at_mut(1);
            let arrived = tokio::select! {
                request = first[0].expect(command::UPDATE_LOCATION) => {
                    first[0].answer(&request, ResultCode::SUCCESS).await;
                    true
                }
                request = second[0].expect(command::UPDATE_LOCATION) => {
                    second[0].answer(&request, ResultCode::SUCCESS).await;
                    false
                }
            };
            mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                .await;
            if arrived {
                break;
            }
        }
        // A file with a mistake changes nothing.
        writeln!(file, "imsi,00102,").unwrap();
        mme.send(ulr("001020000000001").as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
        let broken = dsr.snapshot().config.as_ref().clone();
        assert!(dsr.reload(&broken).unwrap_err().contains("line 3"));
    });
}

#[test]
fn address_resolution_answers_with_experimental_results_too() {
    run(async {
        let file = tempfile::NamedTempFile::new().unwrap();
        let rules = rbar(&file.path().display().to_string()).replace(
            "onNoMatch: {destination: two}",
            "onNoMatch: {answer: {resultCode: 5001, vendorId: 10415, message: unknown subscriber}}",
        );
        let (dsr, _servers, _peers) = world(read(config(), &rules), HSS, "").await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("999990000000001").as_bytes()).await;
        let answer = mme.expect(command::UPDATE_LOCATION).await;
        let routing = diameter::proto::Routing::scan(&answer, b"").unwrap();
        assert_eq!(routing.experimental_result(), Some((10_415, 5001)));
        assert_eq!(routing.result_code, None);
    });
}

#[test]
fn ranges_are_changed_one_by_one_beside_the_traffic_and_are_kept() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (file, changes) = (
            folder.path().join("ranges.csv"),
            folder.path().join("changes.csv"),
        );
        std::fs::write(&file, "imsi,001010000000000,001010000000099,two\n").unwrap();
        let yaml = rbar(&format!(
            "{}\n      changes: {}\n      maxChanges: 8",
            file.display(),
            changes.display()
        ));
        let to = |dsr: &dsr::Running, subject: &str| dsr.look_up(subject)[0]["destination"].clone();
        {
            let (dsr, _servers, mut peers) = world(read(config(), &yaml), HSS, "").await;
            let (listener, address) = crate::support::admin();
            crate::support::serve(listener, &dsr);
            let mut mme = client(&dsr, MME).await;
            let path = |rest: &str| format!("/dsr/applications/resolve/ranges/{rest}");
            for (request, body, code) in [
                // A subscriber of a range of the file, of which the rest stays.
                (format!("PUT {}", path("imsi/001010000000007")), "one", "200"),
                (format!("PUT {}", path("imsi/00102?end=00103")), "one", "200"),
                (format!("PUT {}", path("imsi/00102?end=00103")), "two", "200"),
                (
                    format!("DELETE {}", path("imsi/001010000000000?end=001010000000099")),
                    "",
                    "409",
                ),
                (format!("DELETE {}", path("imsi/001010000000050")), "", "200"),
                (format!("PUT {}", path("impu/sip:Joe@ims.example")), "one", "200"),
                (
                    format!("PUT {}", path("ipv6Prefix/2001:db8::%2F32")),
                    "one",
                    "200",
                ),
                (format!("PUT {}", path("imsi/00103")), "one", "409"),
                (format!("PUT {}", path("imsi/00104")), "nowhere", "409"),
                (format!("PUT {}", path("imsi/x")), "one", "409"),
                (format!("PUT {}", path("imei/35")), "one", "409"),
                (format!("PUT {}", path("imsi/00104")), "", "409"),
                (
                    "POST /dsr/change-range/resolve:msisdn:49170..49171=one".to_owned(),
                    "",
                    "200",
                ),
                (
                    "POST /dsr/change-range/resolve:msisdn:49170..49171=".to_owned(),
                    "",
                    "200",
                ),
                (
                    "PUT /dsr/applications/nowhere/ranges/imsi/1".to_owned(),
                    "one",
                    "409",
                ),
            ] {
                is_answered(address, (&request, body), code).await;
            }
            for (user, server) in [
                ("001010000000007", 0),
                ("001010000000008", 1),
                ("001010000000050", 0),
            ] {
                is_led(&mut mme, user, &mut peers[server], HSS[server]).await;
            }
            let answer = crate::eir::admin(address, "GET /dsr/ranges/imsi:001020000000001", "").await;
            assert!(answer.contains("\"destination\":\"two\""), "{answer}");
        }
        // After a restart the changes are the same; one whose destination is gone is named.
        std::fs::write(&file, "imsi,001010000000000,001010000000099,one\n").unwrap();
        let (dsr, _servers, _peers) = world(read(config(), &yaml), HSS, "").await;
        for (subject, expected) in [
            ("imsi:001010000000008", "one"),
            ("imsi:001030000000001", "two"),
            ("imsi:001040000000001", ""),
            // The range of all others with these first digits.
            ("imsi:001010000000050", "one"),
            ("impu:sip:joe@ims.example", "one"),
            ("ipv6Prefix:2001:db8:7::1", "one"),
            ("msisdn:+491701234", ""),
        ] {
            assert_eq!(to(&dsr, subject), expected, "{subject}");
        }
        let rows = dsr.applications();
        assert_eq!(rows.iter().find(|row| row.table == "changes").unwrap().entries, 6);
        let without = yaml
            .replace("name: two,", "name: three,")
            .replace("onNoMatch: {destination: two}", "");
        let wrong = dsr.reload(&read(config(), &without)).unwrap_err();
        assert!(wrong.contains("`two` does not exist"), "{wrong}");
    });
}

/// A million ranges of a hundred subscribers each, dealt to two servers in turn, the first one first or second.
fn write_million(path: &std::path::Path, first: usize) {
    let mut text = String::with_capacity(40 << 20);
    for n in 0..1_000_000_usize {
        let (start, end) = (n * 100, n * 100 + 99);
        let name = ["one", "two"][(n + first) % 2];
        // Writing to a String cannot fail.
        let _ = writeln!(text, "imsi,00101{start:010},00101{end:010},{name}");
    }
    // As a whole or not at all, as an operator's tool would.
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(&beside, path).unwrap();
}

#[test]
fn a_million_ranges_are_replaced_beside_the_traffic() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ranges.csv");
        write_million(&path, 0);
        let (dsr, _servers, mut peers) =
            world(read(config(), &rbar(&path.display().to_string())), HSS, "").await;
        let mut mme = client(&dsr, MME).await;
        let (first, second) = peers.split_at_mut(1);
        // One request after the other all the time; the server that answered the subscriber of range `n`.
        let mut ask = async |n: usize| {
            mme.send(ulr(&format!("00101{:010}", n * 100 + 37)).as_bytes())
                .await;
            let at = tokio::select! {
                request = first[0].expect(command::UPDATE_LOCATION) => {
                    first[0].answer(&request, ResultCode::SUCCESS).await;
                    0
                }
                request = second[0].expect(command::UPDATE_LOCATION) => {
                    second[0].answer(&request, ResultCode::SUCCESS).await;
                    1
                }
            };
            mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                .await;
            at
        };
        for n in (0..1_000_000).step_by(9_973) {
            assert_eq!(ask(n).await, n % 2);
        }
        let written = std::thread::spawn(move || write_million(&path, 1));
        let (mut n, mut beside) = (0, 0);
        while dsr.snapshot().version == 1 {
            n = (n + 9_973) % 1_000_000;
            ask(n).await;
            beside += 1;
        }
        written.join().unwrap();
        assert!(beside > 0, "requests are served while the file is read");
        // Workers follow within a moment; then every range is the other server's.
        while ask(0).await == 0 {}
        for n in (0..1_000_000).step_by(9_973) {
            assert_eq!(ask(n).await, (n + 1) % 2);
        }
        let [all, found] = resolutions(&dsr);
        assert_eq!(all, found);
    });
}

#[test]
fn a_lost_destination_of_a_resolved_request_is_answered() {
    run(async {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        let (dsr, _servers, mut peers) = world(read(config(), &rbar(&path)), HSS, "").await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("001010000000100").as_bytes()).await;
        peers[0].expect(command::UPDATE_LOCATION).await;
        peers.remove(0).break_off();
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
    });
}

#[test]
fn redirects_are_followed_when_wanted() {
    run(async {
        let rules = format!("{}  followRedirects: true\n", one_list(&HSS[..1]));
        let (dsr, _servers, mut peers) = world(config(), HSS, &rules).await;
        let mut mme = client(&dsr, MME).await;
        let redirect = |hbh: u32, host: &str| {
            format!(
                "ULA app=16777251 flags=PE hbh={hbh} {{ Session-Id = \"x\" Result-Code = 3006 Redirect-Host = \
                 \"aaa://absent.example:3868\" Redirect-Host = \"aaa://{host}:3868;transport=tcp\" }}"
            )
        };
        mme.send(ulr("1").as_bytes()).await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        peers[0]
            .send_text(&redirect(request.hop_by_hop(), "HSS2.example"))
            .await;
        let request = answered(&mut mme, &mut peers[1]).await;
        assert!(!request.flags().contains(CommandFlags::RETRANSMITTED));
        assert_eq!(dsr.count(Event::Redirected), 1);
        // No such peer is connected: the client may have another route. Nor does a request go back to a hop that it has
        // passed (RFC 6733 §6.1.7).
        let passed = ulr_with("1", |b| {
            b.put(known::ROUTE_RECORD, HSS[1]);
        });
        for (request, host) in [(ulr("1"), "hss9.example"), (passed, HSS[1])] {
            mme.send(request.as_bytes()).await;
            let request = peers[0].expect(command::UPDATE_LOCATION).await;
            peers[0].send_text(&redirect(request.hop_by_hop(), host)).await;
            mme.expect_result(command::UPDATE_LOCATION, ResultCode::REDIRECT_INDICATION)
                .await;
        }
    });
}

#[test]
fn routes_of_redirect_indications_are_cached() {
    run(async {
        let rules = format!("{}  followRedirects: true\n", one_list(&HSS[..1]));
        let (dsr, _servers, mut peers) = world(config(), HSS, &rules).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("1").as_bytes()).await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        // REALM_AND_APPLICATION.
        let redirect = format!(
            "ULA app=16777251 flags=PE hbh={} {{ Session-Id = \"x\" Result-Code = 3006 Redirect-Host = \
             \"aaa://hss2.example:3868\" Redirect-Host-Usage = 3 Redirect-Max-Cache-Time = 60 }}",
            request.hop_by_hop()
        );
        peers[0].send_text(&redirect).await;
        answered(&mut mme, &mut peers[1]).await;
        for user in ["1", "2"] {
            mme.send(ulr(user).as_bytes()).await;
            answered(&mut mme, &mut peers[1]).await;
        }
        let counts = [Event::Redirected, Event::RedirectCached, Event::RedirectReused];
        assert_eq!(counts.map(|event| dsr.count(event)), [1, 1, 2]);
        // Another realm is not redirected.
        let other = format!(
            "ULR app=16777251 {{ Session-Id = \"y\" Origin-Host = \"{MME}\" Destination-Realm = \"other.example\" }}"
        );
        mme.send_text(&other).await;
        answered(&mut mme, &mut peers[0]).await;
    });
}

#[test]
fn a_copy_goes_to_its_list_and_its_answer_is_dropped() {
    run(async {
        let rules = one_list(&HSS).replace(
            "rules: [{action: {routeList: all}}]",
            "rules: [{action: {routeList: all}, copyTo: copies}]",
        );
        let rules = rules.replace(
            "  routeLists:\n",
            "  routeLists:\n    - {name: copies, groups: [hss2.example]}\n",
        );
        let (dsr, _servers, mut peers) = world(config(), HSS, &rules).await;
        let mut mme = client(&dsr, MME).await;
        let request = ulr_with("1", |b| {
            b.put(known::DRMP, 3);
        });
        mme.send(request.as_bytes()).await;
        let copy = peers[1].expect(command::UPDATE_LOCATION).await;
        assert_eq!(
            copy.as_bytes()[20..request.as_bytes().len()],
            request.as_bytes()[20..]
        );
        peers[1].answer(&copy, ResultCode::TOO_BUSY).await;
        counted(&dsr, Event::CopyAnswered, 1).await;
        answered(&mut mme, &mut peers[0]).await;
        // Request, copy, answer; the answer to the copy is not one.
        assert_eq!((dsr.count(Event::Message), dsr.count(Event::Copied)), (3, 1));
        // The loss of a copy affects no client.
        mme.send(request.as_bytes()).await;
        peers[1].expect(command::UPDATE_LOCATION).await;
        peers.remove(1).break_off();
        answered(&mut mme, &mut peers[0]).await;
    });
}

#[test]
fn a_copy_after_the_answer_has_it_and_depends_on_its_result() {
    run(async {
        let rules = one_list(&HSS).replace(
            "rules: [{action: {routeList: all}}]",
            "rules: [{action: {routeList: all}, copyTo: copies, copyAfter: {results: [2001], answerIn: '99999:7'}}]",
        );
        let rules = rules.replace(
            "  routeLists:\n",
            "  routeLists:\n    - {name: copies, groups: [hss2.example]}\n",
        );
        let (dsr, _servers, mut peers) = world(config(), HSS, &rules).await;
        let mut mme = client(&dsr, MME).await;
        // Another result first: no copy of it comes before that of the second request.
        mme.send(ulr("1").as_bytes()).await;
        let refused = peers[0].expect(command::UPDATE_LOCATION).await;
        peers[0].answer(&refused, ResultCode::UNABLE_TO_COMPLY).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_COMPLY)
            .await;
        mme.send(ulr("2").as_bytes()).await;
        let request = answered(&mut mme, &mut peers[0]).await;
        let copy = peers[1].expect(command::UPDATE_LOCATION).await;
        assert_eq!(copy.require(known::USER_NAME).unwrap(), "2");
        assert_eq!(copy.as_bytes().len(), copy.header().length as usize);
        let avps: Vec<_> = copy.avps().flatten().collect();
        let of_request: Vec<_> = request.avps().flatten().map(|avp| avp.data.to_vec()).collect();
        let (last, rest) = avps.split_last().unwrap();
        assert!(
            rest.iter()
                .map(|avp| avp.data)
                .eq(of_request.iter().map(Vec::as_slice))
        );
        assert_eq!((last.vendor, last.code), (99999, 7));
        let answer = MessageMut::parse(bytes::BytesMut::from(last.data)).unwrap();
        assert!(!answer.is_request() && answer.command() == command::UPDATE_LOCATION);
        assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 2001);
        assert_eq!(dsr.count(Event::Copied), 1);
        peers[1].answer(&copy, ResultCode::SUCCESS).await;
        counted(&dsr, Event::CopyAnswered, 1).await;
    });
}
