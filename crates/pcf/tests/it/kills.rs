//! A PCF that is killed between a change and its delivery, again and again, while its consumers take, refuse or leave unanswered what they
//! are sent: the next process brings each to the state of the PCF, and AFs get each event and each end.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use diameter::proto::known::{application, disconnect_cause};
use diameter::proto::{Dictionary, text};
use http::StatusCode;
use serde_json::{Value, json};
use settings::Period;

use crate::authorization::{APP_SESSIONS, call};
use crate::diameter::{AAR, CCR_I, Peer, STR, ask, peer_at};
use crate::owed::{
    Consumer, af_rules, data_change, decision, failed, held, post, settings as few_attempts, udr,
};
use crate::policies::{AM, association};
use crate::process::Process;
use crate::support::{SM_POLICIES, ask_sources, config, context, path_of, repeated, rounds, until};

/// Kills of a run, where `SIGNALBOX_ROUNDS` names no other number.
const KILLS: usize = 6;

/// What a consumer does with what it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Takes,
    Refuses,
    Hangs,
}

const MANNERS: [Manner; 3] = [Manner::Takes, Manner::Refuses, Manner::Hangs];

impl Consumer {
    fn behave(&self, manner: Manner) {
        self.refuse(manner == Manner::Refuses);
        match manner {
            Manner::Hangs => self.server.holds(),
            _ => self.server.releases(),
        }
    }

    /// Waits until it has taken a notification at this path.
    async fn has_taken(&self, at: &str) {
        awaited(at, || self.taken.borrow().iter().any(|(path, _)| path == at)).await;
    }
}

/// Waits until this holds.
async fn awaited(what: &str, holds: impl Fn() -> bool) {
    let patience = Duration::from_secs(120);
    let outcome = tokio::time::timeout(patience, until(holds)).await;
    assert!(outcome.is_ok(), "{what} has not come");
}

/// A decision without what the PCF has last asked of rules: that has no value for *removed* (TS 29.512 §5.6.2.4), and means nothing when
/// its rules have gone.
fn without_requests(mut decision: Value) -> Value {
    decision.as_object_mut().unwrap().shift_remove("lastReqRuleData");
    decision
}

/// The time from a change to the kill of a round: none, up to some milliseconds, in which a message is made, sent or answered.
async fn moment(round: usize) {
    let micros = (round as u64).wrapping_mul(7_919) % 12_000;
    tokio::time::sleep(Duration::from_micros(micros)).await;
}

const AM_PROJECT: &str = "name: am\nservice: am\nblocks:\n  - if: {$eq: [$subscriber.category, gold]}\n    \
    then: [amPolicy: {rfsp: 9}]\n    else: [amPolicy: {rfsp: 7}]\n";

#[test]
fn no_kill_keeps_an_smf_an_amf_or_an_af_from_the_state_of_the_pcf() {
    repeated(rounds(KILLS), async {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        std::fs::create_dir_all(&project).unwrap();
        std::fs::write(project.join("project.yaml"), AM_PROJECT).unwrap();
        let category = Rc::new(Cell::new("silver"));
        let udr = udr(category.clone());
        let mut settings = few_attempts(folder.path());
        settings.policy.am = Some(project);
        ask_sources(&mut settings, Some(&udr), None);
        let (smf, amf, af) = (Consumer::start(), Consumer::start(), Consumer::start());

        let mut process = Process::start(&settings);
        let at_smf = json!({"notificationUri": format!("{}/smf", smf.root())});
        // First, so that the first subscription at the UDR is its own.
        let at_amf = association(&json!({"notificationUri": amf.root()}));
        path_of(&post(&process.origin, AM, &at_amf).await);
        let created = post(&process.origin, SM_POLICIES, &context(&at_smf)).await;
        let session = path_of(&created);
        let mut app = None;
        for round in 0..rounds(KILLS) {
            // Another session, which ends in this round, with its call.
            let (address, number) = (
                format!("10.1.{}.{}", round / 250 % 250, round % 250),
                6 + round % 200,
            );
            let more = json!({"pduSessionId": number, "ipv4Address": address, "ipv6AddressPrefix": null});
            let other = path_of(&post(&process.origin, SM_POLICIES, &context(&more)).await);
            let to = |what: &str| format!("{}/{what}{round}", af.root());
            let short = call(&to("short"), &json!({"ueIpv4": address}));
            path_of(&post(&process.origin, APP_SESSIONS, &short).await);

            let manner = MANNERS[round % 3];
            for consumer in [&smf, &amf, &af] {
                consumer.behave(manner);
            }
            category.set(if category.get() == "gold" {
                "silver"
            } else {
                "gold"
            });
            data_change(&process.origin, &udr).await;
            let event = match app.take() {
                Some(app) => {
                    let ended = post(&process.origin, &format!("{app}/delete"), &json!({})).await;
                    assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.json);
                    None
                }
                None => {
                    let begun = call(&to("call"), &json!({}));
                    app = Some(path_of(&post(&process.origin, APP_SESSIONS, &begun).await));
                    match manner {
                        // It takes what it was sent when it goes on, and asks nothing before.
                        Manner::Hangs => None,
                        _ => {
                            let rules = decision(&process.origin, &session).await["pccRules"].clone();
                            let report = failed(&af_rules(&rules)[..1]);
                            let updated = post(&process.origin, &format!("{session}/update"), &report).await;
                            assert_eq!(updated.status, StatusCode::OK, "{}", updated.json);
                            // The answer changes what the SMF has, as a notification does.
                            let answer = json!({"smPolicyDecision": updated.json});
                            smf.taken.borrow_mut().push(("/smf/update".to_owned(), answer));
                            Some(format!("/call{round}/events/notify"))
                        }
                    }
                }
            };
            let ended = post(&process.origin, &format!("{other}/delete"), &json!({})).await;
            assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.json);
            moment(round).await;
            drop(process);

            for consumer in [&smf, &amf, &af] {
                consumer.behave(Manner::Takes);
            }
            process = Process::start(&settings);
            let expected = without_requests(decision(&process.origin, &session).await);
            let is_held = || {
                let held = held(&created.json, &smf.taken.borrow());
                without_requests(Value::Object(held)) == expected
            };
            awaited(
                &format!("round {round}, {manner:?}: {expected} at the SMF"),
                is_held,
            )
            .await;
            let rfsp = json!(if category.get() == "gold" { 9 } else { 7 });
            let has_rfsp = || {
                let taken = amf.taken.borrow();
                taken.last().is_some_and(|(_, last)| last["rfsp"] == rfsp)
            };
            awaited(
                &format!("round {round}, {manner:?}: rfsp {rfsp} at the AMF"),
                has_rfsp,
            )
            .await;
            af.has_taken(&format!("/short{round}/af/terminate")).await;
            if let Some(event) = event {
                af.has_taken(&event).await;
            }
        }
    });
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
    repeated(rounds(KILLS), async {
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
