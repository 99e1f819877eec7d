//! Which session an AAR is about, where its address alone does not say it (TS 29.214 §4.4.1).

use bsf::config::{RxPeer, RxTransport};
use diameter::endpoint::Endpoint;
use diameter::proto::{AvpFlags, AvpKey, CommandFlags, MessageBuilder, known};
use diameter::{BoundListener, PeerConfig, Security, Transport};
use serde_json::json;
use testpeer::dns::NameServer;

use crate::rx::{AF, BSF, PCF, Peer, aar, ask, connect, peer, result};
use crate::support::{Bsf, binding, config, local, start};

const PCFS: [&str; 2] = ["pcf1.example.org", "pcf2.example.org"];

/// A BSF that is connected to two PCFs, and these.
async fn two_pcfs() -> (Bsf, Vec<Endpoint<Peer>>) {
    let (pcfs, addresses): (Vec<_>, Vec<_>) = PCFS.iter().map(|host| peer(host)).unzip();
    let bsf = start(|config| {
        config.rx.peers = PCFS
            .iter()
            .zip(addresses)
            .map(|(host, address)| RxPeer {
                host: (*host).to_owned(),
                addresses: vec![address],
                transport: RxTransport::Tcp,
                names: Vec::new(),
            })
            .collect();
    });
    for pcf in &pcfs {
        pcf.available(BSF).await;
    }
    (bsf, pcfs)
}

fn with_subscriber(mut message: MessageBuilder, kind: i32, identity: &str) -> MessageBuilder {
    message.group(known::SUBSCRIPTION_ID, |group| {
        group
            .put(known::SUBSCRIPTION_ID_TYPE, kind)
            .put(known::SUBSCRIPTION_ID_DATA, identity);
    });
    message
}

#[test]
fn the_subscriber_decides_between_sessions_with_one_address() {
    local(async {
        let (bsf, pcfs) = two_pcfs().await;
        for (number, host) in PCFS.iter().enumerate() {
            let one = binding(&json!({"supi": format!("imsi-00101000000000{number}"),
                "gpsi": format!("msisdn-1555000{number}"), "ipDomain": format!("domain{number}"),
                "pcfDiamHost": host, "pcfId": null}));
            bsf.path(&bsf.post("pcfBindings", &one).await);
        }
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        let origin =
            |answer: &diameter::proto::Message| answer.require(known::ORIGIN_HOST).unwrap().to_owned();
        let address = [10, 0, 0, 1];
        // Nothing decides.
        assert_eq!(result(&ask(&af, BSF, aar("af;1;1", address)).await), 3002);
        for (session, kind, identity, expected) in [
            ("af;1;2", 1, "001010000000000", PCFS[0]),
            ("af;1;3", 1, "001010000000001", PCFS[1]),
            ("af;1;4", 0, "15550001", PCFS[1]),
        ] {
            let answer = ask(&af, BSF, with_subscriber(aar(session, address), kind, identity)).await;
            assert_eq!(
                (result(&answer), origin(&answer).as_str()),
                (2001, expected),
                "{session}"
            );
        }
        // A subscriber who has none of them decides nothing.
        let stranger = with_subscriber(aar("af;1;5", address), 1, "001010000000009");
        assert_eq!(result(&ask(&af, BSF, stranger).await), 3002);
        drop(pcfs);
    });
}

#[test]
fn one_address_of_two_is_enough_where_the_binding_has_no_other() {
    local(async {
        let (bsf, pcfs) = two_pcfs().await;
        bsf.path(
            &bsf.post("pcfBindings", &binding(&json!({"pcfDiamHost": PCFS[0]})))
                .await,
        );
        let v6 = json!({"supi": "imsi-001010000000002", "ipv4Addr": null, "ipv6Prefix": "2001:db8:0:2::/64",
            "pcfDiamHost": PCFS[1], "pcfId": null});
        bsf.path(&bsf.post("pcfBindings", &binding(&v6)).await);
        let both = json!({"supi": "imsi-001010000000003", "ipv4Addr": "10.0.0.3", "ipv6Prefix": "2001:db8:0:3::/64",
            "pcfDiamHost": PCFS[1], "pcfId": null});
        bsf.path(&bsf.post("pcfBindings", &binding(&both)).await);
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        for (session, v4, v6, expected) in [
            ("af;2;1", 1, 9, Some(PCFS[0])),
            ("af;2;2", 9, 2, Some(PCFS[1])),
            ("af;2;3", 3, 3, Some(PCFS[1])),
            // The binding has another prefix than that.
            ("af;2;4", 3, 9, None),
            ("af;2;5", 9, 9, None),
        ] {
            let mut message = aar(session, [10, 0, 0, v4]);
            message.put(
                known::FRAMED_IPV6_PREFIX,
                &[0, 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0, v6],
            );
            let answer = ask(&af, BSF, message).await;
            match expected {
                None => assert_eq!(result(&answer), 3002, "{session}"),
                Some(pcf) => {
                    assert_eq!(
                        (result(&answer), answer.require(known::ORIGIN_HOST).unwrap()),
                        (2001, pcf),
                        "{session}"
                    );
                }
            }
        }
        drop(pcfs);
    });
}

#[test]
fn a_request_without_the_p_flag_is_not_passed_on() {
    local(async {
        let (bsf, pcfs) = two_pcfs().await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        let mut message = aar("af;3;1", [10, 0, 0, 1]);
        *message.flags_mut() = CommandFlags::REQUEST;
        assert_eq!(result(&ask(&af, BSF, message).await), 3008);
        assert_eq!(result(&ask(&af, BSF, aar("af;3;2", [10, 0, 0, 1])).await), 2001);
        assert_eq!(pcfs[0].service().seen.borrow().len(), 1);
    });
}

/// Where the kernel has no SCTP the BSF does not start as if it had; where it has, AFs and PCFs connect over it.
#[test]
fn over_sctp_where_the_kernel_has_it() {
    local(async {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(directory.path());
        config.rx.sctp_listen = settings::Listen(vec!["127.0.0.1:0".parse().unwrap()]);
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = match BoundListener::bind(any, Transport::Sctp) {
            Ok(listener) => listener,
            Err(_) => {
                let refused = bsf::start(config).unwrap_err().to_string();
                assert!(refused.contains("SCTP"), "{refused}");
                let _ran = testpeer::sctp::is_here("rx_targets::over_sctp_where_the_kernel_has_it");
                return;
            }
        };
        let (pcf, _) = peer(PCF);
        config.rx.peers = vec![RxPeer {
            host: PCF.to_owned(),
            addresses: vec![listener.address()],
            transport: RxTransport::Sctp,
            names: Vec::new(),
        }];
        pcf.node().listen(listener, Security::None).unwrap();
        let running = bsf::start(config).unwrap();
        pcf.available(BSF).await;
        let (af, _) = peer(AF);
        let there = PeerConfig {
            transport: Transport::Sctp,
            ..PeerConfig::connect(BSF, [running.diameter_addresses()[1]])
        };
        af.node().add_peer(there).unwrap();
        af.available(BSF).await;
        let mut named = aar("af;sctp;1", [10, 0, 0, 1]);
        named.put(known::DESTINATION_HOST, PCF);
        assert_eq!(result(&ask(&af, BSF, named).await), 2001);
        running.stop().unwrap();
    });
}

/// A PCF that the settings name by its realm: SRV records say where it listens (RFC 6733 §5.2), another host when it moves.
#[test]
fn a_pcf_is_found_by_the_srv_records_of_its_realm() {
    local(async {
        let names = NameServer::start().await.unwrap();
        let (pcf, address) = peer(PCF);
        let closed = free_ports::port().unwrap();
        let places = [
            (1, 1, closed, "pcf0.epc.test"),
            (2, 1, address.port(), "pcf1.epc.test"),
        ];
        names.services("_diameter._tcp.epc.test", 60, &places);
        for (_, _, _, host) in places {
            names.addresses(host, 60, &["127.0.0.1".parse().unwrap()]);
        }
        let bsf = start(|config| {
            config.dns.servers = vec![names.address];
            config.rx.peers = vec![RxPeer {
                host: PCF.to_owned(),
                addresses: Vec::new(),
                transport: RxTransport::Tcp,
                names: vec!["epc.test".to_owned()],
            }];
        });
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        pcf.available(BSF).await;
        let session = json!({"ipv4Addr": "10.0.0.1", "pcfDiamHost": PCF});
        bsf.path(&bsf.post("pcfBindings", &binding(&session)).await);
        assert_eq!(result(&ask(&af, BSF, aar("af;srv;1", [10, 0, 0, 1])).await), 2001);
    });
}

/// Overlapping private addresses are distinct by IP-Domain-Id, sessions of one address by the DNN in Called-Station-Id
/// (TS 29.214 §4.4.1).
#[test]
fn the_domain_and_the_dnn_decide_between_sessions_with_one_address() {
    local(async {
        let (bsf, _pcfs) = two_pcfs().await;
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        for (number, (domain, dnn, pcf)) in [
            ("corp-a", "internet", 0),
            ("corp-b", "internet", 1),
            ("corp-c", "ims", 0),
            ("corp-c", "internet", 1),
        ]
        .into_iter()
        .enumerate()
        {
            let more = json!({"ipDomain": domain, "dnn": dnn, "pcfDiamHost": PCFS[pcf], "supi": format!("imsi-{number:015}"),
                "pcfId": format!("6f1c7a52-0000-4000-8000-00000000000{number}")});
            bsf.path(&bsf.post("pcfBindings", &binding(&more)).await);
        }
        let asked = async |session: &str, domain: &str, dnn: Option<&str>| {
            let mut message = aar(session, [10, 0, 0, 1]);
            let key = AvpKey {
                vendor: known::VENDOR_3GPP,
                code: 537,
            };
            message.put_raw(key, AvpFlags::VENDOR, domain.as_bytes());
            message.maybe(known::CALLED_STATION_ID, dnn);
            let answer = ask(&af, BSF, message).await;
            (
                result(&answer),
                answer
                    .get(known::ORIGIN_HOST)
                    .unwrap()
                    .unwrap_or_default()
                    .to_owned(),
            )
        };
        assert_eq!(asked("af;d;1", "corp-a", None).await, (2001, PCFS[0].to_owned()));
        assert_eq!(asked("af;d;2", "corp-b", None).await, (2001, PCFS[1].to_owned()));
        assert_eq!(
            asked("af;d;3", "corp-c", Some("ims")).await,
            (2001, PCFS[0].to_owned())
        );
        assert_eq!(
            asked("af;d;4", "corp-c", Some("internet")).await,
            (2001, PCFS[1].to_owned())
        );
        assert_eq!(asked("af;d;5", "corp-c", None).await.0, 3002, "several match");
        assert_eq!(asked("af;d;6", "corp-d", None).await.0, 3002);
    });
}
