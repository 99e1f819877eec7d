//! Simulated MMEs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use diameter_proto::known::{self, application};
use diameter_proto::{MessageRef, ResultCode};
use rand::Rng;
use rand::rngs::SmallRng;

use super::{FIRST_SUBSCRIBER, REALM};
use callmodel::dsr::{Destination, DsrModel, Mix, PriorityShare};
use callmodel::subscribers::SubscriberRanges;
use loadgen::Weights;
use loadgen::diameter::{
    Introduction, Next, Places, Requests, Template, TemplateError, Turn, fill, fill_in, result_of,
};
use loadgen::{Fault, Ticket};

/// Sizes of ULRs around their average.
const SPREAD: [f64; 4] = [0.7, 0.9, 1.1, 1.3];
/// Subscribers of a network without ranges.
const SUBSCRIBERS: u64 = 100_000_000;
/// A ticket whose answer any HSS may give.
const ANY_SERVER: u16 = u16::MAX;

const NAMES: [&str; 3] = ["updateLocation", "authenticationInformation", "purge"];

/// The introduction of an MME.
#[must_use]
pub fn mme(number: usize) -> Introduction {
    Introduction::new(format!("mme{number:03}.{REALM}"), REALM, application::S6A)
}

/// The shared requests of all generator threads; made once.
#[derive(Clone, Debug)]
pub struct Plan {
    names: Vec<String>,
    operations: Vec<Vec<Form>>,
    weights: Weights,
    destination: Destination,
    servers: u16,
    ranges: Option<SubscriberRanges>,
}

/// A template and its holes.
#[derive(Clone, Debug)]
struct Form {
    template: Template,
    client: Places,
    session: Places,
    imsi: Places,
    server: Places,
}

impl From<Template> for Form {
    fn from(template: Template) -> Self {
        Self {
            client: template.places("client"),
            session: template.places("session"),
            imsi: template.places("imsi"),
            server: template.places("server"),
            template,
        }
    }
}

impl Plan {
    /// The requests of a model.
    ///
    /// # Errors
    /// When a template is not a valid message, which a test rules out.
    pub fn new(model: &DsrModel) -> Result<Self, TemplateError> {
        let destination = match model.destination {
            Destination::Host => format!("Destination-Host = \"hss{{server:3}}.{REALM}\""),
            Destination::Realm | Destination::Subscriber => String::new(),
        };
        let addressed = |text: &str| text.replace("DESTINATION", &destination);
        let sizes = |text: &str| -> Result<Vec<Form>, TemplateError> {
            let each = SPREAD.iter().map(|factor| {
                let bytes = (f64::from(model.message_bytes) * factor) as usize;
                fill(text, active_apn, bytes).map(Form::from)
            });
            each.collect()
        };
        if !model.priorities.is_empty() {
            // ULRs alone, an operation for each priority.
            let forms = model.priorities.iter().map(|one| {
                let text = include_str!("ulr.txt")
                    .replace("DESTINATION", &format!("DRMP = {}\n{destination}", one.priority));
                sizes(&text)
            });
            return Ok(Self {
                names: model.priorities.iter().map(PriorityShare::operation).collect(),
                operations: forms.collect::<Result<_, _>>()?,
                weights: Weights::new(model.priorities.iter().map(|one| one.share.fraction())),
                destination: model.destination,
                servers: model.hss,
                ranges: model.subscribers(),
            });
        }
        let Mix {
            update_location,
            authentication_information,
            purge,
        } = model.mix;
        let one = |text: &str| Template::parse(&addressed(text)).map(|t| vec![Form::from(t)]);
        Ok(Self {
            names: NAMES.map(str::to_owned).to_vec(),
            operations: vec![
                sizes(&addressed(include_str!("ulr.txt")))?,
                one(include_str!("air.txt"))?,
                one(include_str!("pur.txt"))?,
            ],
            weights: Weights::new([update_location, authentication_information, purge].map(|p| p.fraction())),
            destination: model.destination,
            servers: model.hss,
            ranges: model.subscribers(),
        })
    }

    /// Bytes of the requests for location updates, on average.
    #[must_use]
    pub fn message_bytes(&self) -> f64 {
        let forms = &self.operations[0];
        let sum: usize = forms.iter().map(|form| form.template.as_bytes().len()).sum();
        sum as f64 / forms.len() as f64
    }
}

/// One more PDN connection that the UE has.
fn active_apn(number: usize) -> String {
    format!(
        "Active-APN = {{ Context-Identifier = {} Service-Selection = \"internet\" \
         Visited-Network-Identifier = 0x6d6e633030312e6d6363303031 }}\n",
        number + 1
    )
}

/// The MMEs of one generator thread.
#[derive(Debug)]
pub struct Mmes {
    plan: Arc<Plan>,
    /// Numbers of the MMEs, by connection.
    numbers: Vec<u16>,
    session: u32,
    /// Requests that reached an HSS, over all threads.
    answered: Arc<AtomicU64>,
}

impl Mmes {
    /// MMEs with these numbers, a connection each; `answered` counts the requests that an HSS has answered.
    #[must_use]
    pub fn new(plan: Arc<Plan>, numbers: Vec<u16>, answered: Arc<AtomicU64>) -> Self {
        Self {
            plan,
            numbers,
            session: 0,
            answered,
        }
    }
}

impl Requests for Mmes {
    fn operations(&self) -> Vec<String> {
        self.plan.names.clone()
    }

    fn next(&mut self, random: &mut SmallRng, turn: Turn<'_>, out: &mut Vec<u8>) -> Next {
        let plan = &*self.plan;
        let operation = plan.weights.draw(random);
        let forms = &plan.operations[operation];
        let form = &forms[random.random_range(0..forms.len())];
        let client = self.numbers[turn.line];
        self.session = self.session.wrapping_add(1);
        let (imsi, server) = match (&plan.ranges, plan.destination) {
            (Some(ranges), Destination::Subscriber) => {
                let imsi = ranges.first + random.random_range(0..ranges.size * ranges.count);
                (imsi, ranges.node_of(imsi).map_or(ANY_SERVER, |node| node as u16))
            }
            (_, destination) => {
                let imsi = FIRST_SUBSCRIBER + random.random_range(0..SUBSCRIBERS);
                let server = match destination {
                    Destination::Host => random.random_range(0..plan.servers),
                    _ => ANY_SERVER,
                };
                (imsi, server)
            }
        };
        out.extend_from_slice(form.template.as_bytes());
        fill_in(out, &form.client, u64::from(client));
        fill_in(out, &form.session, u64::from(self.session));
        fill_in(out, &form.imsi, imsi);
        fill_in(out, &form.server, u64::from(server));
        Next {
            ticket: Ticket {
                operation: operation as u16,
                first: u32::from(client) << 16 | u32::from(server),
                second: self.session,
            },
            line: turn.line,
        }
    }

    fn judge(&mut self, ticket: &Ticket, answer: MessageRef<'_>) -> Result<(), Fault> {
        if result_of(answer) != ResultCode::SUCCESS.0 {
            return Err(Fault::Status);
        }
        let (client, server) = ((ticket.first >> 16) as u16, ticket.first as u16);
        let (mut session, mut origin) = (None, None);
        for avp in answer.walk().map_while(Result::ok) {
            if avp.is(known::SESSION_ID) {
                session = Some(avp.data);
            } else if avp.is(known::ORIGIN_HOST) {
                origin = Some(avp.data);
                break;
            }
        }
        let mine = session.is_some_and(|id| {
            number_at(id, "mme".len(), 3) == Some(u64::from(client))
                && number_at(id, "mme000.".len() + REALM.len() + 1, 10) == Some(u64::from(ticket.second))
        });
        if !mine {
            return Err(Fault::Body(
                "the Session-Id is that of another request".to_owned(),
            ));
        }
        let host = origin.and_then(|host| host.starts_with(b"hss").then(|| number_at(host, 3, 3)).flatten());
        if host.is_none() || server != ANY_SERVER && host != Some(u64::from(server)) {
            let from = String::from_utf8_lossy(origin.unwrap_or_default()).into_owned();
            return Err(Fault::Body(format!(
                "answered by {from:?} instead of hss{server:03}"
            )));
        }
        self.answered.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Writes a number with this count of decimal digits at a position.
pub(super) fn number_at(bytes: &[u8], at: usize, digits: usize) -> Option<u64> {
    bytes.get(at..at + digits)?.iter().try_fold(0, |number, digit| {
        digit
            .is_ascii_digit()
            .then(|| number * 10 + u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use diameter_proto::{Dictionary, Message, check};
    use rand::SeedableRng;

    fn model(destination: Destination) -> DsrModel {
        DsrModel {
            destination,
            mix: Mix {
                update_location: settings::Percent::new(50.0),
                authentication_information: settings::Percent::new(30.0),
                purge: settings::Percent::new(20.0),
            },
            ..DsrModel::default()
        }
    }

    #[test]
    fn requests_are_right_and_of_the_size_asked_for() {
        for destination in [Destination::Host, Destination::Realm, Destination::Subscriber] {
            let plan = Arc::new(Plan::new(&model(destination)).unwrap());
            assert!(
                (plan.message_bytes() / 2200.0 - 1.0).abs() < 0.02,
                "{}",
                plan.message_bytes()
            );
            let mut mmes = Mmes::new(plan, vec![3, 14], Arc::default());
            let mut random = SmallRng::seed_from_u64(1);
            let introduction = mme(14);
            for _ in 0..100 {
                let mut out = Vec::new();
                let turn = Turn {
                    line: 1,
                    introduction: &introduction,
                };
                let next = mmes.next(&mut random, turn, &mut out);
                let message = Message::parse(&out[..]).unwrap();
                check::check(&message, Dictionary::standard(), check::Strictness::Pedantic).unwrap();
                assert_eq!(
                    message.require(known::ORIGIN_HOST).unwrap(),
                    introduction.origin.host
                );
                let host = message.get(known::DESTINATION_HOST).unwrap();
                assert_eq!(host.is_some(), destination == Destination::Host);
                assert_eq!(next.ticket.first >> 16, 14);
            }
        }
    }
}
