//! Sessions: their paths, their ends, their bounds.

use super::*;

#[test]
fn a_session_stays_on_one_path() {
    local(async {
        let (pcf, address) = peer(PCF);
        let bsf = start(|config| {
            config.rx.peers = vec![RxPeer {
                host: PCF.to_owned(),
                addresses: vec![address],
                transport: RxTransport::Tcp,
                names: Vec::new(),
            }];
        });
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        pcf.available(BSF).await;
        bsf.path(
            &bsf.post("pcfBindings", &binding(&json!({"ipv6Prefix": "2001:db8::/64"})))
                .await,
        );

        let answer = ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await;
        assert_eq!(
            (result(&answer), answer.require(known::ORIGIN_HOST).unwrap()),
            (2001, PCF)
        );
        let mut v6 = begun(command::AA, "af;1;2", AF);
        v6.put(
            known::FRAMED_IPV6_PREFIX,
            &[0, 128, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9],
        );
        assert_eq!(result(&ask(&af, BSF, v6).await), 2001);
        // Later requests of the session, without an address and without a name.
        assert_eq!(
            result(&ask(&af, BSF, begun(command::AA, "af;1;1", AF)).await),
            2001
        );
        // What the PCF asks of the AF, by name and by session.
        let mut rar = begun(command::RE_AUTH, "af;1;1", PCF);
        rar.put(known::DESTINATION_HOST, AF);
        assert_eq!(result(&ask(&pcf, BSF, rar).await), 2001);
        assert_eq!(
            result(&ask(&pcf, BSF, begun(command::ABORT_SESSION, "af;1;1", PCF)).await),
            2001
        );
        assert_eq!(
            result(&ask(&af, BSF, begun(command::SESSION_TERMINATION, "af;1;1", AF)).await),
            2001
        );
        // It has ended: nothing is known of it any more.
        assert_eq!(
            result(&ask(&af, BSF, begun(command::SESSION_TERMINATION, "af;1;1", AF)).await),
            5002
        );
        let at_pcf: Vec<u32> = pcf.service().seen.borrow().iter().map(|seen| seen.0).collect();
        assert_eq!(at_pcf, [265, 265, 265, 275]);
        assert!(
            pcf.service()
                .seen
                .borrow()
                .iter()
                .all(|seen| seen.1.as_deref() == Some(PCF))
        );
        let at_af: Vec<u32> = af.service().seen.borrow().iter().map(|seen| seen.0).collect();
        assert_eq!(at_af, [258, 274]);
    });
}

#[test]
fn no_binding_no_peer_and_nonsense_are_told_by_result_codes() {
    local(async {
        let bsf = start(|_| {});
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        assert_eq!(result(&ask(&af, BSF, aar("af;1;1", [10, 0, 0, 9])).await), 3002);
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        assert_eq!(result(&ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await), 3002);
        let mut short = begun(command::AA, "af;1;2", AF);
        short.put(known::FRAMED_IP_ADDRESS, &[10, 0]);
        assert_eq!(result(&ask(&af, BSF, short).await), 5004);
        assert_eq!(
            result(&ask(&af, BSF, begun(command::AA, "af;1;3", AF)).await),
            5005
        );
        let mut looped = aar("af;1;4", [10, 0, 0, 1]);
        looped.put(known::ROUTE_RECORD, BSF);
        assert_eq!(result(&ask(&af, BSF, looped).await), 3005);
        assert_eq!(
            result(&ask(&af, BSF, begun(command::ACCOUNTING, "af;1;5", AF)).await),
            3001
        );
        bsf.running
            .as_ref()
            .unwrap()
            .set_state(bsf::State::Partial)
            .await
            .unwrap();
        assert_eq!(result(&ask(&af, BSF, aar("af;1;6", [10, 0, 0, 1])).await), 3004);
        assert_eq!(bsf.running.as_ref().unwrap().count(Event::RxNoBinding), 1);
    });
}

#[test]
fn as_a_redirect_agent() {
    local(async {
        let bsf = start(|config| {
            config.rx.mode = RxMode::Redirect;
            config.rx.no_binding = NoBinding::IpCanSessionNotAvailable;
        });
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let answer = ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await;
        assert_eq!(result(&answer), 3006);
        assert!(format!("{:?}", answer.require(known::REDIRECT_HOST).unwrap()).contains(PCF));
        let answer = ask(&af, BSF, aar("af;1;2", [10, 0, 0, 2])).await;
        let group = answer.avps().find(known::EXPERIMENTAL_RESULT).unwrap().unwrap();
        assert_eq!(
            group.group().require(known::EXPERIMENTAL_RESULT_CODE).unwrap(),
            5065
        );
    });
}

#[test]
fn a_path_outlives_the_bsf() {
    local(async {
        let (pcf, address) = peer(PCF);
        let peers = vec![RxPeer {
            host: PCF.to_owned(),
            addresses: vec![address],
            transport: RxTransport::Tcp,
            names: Vec::new(),
        }];
        let mut bsf = start(|config| config.rx.peers.clone_from(&peers));
        {
            let (af, _) = peer(AF);
            connect(&af, &bsf).await;
            pcf.available(BSF).await;
            bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
            for session in ["af;1;1", "af;1;2", "af;1;3"] {
                assert_eq!(result(&ask(&af, BSF, aar(session, [10, 0, 0, 1])).await), 2001);
            }
            assert_eq!(
                result(&ask(&af, BSF, begun(command::SESSION_TERMINATION, "af;1;1", AF)).await),
                2001
            );
        }
        bsf.stop();
        let mut config = crate::support::config(bsf.directory.path());
        config.rx.peers = peers;
        bsf.running = Some(bsf::start(config).unwrap());
        // The binding may be gone by then: what counts is the path.
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        pcf.available(BSF).await;
        let str = |session| begun(command::SESSION_TERMINATION, session, AF);
        assert_eq!(
            result(&ask(&af, BSF, str("af;1;1")).await),
            5002,
            "it has ended before"
        );
        assert_eq!(
            result(&ask(&pcf, BSF, begun(command::RE_AUTH, "af;1;2", PCF)).await),
            2001
        );
        assert_eq!(result(&ask(&af, BSF, str("af;1;2")).await), 2001);
        assert_eq!(result(&ask(&af, BSF, str("af;1;2")).await), 5002);
        // Of an update neither the address nor the PCF's name is needed.
        assert_eq!(
            result(&ask(&af, BSF, begun(command::AA, "af;1;3", AF)).await),
            2001
        );
        let running = bsf.running.as_ref().unwrap();
        assert_eq!(running.count(bsf::Event::RxSessionRecalled), 2);
        while running.repository().paths_held.get() != 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

/// P-CSCF restoration (TS 29.214 §4.4.7): an AAR without a session, for which no STR comes.
#[test]
fn a_request_without_a_session_leaves_no_path() {
    const NO_STATE_MAINTAINED: i32 = 1;
    local(async {
        let (bsf, pcf, af) = connected().await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let mut restoration = aar("af;1;1", [10, 0, 0, 1]);
        restoration.put(known::AUTH_SESSION_STATE, NO_STATE_MAINTAINED);
        assert_eq!(result(&ask(&af, BSF, restoration).await), 2001);
        assert_eq!(pcf.service().seen.borrow().len(), 1);
        let held = bsf.running.as_ref().unwrap().repository().paths_held.get();
        assert_eq!(held, 0, "paths in the store");
        let end = begun(command::SESSION_TERMINATION, "af;1;1", AF);
        assert_eq!(result(&ask(&af, BSF, end).await), 5002);
    });
}

/// RFC 6733 §6.1.4 and §6.5: who names the agent does not name the PCF.
#[test]
fn a_request_that_names_the_bsf_reaches_the_pcf_by_its_own_name() {
    local(async {
        let (bsf, pcf, af) = connected().await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let mut first = aar("af;1;1", [10, 0, 0, 1]);
        first.put(known::DESTINATION_HOST, BSF);
        assert_eq!(result(&ask(&af, BSF, first).await), 2001);
        let mut end = begun(command::SESSION_TERMINATION, "af;1;1", AF);
        end.put(known::DESTINATION_HOST, BSF);
        assert_eq!(result(&ask(&af, BSF, end).await), 2001);
        let seen = pcf.service().seen.borrow();
        assert_eq!(seen.len(), 2);
        assert!(seen.iter().all(|seen| seen.1.as_deref() == Some(PCF)), "{seen:?}");
    });
}

/// A session that has not begun is not bound to the PCF that could not be reached.
#[test]
fn an_initial_request_that_failed_is_sent_where_the_binding_points_next() {
    local(async {
        let (bsf, _pcf, af) = connected().await;
        let gone = json!({"pcfDiamHost": "pcf9.example.org"});
        bsf.path(&bsf.post("pcfBindings", &binding(&gone)).await);
        assert_eq!(result(&ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await), 3002);
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        assert_eq!(result(&ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await), 2001);
    });
}

/// Rx-Request-Type is not needed to know that a session exists.
#[test]
fn an_update_with_an_address_stays_at_its_pcf_after_a_restart() {
    local(async {
        let ((pcf, address), (other, elsewhere)) = (peer(PCF), peer("pcf2.example.org"));
        let peers = vec![rx_peer(PCF, address), rx_peer("pcf2.example.org", elsewhere)];
        let mut bsf = start(|config| config.rx.peers.clone_from(&peers));
        {
            let (af, _) = peer(AF);
            connect(&af, &bsf).await;
            pcf.available(BSF).await;
            bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
            assert_eq!(result(&ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await), 2001);
            let moved = json!({"pcfDiamHost": "pcf2.example.org"});
            bsf.path(&bsf.post("pcfBindings", &binding(&moved)).await);
        }
        bsf.stop();
        let mut config = crate::support::config(bsf.directory.path());
        config.rx.peers = peers;
        bsf.running = Some(bsf::start(config).unwrap());
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        pcf.available(BSF).await;
        other.available(BSF).await;
        let answer = ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await;
        assert_eq!(
            (result(&answer), answer.require(known::ORIGIN_HOST).unwrap()),
            (2001, PCF)
        );
    });
}

#[test]
fn paths_in_the_store_are_bounded() {
    local(async {
        let (pcf, address) = peer(PCF);
        let bsf = start(|config| {
            config.rx.max_sessions = 8;
            config.rx.peers = vec![RxPeer {
                host: PCF.to_owned(),
                addresses: vec![address],
                transport: RxTransport::Tcp,
                names: Vec::new(),
            }];
        });
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        pcf.available(BSF).await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        for session in 0..50 {
            let answer = ask(&af, BSF, aar(&format!("af;1;{session}"), [10, 0, 0, 1])).await;
            assert_eq!(result(&answer), 2001);
        }
        let running = bsf.running.as_ref().unwrap();
        let held = running.repository().paths_held.clone();
        assert!(held.get() <= 9, "{}", held.get());
        while held.get() > 8 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(running.count(bsf::Event::RxSessionNotKept) >= 41);
    });
}

#[test]
fn a_path_that_is_not_ended_expires_with_its_age() {
    local(async {
        let (pcf, address) = peer(PCF);
        let bsf = start(|config| {
            config.rx.session_lifetime = settings::Period::from_millis(50);
            config.rx.peers = vec![RxPeer {
                host: PCF.to_owned(),
                addresses: vec![address],
                transport: RxTransport::Tcp,
                names: Vec::new(),
            }];
        });
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        pcf.available(BSF).await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        assert_eq!(result(&ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await), 2001);
        let running = bsf.running.as_ref().unwrap();
        while running.count(bsf::Event::RxSessionExpired) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(running.repository().paths_held.get(), 0);
        // In memory it lives on.
        assert_eq!(
            result(&ask(&af, BSF, begun(command::AA, "af;1;1", AF)).await),
            2001
        );
    });
}

#[test]
fn on_several_workers() {
    local(async {
        let pcfs: Vec<_> = (0..6).map(|n| peer(&format!("pcf{n}.example"))).collect();
        let bsf = start(|config| {
            config.workers = 3;
            config.rx.peers = (pcfs.iter().enumerate())
                .map(|(n, (_, address))| RxPeer {
                    host: format!("pcf{n}.example"),
                    addresses: vec![*address],
                    transport: RxTransport::Tcp,
                    names: Vec::new(),
                })
                .collect();
        });
        for (pcf, _) in &pcfs {
            pcf.available(BSF).await;
        }
        for n in 0..6 {
            let one = binding(
                &json!({"ipv4Addr": format!("10.0.0.{n}"), "pcfDiamHost": format!("PCF{n}.example")}),
            );
            bsf.path(&bsf.post("pcfBindings", &one).await);
        }
        for a in 0..4 {
            let name = format!("af{a}.example");
            let (af, _) = peer(&name);
            connect(&af, &bsf).await;
            for n in 0..6_u8 {
                let (session, host) = (format!("{name};{n}"), format!("pcf{n}.example"));
                let mut first = begun(command::AA, &session, &name);
                first.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, n]);
                let answer = ask(&af, BSF, first).await;
                assert_eq!(
                    (result(&answer), answer.require(known::ORIGIN_HOST).unwrap()),
                    (2001, host.as_str())
                );
                let pcf = &pcfs[usize::from(n)].0;
                let rar = begun(command::RE_AUTH, &session, &host);
                assert_eq!(result(&ask(pcf, BSF, rar).await), 2001);
                let end = begun(command::SESSION_TERMINATION, &session, &name);
                assert_eq!(result(&ask(&af, BSF, end).await), 2001);
                let again = begun(command::RE_AUTH, &session, &host);
                assert_eq!(result(&ask(pcf, BSF, again).await), 5002);
            }
            assert_eq!(af.service().seen.borrow().len(), 6);
        }
        let running = bsf.running.as_ref().unwrap();
        assert_eq!(running.count(bsf::Event::RxAnswerDropped), 0);
        assert_eq!(running.count(bsf::Event::RxForwarded), 4 * 6 * 3);
    });
}
