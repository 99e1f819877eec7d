//! Programs of others around a Policy DRA: freeDiameter as PCEF and as PCRFs (`dict_dcca_3gpp`), Kamailio as the AF of an IMS
//! (`ims_qos`).
//!
//! ```text
//!  UE ── SIP ── P-CSCF ── SIP ── S-CSCF and callee        UE, S-CSCF and callee are sockets of this test
//!                 │ Rx
//!  PCEF ── Gx ── DSR ── two PCRFs
//! ```

use std::path::Path;

use diameter::proto::known::{self, application, command};
use diameter::proto::{Message, MessageMut};
use dsr_pdra::{Event, Pdra};
use testpeer::freediameter::{Console, Setup};
use testpeer::kamailio::{self, Kamailio, Role};
use testpeer::sip::Sip;
use testpeer::tshark::tshark;

use super::support::{IMSI, PCRFS, agent, ccr, request, subscriber};
use crate::support::{DSR, REALM, available, program, run, trace_all, until};

const PCEF: &str = "pcef.example";
const PCSCF: &str = "pcscf.example";
const SESSION: &str = "pcef.example;1;1";

async fn console(
    identity: &str,
    peers: &[(&str, std::net::SocketAddr)],
    applications: &[u32],
) -> Option<Console> {
    let setup = Setup {
        identity,
        realm: REALM,
        port: 0,
        peers,
    };
    Console::start(setup, applications).await
}

fn send(console: &mut Console, request: MessageMut) {
    console.send(&Message::parse(request.as_bytes().to_vec().into()).unwrap());
}

/// The value of a text in a message of a console.
fn text_of<'m>(message: &'m str, name: &str) -> &'m str {
    let mut lines = message.lines().filter_map(|line| line.trim().split_once(" = "));
    let value = lines.find(|(known, _)| *known == name).unwrap().1;
    value.trim_matches('"')
}

fn succeeds(answer: &str) {
    assert!(answer.contains("Result-Code = 2001\n"), "{answer}");
}

#[test]
fn freediameter_and_kamailio_find_one_another_through_it() {
    if !Kamailio::is_installed() {
        return;
    }
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (ue, network) = (Sip::bind("ue"), Sip::bind("callee"));
        let both = [application::GX, application::RX];
        let (Some(one), Some(other)) = (
            console(PCRFS[0], &[], &both).await,
            console(PCRFS[1], &[], &both).await,
        ) else {
            return;
        };
        let pcscf = p_cscf(&network, folder.path());
        let mut config = agent(&folder.path().join("store"), &PCRFS, "");
        // Kamailio takes a node that only relays for none that serves Rx.
        config.local_nodes[0].applications = both.to_vec();
        let nodes = [
            (PCRFS[0], one.address()),
            (PCRFS[1], other.address()),
            (PCSCF, pcscf.diameter),
        ];
        config.peers = nodes.map(|(host, address)| program(host, address)).to_vec();
        let file = trace_all(&mut config, &folder.path().join("traces"));
        let dsr = dsr::start(config).unwrap();
        for (host, _) in nodes {
            available(&dsr, host).await;
        }
        let peers = [(DSR, dsr.addresses()[0])];
        let mut pcef = console(PCEF, &peers, &[application::GX]).await.unwrap();
        available(&dsr, PCEF).await;

        // A session of the UE, whose PCRF is that of all that follows.
        send(&mut pcef, initial());
        succeeds(&pcef.expect("Credit-Control-Answer", 1).await);
        let (mut pcrf, stranger) = if one.received().is_empty() {
            (other, one)
        } else {
            (one, other)
        };
        pcrf.expect("Credit-Control-Request", 1).await;

        // The AF correlates by the address alone: a registration, and a call.
        ue.register(&network, pcscf.sip, "registration");
        ue.call(&network, pcscf.sip, "call");
        let media = pcrf.expect("AA-Request", 2).await;
        assert_eq!(text_of(&media, "Origin-Host"), PCSCF);
        assert_eq!(dsr.count_of::<Pdra>(Event::Kept), 3);

        re_authorise(&mut pcrf, &pcef).await;
        let id = text_of(&media, "Session-Id");
        let asr = request(command::ABORT_SESSION, application::RX, PCRFS[0], id, |b| {
            b.put(known::DESTINATION_HOST, PCSCF);
        });
        send(&mut pcrf, asr);
        // Kamailio 5.6 sends no ASA through an agent, and ends the session by an STR with Destination-Realm twice, which freeDiameter
        // refuses. Of its session the AAR and its answer were traced before, each as it came and went.
        until(|| dsr.traces(id).len() >= 6).await;

        for (kind, number) in [(2, 2), (3, 3)] {
            send(&mut pcef, ccr(SESSION, kind, |_| ()));
            succeeds(&pcef.expect("Credit-Control-Answer", number).await);
        }
        assert_eq!(stranger.received(), [""; 0]);
        dsr.stop().unwrap();
        is_read(&file);
    });
}

/// Kamailio as the AF of calls to this network.
fn p_cscf(network: &Sip, folder: &Path) -> Kamailio {
    Kamailio::start(kamailio::Setup {
        role: Role::Pcscf,
        host: PCSCF,
        realm: REALM,
        router: DSR,
        next: network.address,
        folder,
    })
}

/// The request that begins the session of the UE.
fn initial() -> MessageMut {
    ccr(SESSION, 1, |b| {
        subscriber(b, 1, IMSI);
        b.put(known::FRAMED_IP_ADDRESS, &[127, 0, 0, 1])
            .put(known::CALLED_STATION_ID, "ims");
    })
}

/// The PCRF asks the PCEF about its session.
async fn re_authorise(pcrf: &mut Console, pcef: &Console) {
    let rar = request(command::RE_AUTH, application::GX, PCRFS[0], SESSION, |b| {
        b.put(known::DESTINATION_HOST, PCEF)
            .put(known::RE_AUTH_REQUEST_TYPE, 0);
    });
    send(pcrf, rar);
    succeeds(&pcrf.expect("Re-Auth-Answer", 1).await);
    let asked = pcef.expect("Re-Auth-Request", 1).await;
    assert_eq!(text_of(&asked, "Session-Id"), SESSION);
}

/// tshark reads each message that the router has received and sent.
fn is_read(file: &Path) {
    let Some(all) = tshark(&["-Y", "diameter"], file) else {
        return;
    };
    // CCRs, AARs and RAR with their answers, before and behind the router, and the ASR.
    assert!(all.lines().count() >= 26, "{all}");
    assert_eq!(tshark(&["-Y", "_ws.malformed"], file).unwrap(), "");
    let aborted = format!("diameter.cmd.code == 274 && diameter.Destination-Host == \"{PCSCF}\"");
    assert_eq!(tshark(&["-Y", &aborted], file).unwrap().lines().count(), 2);
}
