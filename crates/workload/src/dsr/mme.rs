//! Simulated MMEs.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use diameter_proto::known::{self, application};
use diameter_proto::{MessageRef, ResultCode};
use rand::Rng;
use rand::rngs::SmallRng;

use super::REALM;
use callmodel::dsr::{Destination, Drill, DsrModel};
use callmodel::resolution::{Address, DOMAIN, FIRST_MSISDN, Resolution};
use callmodel::subscribers::SubscriberRanges;
use loadgen::Weights;
use loadgen::diameter::{
    Introduction, Next, Places, Requests, Template, TemplateError, Turn, fill, fill_in, result_of,
};
use loadgen::{Fault, Ticket};
use settings::Percent;

/// The network of the MMEs and HSSs, 001 01 (TS 29.272 §7.3.9).
const PLMN: [u8; 3] = [0x00, 0xf1, 0x10];
/// Sizes of ULRs around their average.
const SPREAD: [f64; 4] = [0.7, 0.9, 1.1, 1.3];
/// Subscribers of a network without ranges.
const SUBSCRIBERS: u64 = 100_000_000;
/// A ticket whose answer any HSS may give.
const ANY_SERVER: u16 = u16::MAX;

/// The introduction of an MME.
#[must_use]
pub fn mme(number: usize) -> Introduction {
    Introduction::new(format!("mme{number:03}.{REALM}"), REALM, application::S6A)
}

/// The shared requests of all generator threads; made once.
#[derive(Clone, Debug)]
pub struct Plan {
    names: Vec<String>,
    operations: Vec<Operation>,
    weights: Weights,
    servers: u16,
    ranges: Option<SubscriberRanges>,
    /// Subscribers that have been provisioned since the start, beside those of a resolution.
    provisioned: Arc<AtomicU64>,
    /// Subscribers that requests may name, beside those.
    known: u64,
    /// Whether requests name subscribers by their public identities.
    has_identities: bool,
    /// Subscribers whose IMSIs are in a damaged block; the last operation is that of their requests.
    damaged: Range<u64>,
}

/// Name of the requests by IMSI whose block is damaged at a database processor.
pub const DAMAGED: &str = "updateLocation by damaged IMSI";

/// Requests of one kind.
#[derive(Clone, Debug)]
struct Operation {
    /// In the sizes that there are.
    forms: Vec<Form>,
    destination: Destination,
    address: Address,
}

impl Operation {
    /// What the names of its senders begin with.
    const fn sender(&self) -> &'static str {
        match self.address {
            Address::Imsi => "mme",
            Address::Msisdn | Address::Name => "icscf",
        }
    }
}

/// A template and its holes.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) template: Template,
    pub(super) client: Places,
    pub(super) session: Places,
    pub(super) subscriber: Places,
    server: Places,
}

impl From<Template> for Form {
    fn from(template: Template) -> Self {
        Self {
            client: template.places("client"),
            session: template.places("session"),
            subscriber: template.places("subscriber"),
            server: template.places("server"),
            template,
        }
    }
}

/// A kind of requests that a model asks for.
struct Kind {
    name: String,
    text: String,
    destination: Destination,
    address: Address,
    share: Percent,
}

impl Kind {
    fn new(name: &str, text: &str, destination: Destination, share: Percent) -> Self {
        let host = match destination {
            Destination::Host => format!("Destination-Host = \"hss{{server:3}}.{REALM}\""),
            Destination::Realm | Destination::Subscriber => String::new(),
        };
        Self {
            name: name.to_owned(),
            text: addressed(text, (REALM, REALM), PLMN).replace("DESTINATION", &host),
            destination,
            address: Address::Imsi,
            share,
        }
    }

    /// Requests of I-CSCFs about a public identity.
    fn located(name: &str, identity: &str, address: Address, share: Percent) -> Self {
        let text = include_str!("lir.txt").replace("IDENTITY", identity);
        Self {
            address,
            ..Self::new(name, &text, Destination::Subscriber, share)
        }
    }

    fn operation(&self, bytes: u32) -> Result<Operation, TemplateError> {
        Ok(Operation {
            forms: forms(&self.text, bytes)?,
            destination: self.destination,
            address: self.address,
        })
    }
}

/// The forms of a message: in sizes around this average where its text has room for more, else one.
pub(super) fn forms(text: &str, bytes: u32) -> Result<Vec<Form>, TemplateError> {
    if !text.contains("{more}") {
        return Ok(vec![Form::from(Template::parse(text)?)]);
    }
    let one = |factor: f64| {
        let bytes = (f64::from(bytes) * factor) as usize;
        fill(text, active_apn, bytes).map(Form::from)
    };
    SPREAD.map(one).into_iter().collect()
}

/// Bytes of a message, on average over its forms.
pub(super) fn average_bytes(forms: &[Form]) -> f64 {
    let sum: usize = forms.iter().map(|form| form.template.as_bytes().len()).sum();
    sum as f64 / forms.len().max(1) as f64
}

/// A request of a node in one realm to the other, about a subscriber in this network (Visited-PLMN-Id).
pub(super) fn addressed(text: &str, (own, home): (&str, &str), visited: [u8; 3]) -> String {
    let [a, b, c] = visited;
    let visited = format!("0x{a:02x}{b:02x}{c:02x}");
    text.replace("OWN", own)
        .replace("HOME", home)
        .replace("VISITED", &visited)
}

/// What the requests of a model are.
fn kinds(model: &DsrModel) -> Vec<Kind> {
    let (ulr, destination) = (include_str!("ulr.txt"), model.destination);
    if let Some(resolution) = &model.fabr {
        let tel = format!("tel:+{{subscriber:{}}}", FIRST_MSISDN.ilog10() + 1);
        let sip = format!("sip:sub{{subscriber:12}}@{DOMAIN}");
        let mut kinds = vec![
            Kind::new(
                "updateLocation by IMSI",
                ulr,
                Destination::Subscriber,
                resolution.by_imsi,
            ),
            Kind::located(
                "locationInfo by MSISDN",
                &tel,
                Address::Msisdn,
                resolution.by_msisdn,
            ),
            Kind::located("locationInfo by name", &sip, Address::Name, resolution.by_name),
            Kind::new(
                "updateLocation to a host",
                ulr,
                Destination::Host,
                resolution.relayed,
            ),
        ];
        if matches!(model.drill, Some(Drill::DamageBlock(_))) {
            // Not drawn: requests by IMSI count here where their subscriber is one of those.
            let none = Percent::new(0.0);
            kinds.push(Kind::new(DAMAGED, ulr, Destination::Subscriber, none));
        }
        return kinds;
    }
    if !model.priorities.is_empty() {
        // ULRs alone, an operation for each priority.
        let each = model.priorities.iter().map(|one| {
            let text = ulr.replace("DESTINATION", &format!("DRMP = {}\nDESTINATION", one.priority));
            Kind::new(&one.operation(), &text, destination, one.share)
        });
        return each.collect();
    }
    let mix = &model.mix;
    vec![
        Kind::new("updateLocation", ulr, destination, mix.update_location),
        Kind::new(
            "authenticationInformation",
            include_str!("air.txt"),
            destination,
            mix.authentication_information,
        ),
        Kind::new("purge", include_str!("pur.txt"), destination, mix.purge),
    ]
}

impl Plan {
    /// The requests of a model.
    ///
    /// # Errors
    /// When a template is not a valid message, which a test rules out.
    pub fn new(model: &DsrModel) -> Result<Self, TemplateError> {
        let kinds = kinds(model);
        let operations = kinds.iter().map(|kind| kind.operation(model.message_bytes));
        let ranges = model.subscribers();
        let resolved = model.fabr.as_ref().map(|resolution| resolution.subscribers);
        let damaged = match (&model.fabr, &model.drill) {
            (Some(resolution), Some(Drill::DamageBlock(_))) => resolution.whole_block(),
            _ => 0..0,
        };
        Ok(Self {
            names: kinds.iter().map(|kind| kind.name.clone()).collect(),
            operations: operations.collect::<Result<_, _>>()?,
            weights: Weights::new(kinds.iter().map(|kind| kind.share.fraction())),
            servers: model.hss,
            known: resolved
                .unwrap_or_else(|| ranges.map_or(SUBSCRIBERS, |ranges| ranges.size * ranges.count)),
            ranges,
            provisioned: Arc::default(),
            has_identities: model.fabr.as_ref().is_some_and(Resolution::has_identities),
            damaged,
        })
    }

    /// Bytes of the requests for location updates, on average.
    #[must_use]
    pub fn message_bytes(&self) -> f64 {
        average_bytes(&self.operations[0].forms)
    }

    /// The count of subscribers that have been provisioned since the start; requests name them too.
    #[must_use]
    pub fn provisioned(&self) -> &Arc<AtomicU64> {
        &self.provisioned
    }

    /// The nodes of these numbers, a connection each: MMEs, and as many I-CSCFs after them where requests name subscribers by
    /// their public identities.
    #[must_use]
    pub fn nodes(&self, numbers: &[u16]) -> Vec<Introduction> {
        let mmes = numbers.iter().map(|number| mme(usize::from(*number)));
        let identities = numbers.iter().filter(|_| self.has_identities);
        mmes.chain(identities.map(|number| {
            let host = format!("icscf{number:03}.{REALM}");
            Introduction::new(host, REALM, application::CX)
        }))
        .collect()
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
        let mut operation = plan.weights.draw(random);
        let kind = &plan.operations[operation];
        let form = &kind.forms[random.random_range(0..kind.forms.len())];
        let nodes = self.numbers.len();
        let (at, is_mme) = (turn.line % nodes.max(1), kind.address == Address::Imsi);
        let client = self.numbers[at];
        self.session = self.session.wrapping_add(1);
        let known = plan.known + plan.provisioned.load(Ordering::Acquire);
        let subscriber = random.random_range(0..known.max(1));
        if operation == 0 && plan.damaged.contains(&subscriber) {
            operation = plan.operations.len() - 1;
        }
        let home = plan
            .ranges
            .and_then(|ranges| ranges.node_of(ranges.first + subscriber));
        let server = match (home, kind.destination) {
            (Some(home), _) => home as u16,
            (None, Destination::Host) => random.random_range(0..plan.servers),
            (None, _) => ANY_SERVER,
        };
        out.extend_from_slice(form.template.as_bytes());
        fill_in(out, &form.client, u64::from(client));
        fill_in(out, &form.session, u64::from(self.session));
        fill_in(out, &form.subscriber, kind.address.first() + subscriber);
        fill_in(out, &form.server, u64::from(server));
        Next {
            ticket: Ticket {
                operation: operation as u16,
                first: u32::from(client) << 16 | u32::from(server),
                second: self.session,
            },
            line: if is_mme { at } else { at + nodes },
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
        let kind = self.plan.operations.get(usize::from(ticket.operation));
        let name = kind.map_or(0, |kind| kind.sender().len());
        let mine = session.is_some_and(|id| {
            number_at(id, name, 3) == Some(u64::from(client))
                && number_at(id, name + "000.".len() + REALM.len() + 1, 10) == Some(u64::from(ticket.second))
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
    use callmodel::dsr::{Mix, OfDatabase};
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

    /// The requests of a model that MME and I-CSCF 14 send, with what is needed to judge their answers.
    fn sent(model: &DsrModel, count: usize) -> Vec<(Next, Vec<u8>)> {
        let plan = Arc::new(Plan::new(model).unwrap());
        let mut mmes = Mmes::new(plan, vec![3, 14], Arc::default());
        let mut random = SmallRng::seed_from_u64(1);
        let introduction = mme(14);
        let turn = Turn {
            line: 1,
            introduction: &introduction,
        };
        let made = (0..count).map(|_| {
            let mut out = Vec::new();
            (mmes.next(&mut random, turn, &mut out), out)
        });
        made.collect()
    }

    #[test]
    fn resolved_requests_name_subscribers_and_relayed_ones_their_hss() {
        let share = settings::Percent::new;
        let model = DsrModel {
            fabr: Some(Resolution {
                subscribers: 1000,
                by_imsi: share(25.0),
                by_msisdn: share(25.0),
                by_name: share(25.0),
                relayed: share(25.0),
                ..Resolution::default()
            }),
            ..model(Destination::Subscriber)
        };
        let homes = model.subscribers().unwrap();
        let mut seen = [0; 4];
        for (next, bytes) in sent(&model, 200) {
            let message = Message::parse(&bytes[..]).unwrap();
            check::check(&message, Dictionary::standard(), check::Strictness::Pedantic).unwrap();
            seen[usize::from(next.ticket.operation)] += 1;
            let identity = message.get(known::PUBLIC_IDENTITY).unwrap();
            let imsi = match identity {
                Some(identity) => callmodel::resolution::imsi_of(identity).unwrap(),
                None => message.require(known::USER_NAME).unwrap().parse().unwrap(),
            };
            assert_eq!(homes.node_of(imsi), Some(u64::from(next.ticket.first as u16)));
            let host = message.get(known::DESTINATION_HOST).unwrap();
            assert_eq!(host.is_some(), next.ticket.operation == 3);
            // MMEs have the first connections, I-CSCFs those after them.
            assert_eq!(next.line, if identity.is_some() { 3 } else { 1 });
            let sender = if identity.is_some() {
                "icscf014."
            } else {
                "mme014."
            };
            assert!(message.require(known::ORIGIN_HOST).unwrap().starts_with(sender));
        }
        assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
    }

    #[test]
    fn requests_about_a_damaged_block_are_apart() {
        let share = settings::Percent::new;
        let model = DsrModel {
            fabr: Some(Resolution {
                subscribers: 6_144,
                by_imsi: share(80.0),
                relayed: share(20.0),
                processors: 2,
                writes: 1,
                ..Resolution::default()
            }),
            drill: Some(Drill::DamageBlock(OfDatabase::default())),
            ..model(Destination::Subscriber)
        };
        let plan = Plan::new(&model).unwrap();
        assert_eq!(plan.names.last().map(String::as_str), Some(DAMAGED));
        let damaged = model.fabr.as_ref().unwrap().whole_block();
        let mut seen = [0; 2];
        for (next, bytes) in sent(&model, 200) {
            let message = Message::parse(&bytes[..]).unwrap();
            let imsi: u64 = message.require(known::USER_NAME).unwrap().parse().unwrap();
            let is_relayed = message.get(known::DESTINATION_HOST).unwrap().is_some();
            let is_apart = usize::from(next.ticket.operation) == plan.names.len() - 1;
            let is_damaged = damaged.contains(&(imsi - model.subscribers().unwrap().first));
            assert_eq!(is_apart, is_damaged && !is_relayed);
            seen[usize::from(is_apart)] += 1;
        }
        assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
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
            for (next, out) in sent(&model(destination), 100) {
                let message = Message::parse(&out[..]).unwrap();
                check::check(&message, Dictionary::standard(), check::Strictness::Pedantic).unwrap();
                assert_eq!(message.require(known::ORIGIN_HOST).unwrap(), mme(14).origin.host);
                let host = message.get(known::DESTINATION_HOST).unwrap();
                assert_eq!(host.is_some(), destination == Destination::Host);
                assert_eq!(next.ticket.first >> 16, 14);
            }
        }
    }
}
