//! freeDiameter as relays, as AF and as PCF.

use super::*;

#[test]
fn a_free_diameter_relay_on_each_side() {
    local(async {
        // AF -> freeDiameter -> BSF -> freeDiameter -> PCF: it routes by realm and by Destination-Host.
        let (pcf, pcf_address) = peer("pcf.example");
        let beyond = Setup {
            identity: "fd2.example",
            realm: "fd2.example",
            port: 0,
            peers: &[("pcf.example", pcf_address)],
        };
        let Some(second) = FreeDiameter::start(beyond).await else {
            return;
        };
        let second_address = second.address();
        let bsf = start(move |config| {
            config.rx.host = "bsf.example".to_owned();
            config.rx.relays = vec!["fd2.example".to_owned()];
            config.rx.peers = vec![RxPeer {
                host: "fd2.example".to_owned(),
                addresses: vec![second_address],
                transport: RxTransport::Tcp,
                names: Vec::new(),
            }];
        });
        let own = bsf.running.as_ref().unwrap().diameter_addresses()[0];
        let before = Setup {
            identity: "fd1.example",
            realm: "fd1.example",
            port: 0,
            peers: &[("bsf.example", own)],
        };
        let Some(first) = FreeDiameter::start(before).await else {
            return;
        };
        pcf.available("fd2.example").await;
        bsf.path(
            &bsf.post("pcfBindings", &binding(&json!({"pcfDiamHost": "pcf.example"})))
                .await,
        );
        let (af, _) = peer(AF);
        af.node()
            .add_peer(PeerConfig::connect("fd1.example", [first.address()]))
            .unwrap();
        af.available("fd1.example").await;
        let mut good = 0;
        for round in 0..200 {
            // Until every connection is up, an agent on the way says that it cannot deliver.
            let answer = ask(&af, "fd1.example", aar(&format!("af;2;{round}"), [10, 0, 0, 1])).await;
            good += usize::from(result(&answer) == 2001);
            if good < 5 {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
            // The PCF asks the AF over the same way back, by name and, for the BSF, by session.
            let session = format!("af;2;{round}");
            for code in [command::RE_AUTH, command::ABORT_SESSION] {
                let mut request = begun(code, &session, "pcf.example");
                request.put(known::DESTINATION_HOST, AF);
                let answer = ask(&pcf, "fd2.example", request).await;
                assert_eq!(
                    (result(&answer), answer.require(known::ORIGIN_HOST).unwrap()),
                    (2001, AF)
                );
            }
            let mut end = begun(command::SESSION_TERMINATION, &session, AF);
            end.put(known::DESTINATION_HOST, "pcf.example");
            let answer = ask(&af, "fd1.example", end).await;
            assert_eq!(
                (result(&answer), answer.require(known::ORIGIN_HOST).unwrap()),
                (2001, "pcf.example")
            );
            let at_af: Vec<u32> = af.service().seen.borrow().iter().map(|seen| seen.0).collect();
            assert_eq!(at_af, [258, 274]);
            return;
        }
        panic!("{good} of 5 answers; {} {}", first.log(), second.log());
    });
}

#[test]
fn between_a_free_diameter_as_af_and_one_as_pcf() {
    local(async {
        let own = free_ports::port().unwrap();
        let bsf_address: SocketAddr = ([127, 0, 0, 1], own).into();
        // freeDiameter sends by realm to peers of that realm.
        let setup = |identity| Setup {
            identity,
            realm: "example.org",
            port: 0,
            peers: &[],
        };
        let Some(pcf) = FreeDiameter::start_rx(setup("pcf.example"), "pcf").await else {
            return;
        };
        let pcf_address = pcf.address();
        let bsf = start(|config| {
            config.rx.host = "bsf.example".to_owned();
            config.rx.listen = settings::Listen(vec![bsf_address]);
            config.rx.peers = vec![RxPeer {
                host: "pcf.example".to_owned(),
                addresses: vec![pcf_address],
                transport: RxTransport::Tcp,
                names: Vec::new(),
            }];
        });
        bsf.path(
            &bsf.post("pcfBindings", &binding(&json!({"pcfDiamHost": "pcf.example"})))
                .await,
        );
        for _ in 0..400 {
            if pcf.log().contains("STATE_OPEN") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let peers = [("bsf.example", bsf_address)];
        let af = FreeDiameter::start_rx(
            Setup {
                peers: &peers,
                ..setup("af.example")
            },
            "af bsf.example",
        );
        let af = af.await.unwrap();
        for _ in 0..400 {
            if af.log().contains("STA ") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let said = |log: &str, lines: &[&str]| {
            for line in lines {
                assert!(
                    log.lines().any(|one| one == *line),
                    "{line} is missing:\n{}\n{}",
                    af.log(),
                    pcf.log()
                );
            }
        };
        said(
            &af.log(),
            &[
                "AAA 2001 pcf.example",
                "RAR 0 pcf.example",
                "STA 2001 pcf.example",
            ],
        );
        said(
            &pcf.log(),
            &["AAR 0 af.example", "RAA 2001 af.example", "STR 0 af.example"],
        );
    });
}
