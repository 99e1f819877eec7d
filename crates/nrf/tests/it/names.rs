//! Names of other functions: resolved by name servers, with other places by SRV records (RFC 2782).

use http::{Method, StatusCode};
use nrf::config::ForwardingRule;
use serde_json::json;
use settings::Period;
use testpeer::dns::NameServer;
use testpeer::sbi::{Server, no_content};

use crate::support::{id, local, profile, start, until};

/// A name at a port where no function listens, and the place that its SRV record names.
fn other_place(names: &NameServer, name: &str, port: u16) -> String {
    let other = format!("other.{name}");
    for host in [name, &other] {
        names.addresses(host, 60, &["127.0.0.1".parse().unwrap()]);
    }
    names.services(
        &format!("_http._tcp.{name}"),
        60,
        &[(1, 1, port, &format!("{other}."))],
    );
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{name}:{}", gone.local_addr().unwrap().port())
}

#[test]
fn other_places_of_a_name_are_tried() {
    local(async {
        let names = NameServer::start().await.unwrap();
        let far = start(|config| config.nf_instance_id = id(0xb0));
        far.put(&profile(&id(1), "UDM", "nudm-sdm", &json!({}))).await;
        let port = far.running.as_ref().unwrap().addresses()[0].port();
        let nrf_root = other_place(&names, "nrf.test", port);
        let slf = Server::start(|_| sbi::json::response(StatusCode::OK, &json!({"UDR": "g1"})));
        let slf_root = other_place(&names, "slf.test", slf.address.port());
        let sink = Server::start(|_| no_content());
        let sink_root = other_place(&names, "amf.test", sink.address.port());
        let address = names.address;
        let with = |dns_srv: bool| {
            start(|config| {
                config.dns.servers = vec![address];
                config.dns_srv = dns_srv;
                config.forwarding.rules = vec![ForwardingRule {
                    nf_types: vec!["UDM".into()],
                    targets: vec![nrf_root.clone()],
                    ..ForwardingRule::default()
                }];
                config.slf.target_types = vec!["UDR".into()];
                config.slf.static_targets = vec![slf_root.clone()];
                config.subscriptions.attempts = 1;
                // The defaults are shorter than a busy machine may take.
                config.slf.attempt_timeout = Period::from_secs(20);
                config.subscriptions.timeout = Period::from_secs(20);
            })
        };
        let near = with(true);
        assert_eq!(
            near.found("target-nf-type=UDM&requester-nf-type=AMF").await,
            [id(1)]
        );
        for (number, group) in [(2, "g1"), (3, "g2")] {
            let more = json!({"udrInfo": {"groupId": group}});
            near.put(&profile(&id(number), "UDR", "nudr-dr", &more)).await;
        }
        let udr = "target-nf-type=UDR&requester-nf-type=UDM&supi=imsi-1";
        assert_eq!(near.found(udr).await, [id(2)]);
        let wanted =
            json!({"nfStatusNotificationUri": format!("{sink_root}/x"), "subscrCond": {"nfType": "SMF"}});
        let path = "/nnrf-nfm/v1/subscriptions";
        let made = near
            .ask(Method::POST, path, "application/json", wanted.to_string())
            .await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        near.put(&profile(&id(4), "SMF", "nsmf-pdusession", &json!({})))
            .await;
        until(async || sink.count() == 1).await;
        let running = near.running.as_ref().unwrap();
        assert_eq!(running.count(nrf::Event::Rerouted), 2);
        until(async || running.count(nrf::Event::NotificationRerouted) == 1).await;
        assert_eq!(running.count(nrf::Event::SlfFailed), 0);

        // Where the operator does not want it, the place of the name is the only one.
        let plain = with(false);
        let got = plain.discover("target-nf-type=UDM&requester-nf-type=AMF").await;
        assert_eq!(got.status, StatusCode::GATEWAY_TIMEOUT);
    });
}
