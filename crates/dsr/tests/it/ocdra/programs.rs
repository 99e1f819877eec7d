//! Kamailio around an online charging DRA: as the CTF of an IMS (`ims_charging`) and as two OCSs (`ims_ocs`).
//!
//! ```text
//!  caller ── SIP ── S-CSCF ── SIP ── callee        caller and callee are sockets of this test
//!                     │ Ro
//!                    DSR ── two OCSs
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use diameter::proto::known::application;
use dsr_ocdra::{Event, Ocdra};
use testpeer::kamailio::{Kamailio, Role, Setup};
use testpeer::sip::Sip;
use testpeer::tshark::tshark;

use super::support::{CTF, OCSS, agent};
use crate::support::{DSR, REALM, available, program, run, trace_all, until};

/// Calls, each of a caller of its own.
const CALLS: usize = 3;

#[test]
fn kamailio_charges_each_call_at_one_ocs() {
    if !Kamailio::is_installed() {
        return;
    }
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let callee = Sip::bind("callee");
        let start = |role, host| {
            Kamailio::start(Setup {
                role,
                host,
                realm: REALM,
                router: DSR,
                next: callee.address,
                folder: folder.path(),
            })
        };
        let ocss = OCSS.map(|host| start(Role::Ocs, host));
        let ctf = start(Role::Ctf, CTF);
        let mut config = agent(&folder.path().join("store"), "", "");
        // Kamailio takes a node that only relays for none that serves Ro, and routes Ro to nodes that name the vendor 3GPP, as those
        // do which have an application of it.
        config.local_nodes[0].applications = vec![application::CREDIT_CONTROL, application::GX];
        let nodes = [(OCSS[0], &ocss[0]), (OCSS[1], &ocss[1]), (CTF, &ctf)];
        config.peers = nodes.map(|(host, node)| program(host, node.diameter)).to_vec();
        let file = trace_all(&mut config, &folder.path().join("traces"));
        let dsr = dsr::start(config).unwrap();
        for (host, _) in nodes {
            available(&dsr, host).await;
        }
        for number in 0..CALLS {
            let (caller, id) = (Sip::bind(&format!("caller{number}")), format!("call{number}"));
            let route = caller.call(&callee, ctf.sip, &id);
            // What is granted is used up within seconds, when the call is confirmed.
            while counts(&ocss, "UPDATE").len() <= number {
                caller.acknowledge(&callee, ctf.sip, &id, &route);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            caller.hang_up(&callee, ctf.sip, &id, &route);
            until(|| counts(&ocss, "BYE").len() > number).await;
        }
        let sessions = counts(&ocss, "INVITE");
        assert_eq!(sessions.len(), CALLS);
        for (id, at) in &sessions {
            assert_eq!(at.len(), 1, "the CCR-Is of {id} are at {at:?}");
            for kind in ["UPDATE", "BYE"] {
                let later = &counts(&ocss, kind)[id];
                assert!(later.iter().all(|one| one == &at[0]), "{kind} of {id}: {later:?}");
            }
            assert_eq!(counts(&ocss, "BYE")[id].len(), 1);
        }
        until(|| dsr.count_of::<Ocdra>(Event::Ended) == CALLS as u64).await;
        assert_eq!(dsr.count_of::<Ocdra>(Event::Kept), CALLS as u64);
        assert_eq!(dsr.count_of::<Ocdra>(Event::UnknownSession), 0);
        dsr.stop().unwrap();
        is_read(&file);
    });
}

/// The OCSs that have counted requests of a kind, by Session-Id: one entry for each request.
fn counts(ocss: &[Kamailio], kind: &str) -> BTreeMap<String, Vec<usize>> {
    let mut counts = BTreeMap::<String, Vec<usize>>::new();
    for (at, ocs) in ocss.iter().enumerate() {
        let log = ocs.log();
        let lines = log
            .lines()
            .filter_map(|line| line.split_once("counted ")?.1.split_once(' '));
        for (_, id) in lines.filter(|(method, _)| *method == kind) {
            counts.entry(id.to_owned()).or_default().push(at);
        }
    }
    counts
}

/// tshark reads each message that the router has received and sent.
fn is_read(file: &Path) {
    let Some(all) = tshark(&["-Y", "diameter"], file) else {
        return;
    };
    // Three CCRs of each call with their answers, before and behind the router.
    assert!(all.lines().count() >= CALLS * 12, "{all}");
    // Kamailio 5.6 writes an address of hardware as text of 17 octets.
    let malformed = "_ws.malformed && !diameter.User-Equipment-Info-Value";
    assert_eq!(tshark(&["-Y", malformed], file).unwrap(), "");
}
