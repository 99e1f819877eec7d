//! Gx and Rx: PCEFs and AFs as real Diameter peers.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use diameter::endpoint::{Endpoint, Request, SendOptions, Service, To};
use diameter::proto::check::{Strictness, check};
use diameter::proto::known::{self, application, command};
use diameter::proto::peer::{ApplicationId, Capabilities};
use diameter::proto::{Dictionary, Message, MessageBuilder, MessageMut, ResultCode, text};
use diameter::{NodeConfig, PeerConfig};
use serde_json::json;
use testpeer::freediameter::{FreeDiameter, Setup};

use crate::authorization::{APP_SESSIONS, call, listener, notification};
use crate::support::{Pcf, local, path_of, start};

const PCF: &str = "pcf.example.org";

/// Records requests, and answers each with this result.
pub struct Peer {
    pub seen: RefCell<Vec<Message>>,
    pub result: std::cell::Cell<u32>,
    /// Whether it answers nothing.
    pub silent: std::cell::Cell<bool>,
}

impl Service for Peer {
    async fn call(self: Rc<Self>, request: Request) -> MessageMut {
        check(&request.message, Dictionary::standard(), Strictness::Pedantic).unwrap();
        self.seen.borrow_mut().push(request.message.clone());
        if self.silent.get() {
            std::future::pending::<()>().await;
        }
        let mut answer = request.answer(ResultCode(self.result.get()));
        if request.message.command() == command::TDF_SESSION {
            answer.put(known::AUTH_APPLICATION_ID, application::SD);
        }
        answer.finish().unwrap()
    }
}

/// A PCEF or AF that is connected to a PCF.
pub async fn peer(host: &str, pcf: &Pcf) -> Endpoint<Peer> {
    peer_of(host, pcf, &[application::GX, application::RX]).await
}

/// A peer of these applications that is connected to a PCF.
pub async fn peer_of(host: &str, pcf: &Pcf, applications: &[u32]) -> Endpoint<Peer> {
    peer_at(host, pcf.running().diameter_addresses()[0], applications).await
}

/// A peer of these applications that is connected to the PCF at this address.
pub async fn peer_at(host: &str, address: SocketAddr, applications: &[u32]) -> Endpoint<Peer> {
    let applications = applications.iter().copied().map(ApplicationId::tgpp);
    let local = Capabilities::new(host, "example.org").with_applications(applications);
    let service = Peer {
        seen: RefCell::default(),
        result: std::cell::Cell::new(2001),
        silent: std::cell::Cell::new(false),
    };
    let endpoint = Endpoint::new(NodeConfig::new(local), service, None, 1);
    endpoint
        .node()
        .add_peer(PeerConfig::connect(PCF, [address]))
        .unwrap();
    endpoint.available(PCF).await;
    endpoint
}

/// Waits for the request of this number, from 1, and gives its text.
pub async fn received(peer: &Endpoint<Peer>, number: usize) -> String {
    for _ in 0..2_000 {
        if let Some(message) = peer.service().seen.borrow().get(number - 1) {
            return text::print(message, Dictionary::standard()).to_string();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("request {number} has not come");
}

/// Sends a request of this text; the answer as text, which keeps to the dictionary's grammar.
pub async fn ask(peer: &Endpoint<Peer>, host: &str, session: &str, request: &str) -> String {
    let application = if request.starts_with("CCR") {
        application::GX
    } else {
        application::RX
    };
    ask_over(peer, application, (host, session), request).await
}

/// As [`ask`], over this application.
pub async fn ask_over(
    peer: &Endpoint<Peer>,
    application: u32,
    (host, session): (&str, &str),
    request: &str,
) -> String {
    let (head, body) = request.split_once('\n').unwrap();
    let text = format!(
        "{head} app={application} flags=RP {{\nSession-Id = \"{session}\"\nAuth-Application-Id = {application}\n\
         Origin-Host = \"{host}\"\nOrigin-Realm = \"example.org\"\nDestination-Realm = \"example.org\"\n{body}\n}}"
    );
    let message = text::parse(&text, Dictionary::standard()).unwrap();
    let mut builder = MessageBuilder::request(message.command(), message.application());
    builder.append_encoded(message.avps().remaining());
    let options = SendOptions {
        deadline: Duration::from_secs(60),
        failover: false,
    };
    let answer = peer
        .request(To::Peer(PCF), builder.finish().unwrap(), options)
        .await
        .unwrap();
    check(&answer, Dictionary::standard(), Strictness::Pedantic).unwrap();
    text::print(&answer, Dictionary::standard()).to_string()
}

pub const CCR_I: &str = r#"CCR
CC-Request-Type = INITIAL_REQUEST
CC-Request-Number = 0
Subscription-Id = { Subscription-Id-Type = END_USER_IMSI Subscription-Id-Data = "001010000000001" }
Supported-Features = { Vendor-Id = 10415 Feature-List-ID = 1 Feature-List = 11 }
Network-Request-Support = NETWORK_REQUEST_SUPPORTED
Framed-IP-Address = 0x0a000001
IP-CAN-Type = 3GPP-EPS
RAT-Type = EUTRAN
QoS-Information = { APN-Aggregate-Max-Bitrate-UL = 50000000 APN-Aggregate-Max-Bitrate-DL = 100000000 }
Default-EPS-Bearer-QoS = { QoS-Class-Identifier = QCI_5 Allocation-Retention-Priority = { Priority-Level = 3 } }
Called-Station-Id = "ims""#;
pub const CCR_T: &str =
    "CCR\nCC-Request-Type = TERMINATION_REQUEST\nCC-Request-Number = 9\nTermination-Cause = DIAMETER_LOGOUT";
pub const AAR: &str = r#"AAR
AF-Application-Identifier = 0x494d53
Media-Component-Description = {
  Media-Component-Number = 1
  Media-Sub-Component = {
    Flow-Number = 1
    Flow-Description = "permit in 17 from 10.0.0.1 50000 to 192.0.2.99 40000"
    Flow-Description = "permit out 17 from 192.0.2.99 40000 to 10.0.0.1 50000"
  }
  Media-Sub-Component = {
    Flow-Number = 2
    Flow-Description = "permit out 17 from 192.0.2.99 40001 to 10.0.0.1 50001"
    Flow-Usage = RTCP
  }
  Media-Type = AUDIO
  Max-Requested-Bandwidth-UL = 64000
  Max-Requested-Bandwidth-DL = 64000
}
Specific-Action = INDICATION_OF_RELEASE_OF_BEARER
Specific-Action = CHARGING_CORRELATION_EXCHANGE
Framed-IP-Address = 0x0a000001
Called-Station-Id = "ims"
Rx-Request-Type = INITIAL_REQUEST"#;
pub const STR: &str = "STR\nTermination-Cause = DIAMETER_LOGOUT";

/// The bytes of the name of a rule, as text of AVPs has them.
fn rule_names(text: &str) -> Vec<String> {
    let names = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Charging-Rule-Name = "));
    names.map(str::to_owned).collect()
}

#[test]
fn a_voice_call_over_gx_and_rx() {
    local(async {
        let pcf = start(|_| {});
        let (pgw, cscf) = (
            peer("pgw.example.org", &pcf).await,
            peer("cscf.example.org", &pcf).await,
        );
        let gx = async |text: &str| ask(&pgw, "pgw.example.org", "pgw;1;1", text).await;
        let rx = async |text: &str| ask(&cscf, "cscf.example.org", "cscf;1;1", text).await;

        let begun = gx(CCR_I).await;
        for line in [
            "Result-Code = DIAMETER_SUCCESS",
            "CC-Request-Type = INITIAL_REQUEST",
            "Bearer-Control-Mode = UE_NW",
            "Feature-List = 11",
            "APN-Aggregate-Max-Bitrate-DL = 100000000",
            "QoS-Class-Identifier = QCI_5",
        ] {
            assert!(begun.contains(line), "no {line} in\n{begun}");
        }
        assert_eq!(
            gx(CCR_I).await.lines().count(),
            begun.lines().count(),
            "sent again"
        );

        let authorized = rx(AAR).await;
        assert!(
            authorized.contains("Result-Code = DIAMETER_SUCCESS"),
            "{authorized}"
        );
        assert!(authorized.contains("IP-CAN-Type = 3GPP-EPS") && authorized.contains("RAT-Type = EUTRAN"));
        let install = received(&pgw, 1).await;
        let rules = rule_names(&install);
        assert_eq!(rules.len(), 2, "{install}");
        for line in [
            "Re-Auth-Request ",
            "Destination-Host = \"pgw.example.org\"",
            "QoS-Class-Identifier = QCI_1",
            "Guaranteed-Bitrate-UL = 64000",
            "Charging-Correlation-Indicator = CHARGING_IDENTIFIER_REQUIRED",
            "Flow-Description = \"permit out 17 from 192.0.2.99 40000 to 10.0.0.1 50000\"",
        ] {
            assert!(install.contains(line), "no {line} in\n{install}");
        }

        // The PCEF reports the charging identifier of the bearer.
        let report = format!(
            "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = 1\nEvent-Trigger = CHARGING_CORRELATION_EXCHANGE\n\
             Access-Network-Charging-Identifier-Gx = {{ Access-Network-Charging-Identifier-Value = 0x00000011 Charging-Rule-Name = {} }}",
            rules[0]
        );
        let updated = gx(&report).await;
        assert!(
            updated.contains("Result-Code = DIAMETER_SUCCESS") && !updated.contains("Charging-Rule"),
            "{updated}"
        );
        let notified = received(&cscf, 1).await;
        assert!(
            notified.contains("Specific-Action = CHARGING_CORRELATION_EXCHANGE"),
            "{notified}"
        );
        assert!(
            notified.contains("Access-Network-Charging-Identifier-Value = 0x00000011"),
            "{notified}"
        );

        let ended = rx(STR).await;
        assert!(ended.contains("Result-Code = DIAMETER_SUCCESS"), "{ended}");
        let remove = received(&pgw, 2).await;
        assert!(remove.contains("Charging-Rule-Remove = {"), "{remove}");
        assert_eq!(rule_names(&remove), rules);
        assert!(
            rx(STR)
                .await
                .contains("Result-Code = DIAMETER_UNKNOWN_SESSION_ID")
        );

        assert!(gx(CCR_T).await.contains("Result-Code = DIAMETER_SUCCESS"));
        assert!(
            gx(CCR_T)
                .await
                .contains("Result-Code = DIAMETER_UNKNOWN_SESSION_ID")
        );
        let count = |event| pcf.running().count(event);
        assert_eq!(
            (count(pcf::Event::GxCreated), count(pcf::Event::GxDeleted)),
            (1, 1)
        );
        assert_eq!(count(pcf::Event::DiameterUnanswered), 0);
    });
}

#[test]
fn a_lost_bearer_and_the_end_of_a_session_reach_the_af() {
    local(async {
        let pcf = start(|_| {});
        let (pgw, cscf) = (
            peer("pgw.example.org", &pcf).await,
            peer("cscf.example.org", &pcf).await,
        );
        let gx = async |text: &str| ask(&pgw, "pgw.example.org", "pgw;1;1", text).await;
        gx(CCR_I).await;
        for session in ["cscf;1;1", "cscf;1;2"] {
            ask(&cscf, "cscf.example.org", session, AAR).await;
        }
        let rules = rule_names(&received(&pgw, 1).await);
        let report = format!(
            "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = 1\nEvent-Trigger = LOSS_OF_BEARER\n\
             Charging-Rule-Report = {{ Charging-Rule-Name = {} Charging-Rule-Name = {} PCC-Rule-Status = INACTIVE \
             Rule-Failure-Code = RESOURCE_ALLOCATION_FAILURE }}",
            rules[0], rules[1]
        );
        let updated = gx(&report).await;
        assert_eq!(rule_names(&updated), rules, "both are removed\n{updated}");
        let released = received(&cscf, 1).await;
        assert!(
            released.contains("Specific-Action = INDICATION_OF_RELEASE_OF_BEARER"),
            "{released}"
        );
        assert!(released.contains("Session-Id = \"cscf;1;1\""), "{released}");
        let aborted = received(&cscf, 2).await;
        assert!(
            aborted.starts_with("Abort-Session-Request") && aborted.contains("INSUFFICIENT_BEARER_RESOURCES"),
            "{aborted}"
        );

        gx(CCR_T).await;
        // The first one was asked to end, and is not asked again.
        let ended = received(&cscf, 3).await;
        assert!(
            ended.contains("cscf;1;2") && ended.contains("Abort-Cause = BEARER_RELEASED"),
            "{ended}"
        );
        assert_eq!(pcf.running().count(pcf::Event::AfTerminated), 2);
        for session in ["cscf;1;1", "cscf;1;2"] {
            // The AF terminates its session as well (TS 29.214 §4.4.6.1), once.
            for code in ["DIAMETER_SUCCESS", "DIAMETER_UNKNOWN_SESSION_ID"] {
                let answer = ask(&cscf, "cscf.example.org", session, STR).await;
                assert!(answer.contains(code), "{answer}");
            }
        }
    });
}

#[test]
fn rx_and_n5_serve_sessions_of_both_kinds() {
    local(async {
        let pcf = start(|_| {});
        let (pgw, cscf) = (
            peer("pgw.example.org", &pcf).await,
            peer("cscf.example.org", &pcf).await,
        );
        let (smf, af) = (listener(), listener());
        // Rx to a session of an SMF.
        pcf.session(&json!({"notificationUri": smf.root(), "ipv4Address": "10.0.0.2", "dnn": "ims"}))
            .await;
        let aar = AAR.replace("0x0a000001", "0x0a000002");
        let authorized = ask(&cscf, "cscf.example.org", "cscf;1;1", &aar).await;
        assert!(
            authorized.contains("IP-CAN-Type = 3GPP-5GS") && authorized.contains("RAT-Type = NR"),
            "{authorized}"
        );
        let (_, body) = notification(&smf, 1).await;
        assert_eq!(body["smPolicyDecision"]["pccRules"].as_object().unwrap().len(), 2);
        // N5 to a session of a PCEF.
        ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I).await;
        let path = path_of(
            &pcf.post(APP_SESSIONS, &call(&af.root(), &json!({"dnn": "ims"})))
                .await,
        );
        let rules = rule_names(&received(&pgw, 1).await);
        assert_eq!(rules.len(), 2);
        // A PCEF that has lost the session ends it.
        pgw.service().result.set(5002);
        pcf.post(
            &format!("{path}/delete"),
            &json!({"events": [{"event": "USAGE_REPORT"}]}),
        )
        .await;
        received(&pgw, 2).await;
        for _ in 0..2_000 {
            if pcf.running().count(pcf::Event::GxDeleted) == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let unknown = ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_T).await;
        assert!(
            unknown.contains("Result-Code = DIAMETER_UNKNOWN_SESSION_ID"),
            "{unknown}"
        );
    });
}

#[test]
fn refusals_have_the_results_of_the_standard() {
    local(async {
        let pcf = start(|config| {
            config.media.media = [(
                "AUDIO".to_owned(),
                serde_json::from_value(json!({"allowed": false})).unwrap(),
            )]
            .into();
        });
        let (pgw, cscf) = (
            peer("pgw.example.org", &pcf).await,
            peer("cscf.example.org", &pcf).await,
        );
        let gx = async |text: &str| ask(&pgw, "pgw.example.org", "pgw;1;1", text).await;
        let rx = async |text: &str| ask(&cscf, "cscf.example.org", "cscf;1;1", text).await;
        let without = |text: &str, start: &str| {
            let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(start)).collect();
            lines.join("\n")
        };
        let experimental = |answer: &str, code: u32| {
            let line = format!("Experimental-Result-Code = {code}");
            assert!(
                answer.contains(&line) && answer.contains("Vendor-Id = 10415"),
                "{code} in\n{answer}"
            );
        };
        experimental(&gx(&without(CCR_I, "Subscription-Id")).await, 5140);
        experimental(&gx(&without(CCR_I, "Called-Station-Id")).await, 5140);
        assert!(
            gx("CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = 1")
                .await
                .contains("Result-Code = DIAMETER_UNKNOWN_SESSION_ID")
        );
        assert!(
            gx("CCR\nCC-Request-Number = 1")
                .await
                .contains("Result-Code = DIAMETER_MISSING_AVP")
        );
        experimental(&rx(AAR).await, 5065);
        assert!(
            rx(&without(AAR, "Framed-IP-Address"))
                .await
                .contains("Result-Code = DIAMETER_MISSING_AVP")
        );
        let update = AAR.replace("INITIAL_REQUEST", "UPDATE_REQUEST");
        assert!(
            rx(&update)
                .await
                .contains("Result-Code = DIAMETER_UNKNOWN_SESSION_ID")
        );
        gx(CCR_I).await;
        experimental(&rx(AAR).await, 5063);
        experimental(&rx(&AAR.replace("permit in", "deny in")).await, 5062);
        assert_eq!(pcf.running().count(pcf::Event::AfCreated), 0);
        assert!(pgw.service().seen.borrow().is_empty(), "no RAR");
    });
}

#[test]
fn sessions_survive_a_restart() {
    local(async {
        let mut pcf = start(|_| {});
        {
            let (pgw, cscf) = (
                peer("pgw.example.org", &pcf).await,
                peer("cscf.example.org", &pcf).await,
            );
            ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I).await;
            ask(&cscf, "cscf.example.org", "cscf;1;1", AAR).await;
        }
        pcf.stop();
        pcf.running = Some(pcf::start(crate::support::config(pcf.directory.path())).unwrap());
        let (pgw, cscf) = (
            peer("pgw.example.org", &pcf).await,
            peer("cscf.example.org", &pcf).await,
        );
        let ended = ask(&cscf, "cscf.example.org", "cscf;1;1", STR).await;
        assert!(ended.contains("Result-Code = DIAMETER_SUCCESS"), "{ended}");
        assert!(received(&pgw, 1).await.contains("Charging-Rule-Remove"));
        let ended = ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_T).await;
        assert!(ended.contains("Result-Code = DIAMETER_SUCCESS"), "{ended}");
    });
}

#[test]
fn an_af_that_terminates_its_session_after_a_restart_is_answered_with_success() {
    local(async {
        let mut pcf = start(|_| {});
        {
            let (pgw, cscf) = (
                peer("pgw.example.org", &pcf).await,
                peer("cscf.example.org", &pcf).await,
            );
            ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I).await;
            ask(&cscf, "cscf.example.org", "cscf;1;1", AAR).await;
            ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_T).await;
            assert!(received(&cscf, 1).await.starts_with("Abort-Session-Request"));
        }
        pcf.stop();
        pcf.running = Some(pcf::start(crate::support::config(pcf.directory.path())).unwrap());
        let cscf = peer("cscf.example.org", &pcf).await;
        for code in ["DIAMETER_SUCCESS", "DIAMETER_UNKNOWN_SESSION_ID"] {
            let answer = ask(&cscf, "cscf.example.org", "cscf;1;1", STR).await;
            assert!(answer.contains(code), "{answer}");
        }
    });
}

#[test]
fn free_diameter_as_af() {
    local(async {
        let port = free_ports::port().unwrap();
        let address: SocketAddr = ([127, 0, 0, 1], port).into();
        let pcf = start(|config| {
            config.diameter.host = "pcf.example".to_owned();
            config.diameter.listen = settings::Listen(vec![address]);
        });
        pcf.session(&json!({"ipv4Address": "10.0.0.1"})).await;
        let setup = Setup {
            identity: "af.example",
            realm: "example.org",
            port: 0,
            peers: &[("pcf.example", address)],
        };
        let Some(af) = FreeDiameter::start_rx(setup, "brief-af pcf.example").await else {
            return;
        };
        for _ in 0..1_000 {
            if af.log().contains("STA ") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for line in ["AAA 2001 pcf.example", "STA 2001 pcf.example"] {
            assert!(
                af.log().lines().any(|one| one == line),
                "{line} is missing:\n{}",
                af.log()
            );
        }
        assert_eq!(pcf.running().count(pcf::Event::AfDeleted), 1);
    });
}

#[test]
fn agents_on_the_way_get_their_state_back_and_loops_end() {
    local(async {
        let pcf = start(|_| {});
        let pgw = peer("pgw.example.org", &pcf).await;
        let with = |avps: &str| format!("{CCR_I}\n{avps}");
        let route = "Route-Record = \"dra.example.org\"\nProxy-Info = { Proxy-Host = \"dra.example.org\" Proxy-State = 0x0102 }";
        let begun = ask(&pgw, "pgw.example.org", "pgw;1;1", &with(route)).await;
        for line in [
            "DIAMETER_SUCCESS",
            "Proxy-Host = \"dra.example.org\"",
            "Proxy-State = 0x0102",
        ] {
            assert!(begun.contains(line), "{line} in\n{begun}");
        }
        let loops = with("Route-Record = \"dra.example.org\"\nRoute-Record = \"PCF.example.org\"");
        let refused = ask(&pgw, "pgw.example.org", "pgw;1;2", &loops).await;
        assert!(refused.contains("DIAMETER_LOOP_DETECTED"), "{refused}");
    });
}

#[test]
fn an_af_that_names_its_features_learns_those_of_the_pcf() {
    local(async {
        let pcf = start(|_| {});
        let (pgw, cscf) = (
            peer("pgw.example.org", &pcf).await,
            peer("cscf.example.org", &pcf).await,
        );
        ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I).await;
        let features = "Supported-Features = { Vendor-Id = 10415 Feature-List-ID = 1 Feature-List = 4099 }";
        let rx = async |text: &str| ask(&cscf, "cscf.example.org", "cscf;1;1", text).await;
        let answer = rx(&format!("{AAR}\n{features}")).await;
        // Rel8 and Rel9; bit 12 is another feature.
        assert!(answer.contains("Feature-List = 3"), "{answer}");
        let answer = rx(AAR).await;
        assert!(!answer.contains("Supported-Features"), "{answer}");
    });
}
