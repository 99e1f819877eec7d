//! Who gets in: clients behind a front end, several listeners of one name, peers that leave something out; and what the
//! operator sees of those that do not get in.

use std::net::SocketAddr;

use diameter::proto::known::{self, command};
use diameter::proto::{CommandFlags, ResultCode};
use dsr::config::{DynamicPeers, Listener, Peer as PeerConfig};
use dsr::{Config, Event, Running};
use testpeer::diameter::Peer;

use crate::support::{
    APPLICATIONS, DSR, MME, REALM, answered, client, config, counted, one_list, run, ulr, until, world,
};

/// The header by which a front end announces a client at this address of IPv4 (PROXY protocol, version 2).
fn announcement(client: [u8; 4]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    header.extend(client);
    header.extend([127, 0, 0, 1, 0x30, 0x39, 0x0f, 0x1c]);
    header
}

/// A router that admits 192.0.2.0/24 behind front ends at 127.0.0.1.
fn behind_front_end() -> Running {
    let base = config();
    let mut local = base.local_nodes[0].clone();
    local.front_ends = vec!["127.0.0.1/32".parse().unwrap()];
    dsr::start(Config {
        local_nodes: vec![local],
        dynamic_peers: vec![DynamicPeers {
            networks: vec!["192.0.2.0/24".parse().unwrap()],
            ..DynamicPeers::default()
        }],
        ..base
    })
    .unwrap()
}

async fn announced(dsr: &Running, client: [u8; 4]) -> Peer {
    let mut peer = Peer::connect(dsr.addresses()[0]).await;
    peer.send(&announcement(client)).await;
    peer
}

fn shown(dsr: &Running, line: &str) -> bool {
    let page = dsr.handle().registry().render();
    page.lines()
        .any(|one| one.strip_suffix(".0").unwrap_or(one) == line)
}

#[test]
fn silent_clients_behind_a_front_end_keep_no_others_out() {
    run(async {
        let dsr = behind_front_end();
        let mut silent = Vec::new();
        for _ in 0..205 {
            silent.push(announced(&dsr, [192, 0, 2, 66]).await);
        }
        // Of the silent address 32 are admitted; the others end at once.
        counted(&dsr, Event::ConnectionRefused, 173).await;
        for n in 1..=26 {
            let mut peer = announced(&dsr, [192, 0, 2, n]).await;
            let cea = peer.capabilities(&format!("mme{n}.example"), APPLICATIONS).await;
            // The address that the client has connected to.
            let address = cea.get(known::HOST_IP_ADDRESS).unwrap().unwrap();
            assert_eq!(format!("{address:?}"), "Ip(127.0.0.1)");
            silent.push(peer);
        }
        until(|| {
            dsr.peers()
                .iter()
                .any(|row| row.address.starts_with("192.0.2.7:"))
        })
        .await;
    });
}

#[test]
fn rules_by_address_count_for_the_client_and_a_header_is_required() {
    run(async {
        let dsr = behind_front_end();
        let mut outside = announced(&dsr, [198, 51, 100, 1]).await;
        outside.send_cer(MME, APPLICATIONS).await;
        outside
            .expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::UNKNOWN_PEER)
            .await;
        let mut bare = Peer::connect(dsr.addresses()[0]).await;
        bare.send_cer(MME, APPLICATIONS).await;
        bare.expect_close().await;
        // A check of the front end counts as none.
        drop(Peer::connect(dsr.addresses()[0]).await);
        let line = "signalbox_dsr_connection_incidents_total{reason=\"proxyHeader\"} 1";
        until(|| shown(&dsr, line)).await;
        // Elsewhere a header is not Diameter.
        let open = dsr::start(config()).unwrap();
        let mut liar = announced(&open, [192, 0, 2, 1]).await;
        liar.expect_close().await;
    });
}

#[test]
fn one_name_has_several_listeners() {
    run(async {
        let mut base = config();
        let further = Listener {
            listen: "127.0.0.1:0".parse::<SocketAddr>().unwrap().into(),
            ..Listener::default()
        };
        base.local_nodes[0].listen_also = vec![further];
        let (dsr, _servers, mut peers) = world(base, ["hss.example"], &one_list(&["hss.example"])).await;
        let [first, second] = dsr.addresses() else {
            panic!("{:?}", dsr.addresses())
        };
        for (address, host) in [(first, "mme1.example"), (second, "mme2.example")] {
            let mut mme = Peer::connect(*address).await;
            let cea = mme.capabilities(host, APPLICATIONS).await;
            assert_eq!(cea.require(known::ORIGIN_HOST).unwrap(), DSR);
            mme.send(ulr("1").as_bytes()).await;
            answered(&mut mme, &mut peers[0]).await;
        }
        let wrong = "localNodes: [{host: a.example, realm: example, inbandSecurity: true, listenAlso: [{listen: []}]}]";
        let report = settings::from_str::<Config>(wrong, "test")
            .unwrap_err()
            .to_string();
        for part in ["needs keys", "listenAlso[0].listen", "is empty"] {
            assert!(report.contains(part), "{part}: {report}");
        }
    });
}

/// Kamailio sends such a CER now and then.
#[test]
fn a_cer_without_an_address_is_counted_and_admitted_unless_the_node_is_strict() {
    run(async {
        let cer = format!(
            "CER {{ Origin-Host = \"{MME}\" Origin-Realm = \"{REALM}\" Vendor-Id = 1 Product-Name = \"x\" \
             Auth-Application-Id = 16777251 }}"
        );
        for (strict, result) in [(false, ResultCode::SUCCESS), (true, ResultCode::MISSING_AVP)] {
            let mut base = config();
            base.local_nodes[0].strict = strict;
            let dsr = dsr::start(base).unwrap();
            let mut peer = Peer::connect(dsr.addresses()[0]).await;
            peer.send_text(&cer).await;
            peer.expect_result(command::CAPABILITIES_EXCHANGE, result).await;
            assert_eq!(dsr.count(Event::CapabilitiesIncomplete), u64::from(!strict));
        }
    });
}

/// go-diameter and jDiameter leave the P flag out unless an application sets it.
#[test]
fn requests_without_the_p_flag_are_relayed_for_peers_that_may() {
    run(async {
        for lenient in [false, true] {
            let mut base = config();
            base.dynamic_peers[0].relay_without_p_flag = lenient;
            let (dsr, _servers, mut peers) = world(base, ["hss.example"], &one_list(&["hss.example"])).await;
            let mut mme = client(&dsr, MME).await;
            let mut request = ulr("1");
            request.set_flags(CommandFlags::REQUEST);
            mme.send(request.as_bytes()).await;
            if !lenient {
                mme.expect_result(command::UPDATE_LOCATION, ResultCode::INVALID_HDR_BITS)
                    .await;
                continue;
            }
            let relayed = answered(&mut mme, &mut peers[0]).await;
            assert!(
                !relayed.flags().contains(CommandFlags::PROXIABLE),
                "it stays as it was"
            );
        }
    });
}

fn alarm(dsr: &Running, number: u32, instance: &str) -> Option<String> {
    let active = dsr.handle().alarms().active();
    let fits = active.into_iter().filter(|alarm| alarm.number == number);
    let mut fits = fits.filter(|alarm| alarm.instance.contains(instance));
    fits.next().map(|alarm| alarm.detail)
}

#[test]
fn refused_connections_leave_a_counter_by_reason_and_an_alarm() {
    run(async {
        let mut base = config();
        base.dynamic_peers[0].realms = vec![REALM.to_owned()];
        let dsr = dsr::start(base).unwrap();
        let at = dsr.addresses()[0];
        let _connected = Peer::admitted(at, MME, REALM, APPLICATIONS).await;
        Peer::refused(at, DSR, REALM, APPLICATIONS, ResultCode::UNKNOWN_PEER).await;
        Peer::refused(
            at,
            "other.example",
            "elsewhere",
            APPLICATIONS,
            ResultCode::UNKNOWN_PEER,
        )
        .await;
        Peer::refused(at, "idle.example", REALM, &[], ResultCode::NO_COMMON_APPLICATION).await;
        let mut http = Peer::connect(at).await;
        http.send(b"GET / HTTP/1.1\r\nHost: dsr\r\n\r\n").await;
        http.expect_close().await;
        for reason in ["ownName", "unknownPeer", "noCommonApplication", "http"] {
            let line = format!("signalbox_dsr_connection_incidents_total{{reason=\"{reason}\"}} 1");
            until(|| shown(&dsr, &line)).await;
        }
        until(|| alarm(&dsr, 10518, "other.example from 127.0.0.1").is_some()).await;
        let detail = alarm(&dsr, 10518, &format!("{DSR} from 127.0.0.1")).unwrap();
        assert!(detail.contains("our own name"), "{detail}");
    });
}

#[test]
fn a_second_element_under_one_name_does_not_go_unnoticed() {
    run(async {
        let mut base = config();
        base.dynamic_peers[0].timers.duplicate = dsr::config::DuplicatePolicy::Reject;
        let dsr = dsr::start(base).unwrap();
        let _first = client(&dsr, MME).await;
        let at = dsr.addresses()[0];
        Peer::refused(at, MME, REALM, APPLICATIONS, ResultCode::UNABLE_TO_COMPLY).await;
        let line = "signalbox_dsr_connection_incidents_total{reason=\"duplicate\"} 1";
        until(|| shown(&dsr, line)).await;
        until(|| alarm(&dsr, 10518, MME).is_some_and(|detail| detail.contains("connected already"))).await;
    });
}

#[test]
fn a_peer_that_is_down_has_a_reason_in_words() {
    run(async {
        let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = nowhere.local_addr().unwrap();
        let mut base = config();
        base.peers = vec![PeerConfig {
            host: "hss.example".to_owned(),
            addresses: vec![address],
            timers: dsr::config::Timers {
                reconnect_min: settings::Period::from_millis(20),
                reconnect_max: settings::Period::from_millis(50),
                ..dsr::config::Timers::default()
            },
            ..PeerConfig::default()
        }];
        drop(nowhere);
        let dsr = dsr::start(base).unwrap();
        let row = || dsr.peers().into_iter().find(|row| row.host == "hss.example");
        until(|| row().is_some_and(|row| row.attempts > 1)).await;
        let down = row().unwrap();
        assert_eq!(down.last_error, "connection refused");
        assert!(down.down_since.starts_with("20"), "{}", down.down_since);
        until(|| {
            alarm(&dsr, 22051, "hss.example").is_some_and(|detail| detail.ends_with(": connection refused"))
        })
        .await;
        // It listens, and refuses the router.
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let mut hss = Peer::accept(&listener).await;
        let cer = hss.expect(command::CAPABILITIES_EXCHANGE).await;
        hss.send_text(&format!(
            "CEA hbh={} e2e={} {{ Result-Code = 3010 Origin-Host = \"hss.example\" Origin-Realm = \"example\" \
             Host-IP-Address = 127.0.0.1 Vendor-Id = 1 Product-Name = \"x\" Error-Message = \"not in my list\" }}",
            cer.hop_by_hop(),
            cer.end_to_end()
        ))
        .await;
        until(|| row().is_some_and(|row| row.last_error.contains("not in my list"))).await;
        assert!(
            row().unwrap().last_error.contains("3010"),
            "{}",
            row().unwrap().last_error
        );
    });
}
