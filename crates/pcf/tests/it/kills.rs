//! A PCF that is killed between a change and its delivery, again and again, while a PCEF takes, refuses or leaves unanswered what it is sent:
//! the next process brings the PCEF to the state of the PCF.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use diameter::proto::known::{application, disconnect_cause};
use diameter::proto::{Dictionary, text};
use settings::Period;

use crate::diameter::{AAR, CCR_I, Peer, STR, ask, peer_at};
use crate::process::Process;
use crate::support::{config, local, rounds, until};

/// Kills of a run, where `SIGNALBOX_ROUNDS` names no other number.
const KILLS: usize = 6;

/// What a PCEF does with what it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Takes,
    Refuses,
    Hangs,
}

const MANNERS: [Manner; 3] = [Manner::Takes, Manner::Refuses, Manner::Hangs];

/// Waits until this holds.
async fn awaited(what: &str, holds: impl Fn() -> bool) {
    let patience = Duration::from_secs(120);
    let outcome = tokio::time::timeout(patience, until(holds)).await;
    assert!(outcome.is_ok(), "{what} has not come");
}

/// The time from a change to the kill of a round: none, up to some milliseconds, in which a message is made, sent or answered.
async fn moment(round: usize) {
    let micros = (round as u64).wrapping_mul(7_919) % 12_000;
    tokio::time::sleep(Duration::from_micros(micros)).await;
}

/// The rules that a PCEF has after these requests.
fn install(rules: &mut BTreeSet<String>, peer: &Peer) {
    for message in peer.seen.borrow_mut().drain(..) {
        let request = text::print(&message, Dictionary::standard()).to_string();
        let mut is_removal = false;
        for line in request.lines().map(str::trim) {
            if line.starts_with("Charging-Rule-Install") || line.starts_with("Charging-Rule-Remove") {
                is_removal = line.starts_with("Charging-Rule-Remove");
            } else if let Some(name) = line.strip_prefix("Charging-Rule-Name = ") {
                match is_removal {
                    true => drop(rules.remove(name)),
                    false => drop(rules.insert(name.to_owned())),
                }
            }
        }
    }
}

/// DIAMETER_TOO_BUSY.
const BUSY: u32 = 3004;

#[test]
fn no_kill_keeps_a_pcef_from_the_state_of_the_pcrf() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = config(folder.path());
        let address = free_ports::address().unwrap();
        settings.diameter.listen = settings::Listen(vec![address]);
        settings.diameter.attempts = 1;
        settings.diameter.timeout = Period::from_millis(500);
        let (mut rules, mut stands) = (BTreeSet::new(), None::<String>);
        let mut process = Process::start(&settings);
        for round in 0..rounds(KILLS) {
            let pgw = peer_at("pgw.example.org", address, &[application::GX]).await;
            let cscf = peer_at("cscf.example.org", address, &[application::RX]).await;
            if round == 0 {
                let begun = ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I).await;
                assert!(begun.contains("DIAMETER_SUCCESS"), "{begun}");
            }
            let all = RefCell::new(&mut rules);
            let has = || {
                let mut rules = all.borrow_mut();
                install(&mut rules, pgw.service());
                rules.len() == stands.as_ref().map_or(0, |_| 2)
            };
            awaited(&format!("round {round}: the rules at the PCEF"), has).await;

            let manner = MANNERS[round % 3];
            pgw.service().silent.set(manner == Manner::Hangs);
            pgw.service()
                .result
                .set(if manner == Manner::Refuses { BUSY } else { 2001 });
            let answer = match stands.take() {
                Some(session) => ask(&cscf, "cscf.example.org", &session, STR).await,
                None => {
                    let session = format!("cscf;1;{round}");
                    let begun = ask(&cscf, "cscf.example.org", &session, AAR).await;
                    stands = Some(session);
                    begun
                }
            };
            assert!(answer.contains("DIAMETER_SUCCESS"), "{answer}");
            moment(round).await;
            drop(process);
            if manner == Manner::Takes {
                install(&mut rules, pgw.service());
            }
            for peer in [&pgw, &cscf] {
                let grace = Duration::from_millis(10);
                peer.node().stop(grace, disconnect_cause::REBOOTING).await;
            }
            process = Process::start(&settings);
        }
    });
}
