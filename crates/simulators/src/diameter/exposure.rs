//! What an SCEF has to the south beside MMEs: an HSS at its S6t and S6m ends (TS 29.336), an SMS-SC at its T4 end (TS 29.337).

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use diameter_proto::known::{self, application, command};
use diameter_proto::{AvpWriter, CommandFlags, MessageBuilder, MessageRef, ResultCode};
use rand::rngs::SmallRng;

use super::{DiameterSettings, Node, Outcome, Role};
use callmodel::scef::{device_of, imsi};
use loadgen::diameter::{Introduction, append};

/// NO_STATE_MAINTAINED (RFC 6733 §8.11).
const NO_STATE: i32 = 1;
/// DIAMETER_ERROR_USER_UNKNOWN (TS 29.336 §6.3).
const USER_UNKNOWN: u32 = 5001;
/// SUCCESSFUL_TRANSFER of SM-Delivery-Outcome-T4 (TS 29.337 §6.3.1).
const TRANSFERRED: i32 = 2;
/// Delivery reports without an answer that an SMS-SC keeps.
const MOST_UNANSWERED: usize = 1 << 20;

/// The beginning of an answer with success.
fn success(own: &Introduction, request: MessageRef<'_>) -> MessageBuilder {
    let mut answer = MessageBuilder::answer(&request);
    answer.result(ResultCode::SUCCESS, &own.origin);
    answer.put(known::AUTH_SESSION_STATE, NO_STATE);
    answer
}

/// The IMSI of the device that a request is about, by its External Identifier.
fn device(request: MessageRef<'_>) -> Option<String> {
    let user = request.get(known::USER_IDENTIFIER).ok().flatten()?;
    let id = user.get(known::EXTERNAL_IDENTIFIER).ok().flatten()?;
    device_of(id).map(imsi)
}

/// An HSS that knows every device: it authorizes NIDD, configures and deletes events, and names the serving node.
#[derive(Debug, Default)]
pub struct ExposureHss;

impl Role for ExposureHss {
    fn answer(
        &mut self,
        node: Node<'_>,
        request: MessageRef<'_>,
        _: &mut SmallRng,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let own = node.introduction;
        let Some(imsi) = device(request) else {
            own.put_experimental_result(request, USER_UNKNOWN, out);
            return Outcome::bad();
        };
        let mut answer = success(own, request);
        match request.command() {
            command::CONFIGURATION_INFORMATION => {}
            command::NIDD_INFORMATION => {
                answer.group(known::NIDD_AUTHORIZATION_RESPONSE, |group| {
                    group.put(known::USER_NAME, &imsi);
                });
            }
            command::SUBSCRIBER_INFORMATION => {
                answer.group(known::USER_IDENTIFIER, |group| {
                    group.put(known::USER_NAME, &imsi);
                });
                put_serving_node(&mut answer, &own.origin.realm);
            }
            _ => {
                own.put_result(request, ResultCode::COMMAND_UNSUPPORTED, out);
                return Outcome::bad();
            }
        }
        append(answer, out);
        Outcome::default()
    }
}

/// Service-Data with the first MME (TS 29.336 §6.4.5).
fn put_serving_node(answer: &mut AvpWriter, realm: &str) {
    let mme = format!("mme000.{realm}");
    let name = diameter_proto::Dictionary::standard().avp_named("MME-Name");
    answer.group(known::SERVICE_DATA, |data| {
        data.group(known::T4_DATA, |t4| {
            t4.group(known::SERVING_NODE, |serving| {
                if let Some(name) = name {
                    serving.put_raw(name.key, name.flags(), mme.as_bytes());
                }
            });
        });
    });
}

/// An SMS-SC that delivers each trigger, and reports it until the report is answered.
#[derive(Debug)]
pub struct SmsSc {
    after: Duration,
    /// End-to-End Identifier of the next report; unique for longer than a run (RFC 6733 §3).
    next: u32,
    /// Delivery reports without a final answer, by Reference-Number.
    unanswered: BTreeMap<u32, Vec<u8>>,
}

impl SmsSc {
    /// Without triggers.
    #[must_use]
    pub fn new(settings: &DiameterSettings) -> Self {
        Self {
            after: settings.rar_after.duration(),
            next: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(1, |since| (since.as_secs() as u32) << 20 | 1),
            unanswered: BTreeMap::new(),
        }
    }
}

impl Role for SmsSc {
    fn answer(
        &mut self,
        node: Node<'_>,
        request: MessageRef<'_>,
        _: &mut SmallRng,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let own = node.introduction;
        let is_trigger = request.command() == command::DEVICE_TRIGGER;
        let reference = request.get(known::REFERENCE_NUMBER).ok().flatten();
        let (true, Some(reference)) = (is_trigger, reference) else {
            own.put_result(request, ResultCode::UNABLE_TO_COMPLY, out);
            return Outcome::bad();
        };
        self.next = self.next.wrapping_add(1).max(1);
        let Some(report) = delivery_report(own, request, (reference, self.next)) else {
            own.put_result(request, ResultCode::MISSING_AVP, out);
            return Outcome::bad();
        };
        append(success(own, request), out);
        if self.unanswered.len() < MOST_UNANSWERED {
            self.unanswered.insert(reference, report.clone());
        }
        Outcome {
            then: vec![(self.after, report)],
            ..Outcome::default()
        }
    }

    /// Whatever the result is, it is final: an SCEF that does not know a trigger never will.
    fn answered(&mut self, answer: MessageRef<'_>) {
        let id = answer.get(known::SESSION_ID).ok().flatten().unwrap_or_default();
        let reference = id.rsplit(';').next().and_then(|number| number.parse().ok());
        if let Some(reference) = reference {
            self.unanswered.remove(&reference);
        }
    }

    fn connected(&mut self) -> Vec<(Duration, Vec<u8>)> {
        let reports = self.unanswered.values_mut();
        let again = reports.map(|report| {
            // Command flags; the SCEF may have had it (RFC 6733 §3).
            if let Some(flags) = report.get_mut(4) {
                *flags |= CommandFlags::RETRANSMITTED.0;
            }
            (self.after, report.clone())
        });
        again.collect()
    }
}

/// DRR about the trigger of a DTR (TS 29.337 §6.2.5).
fn delivery_report(
    own: &Introduction,
    request: MessageRef<'_>,
    (reference, end_to_end): (u32, u32),
) -> Option<Vec<u8>> {
    let text = |tag| request.get(tag).ok().flatten();
    let (host, realm) = (text(known::ORIGIN_HOST)?, text(known::ORIGIN_REALM)?);
    let user = request.get(known::USER_IDENTIFIER).ok().flatten()?;
    let imsi = user.get(known::USER_NAME).ok().flatten()?;
    let entity = request.get(known::SM_RP_SMEA).ok().flatten()?;
    let mut report = MessageBuilder::request(command::DELIVERY_REPORT, application::T4);
    report
        .identifiers(0, end_to_end)
        .put(known::SESSION_ID, &format!("{};drr;{reference}", own.origin.host))
        .put(known::AUTH_SESSION_STATE, NO_STATE)
        .put(known::ORIGIN_HOST, &own.origin.host)
        .put(known::ORIGIN_REALM, &own.origin.realm)
        .put(known::DESTINATION_HOST, host)
        .put(known::DESTINATION_REALM, realm)
        .group(known::USER_IDENTIFIER, |user| {
            user.put(known::USER_NAME, imsi);
        })
        .put(known::SM_RP_SMEA, entity)
        .put(known::SM_DELIVERY_OUTCOME_T4, TRANSFERRED)
        .put(known::REFERENCE_NUMBER, reference);
    let mut out = Vec::new();
    append(report, &mut out);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use callmodel::scef::external_id;
    use diameter_proto::{Dictionary, Message, check};
    use rand::SeedableRng;

    fn request(code: u32, application: u32, fill: impl FnOnce(&mut AvpWriter)) -> Vec<u8> {
        let mut request = MessageBuilder::request(code, application);
        request
            .put(known::SESSION_ID, "scef.example;1;1")
            .put(known::AUTH_SESSION_STATE, NO_STATE)
            .put(known::ORIGIN_HOST, "scef.example")
            .put(known::ORIGIN_REALM, "example");
        fill(&mut request);
        let mut bytes = Vec::new();
        append(request, &mut bytes);
        bytes
    }

    /// What a role answers, which keeps to its definition; and what follows.
    fn answer(role: &mut dyn Role, application: u32, request: &[u8]) -> (Vec<u8>, Outcome) {
        let own = Introduction::new("node.example", "example", application);
        let node = Node {
            number: 0,
            introduction: &own,
        };
        let (mut out, mut random) = (Vec::new(), SmallRng::seed_from_u64(1));
        let outcome = role.answer(node, Message::parse(request).unwrap(), &mut random, &mut out);
        assert_strict(&out);
        (out, outcome)
    }

    fn assert_strict(message: &[u8]) {
        let message = Message::parse(message).unwrap();
        check::check(&message, Dictionary::standard(), check::Strictness::Pedantic).unwrap();
    }

    #[test]
    fn an_hss_names_the_device() {
        for (code, application) in [
            (command::CONFIGURATION_INFORMATION, application::S6T),
            (command::NIDD_INFORMATION, application::S6T),
            (command::SUBSCRIBER_INFORMATION, application::S6M),
        ] {
            let bytes = request(code, application, |out| {
                out.group(known::USER_IDENTIFIER, |user| {
                    user.put(known::EXTERNAL_IDENTIFIER, &external_id(7));
                });
            });
            let (answer, outcome) = answer(&mut ExposureHss, application, &bytes);
            assert!(!outcome.bad && outcome.then.is_empty());
            let named = answer.windows(15).any(|part| part == imsi(7).as_bytes());
            assert_eq!(named, code != command::CONFIGURATION_INFORMATION);
        }
    }

    #[test]
    fn an_sms_sc_reports_until_it_is_answered() {
        let mut sms_sc = SmsSc::new(&DiameterSettings::default());
        let bytes = request(command::DEVICE_TRIGGER, application::T4, |out| {
            out.group(known::USER_IDENTIFIER, |user| {
                user.put(known::USER_NAME, &imsi(7));
            });
            out.put(known::SM_RP_SMEA, &[7, 0x91])
                .put(known::REFERENCE_NUMBER, 42);
        });
        let (_, outcome) = answer(&mut sms_sc, application::T4, &bytes);
        let [(_, first)] = &outcome.then[..] else {
            panic!("{outcome:?}")
        };
        assert_strict(first);
        let again = sms_sc.connected();
        let repeated = Message::parse(&again[0].1[..]).unwrap();
        assert!(repeated.flags().contains(CommandFlags::RETRANSMITTED));
        assert_eq!(repeated.require(known::REFERENCE_NUMBER), Ok(42));
        let first_one = Message::parse(&first[..]).unwrap();
        assert_eq!(repeated.end_to_end(), first_one.end_to_end());
        let own = Introduction::new("scef.example", "example", application::T4);
        let mut done = Vec::new();
        append(success(&own, Message::parse(&first[..]).unwrap()), &mut done);
        sms_sc.answered(Message::parse(&done[..]).unwrap());
        assert!(sms_sc.connected().is_empty());
    }
}
