//! Roamers: MMEs of foreign networks that authenticate, register and purge subscribers of the home network (TS 29.272 §5.2), and
//! attackers among them.
//!
//! A roamer is authenticated where it registers, moves only within its country, and is purged where it is registered: nothing of
//! that may be found. Each attack breaks with it in one way, and must be found.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ahash::AHashMap;
use diameter_proto::known::{self, application};
use diameter_proto::{MessageRef, ResultCode};
use rand::Rng;
use rand::rngs::SmallRng;

use super::attacks::{Attack, Attacker};
use super::mme::{Form, addressed, average_bytes, forms};
use callmodel::dsr::DsrModel;
use callmodel::roaming::{HOME, Network, Roaming, foreign};
use loadgen::Weights;
use loadgen::diameter::{Introduction, Next, Requests, TemplateError, Turn, append, fill_in, result_of};
use loadgen::{Fault, Ticket};

/// DIAMETER_AUTHORIZATION_REJECTED (RFC 6733 §7.1.5): what the security application answers to what it has found.
pub const FOUND: u32 = 5003;
/// The IMSI of the first roamer: ten digits behind the home network's code.
const FIRST_ROAMER: u64 = (HOME.mcc as u64 * 100 + HOME.mnc as u64) * 10_000_000_000;
const AIR: u16 = 0;
const ULR: u16 = 1;
const PUR: u16 = 2;
/// Names of the honest requests in reports.
pub const HONEST: [&str; 3] = ["authenticationInformation", "updateLocation", "purge"];
/// With fewer registered roamers than this, none is purged.
const FEW: usize = 8;

/// The network of an MME.
#[must_use]
pub fn network_of(mme: u16) -> Network {
    let all = foreign();
    all[usize::from(mme) % all.len()]
}

/// The introduction of an MME in its network. Attackers announce what they send.
#[must_use]
pub fn roaming_mme(number: u16) -> Introduction {
    let realm = network_of(number).realm();
    let mut own = Introduction::new(format!("mme{number:03}.{realm}"), realm, application::S6A);
    own.applications.push(application::CX);
    own
}

/// The IMSI of a roamer.
fn imsi_of(roamer: u32) -> u64 {
    FIRST_ROAMER + u64::from(roamer)
}

/// The shared requests of all generator threads; made once.
#[derive(Debug)]
pub struct Roams {
    /// By network, in the order of [`foreign`].
    forms: Vec<[Vec<Form>; HONEST.len()]>,
    honest: Weights,
    attacks: Vec<Attack>,
    attack_share: f64,
    subscribers: u32,
    /// Whether attacks are made now.
    attacks_now: AtomicBool,
    /// Attacks that were made, and those that were answered as found.
    attacked: AtomicU64,
    found: AtomicU64,
}

impl Roams {
    /// The requests of a model.
    ///
    /// # Errors
    /// When a template is not a valid message, which a test rules out.
    pub fn new(model: &DsrModel, roaming: &Roaming) -> Result<Self, TemplateError> {
        let forms = foreign().iter().map(|network| {
            let realms = (network.realm(), HOME.realm());
            let made = |text: &str| {
                let text = addressed(text, (&realms.0, &realms.1), network.plmn());
                forms(&text.replace("DESTINATION", ""), model.message_bytes)
            };
            Ok([
                made(include_str!("air.txt"))?,
                made(include_str!("ulr.txt"))?,
                made(include_str!("pur.txt"))?,
            ])
        });
        let mix = &model.mix;
        let honest = [mix.authentication_information, mix.update_location, mix.purge];
        Ok(Self {
            forms: forms.collect::<Result<_, TemplateError>>()?,
            honest: Weights::new(honest.map(|share| share.fraction())),
            attacks: Attack::ALL
                .into_iter()
                .filter(|attack| attack.found_by().iter().any(|measure| roaming.has(measure)))
                .collect(),
            attack_share: roaming.attacks.fraction(),
            subscribers: roaming.subscribers,
            attacks_now: AtomicBool::new(true),
            attacked: AtomicU64::new(0),
            found: AtomicU64::new(0),
        })
    }

    /// Bytes of the requests for location updates, on average.
    #[must_use]
    pub fn message_bytes(&self) -> f64 {
        let forms = self.forms.first();
        forms.map_or(0.0, |forms| average_bytes(&forms[usize::from(ULR)]))
    }

    /// Says whether attacks are made from now on; they are in the beginning.
    pub fn let_attack(&self, attacks: bool) {
        self.attacks_now.store(attacks, Ordering::Relaxed);
    }

    /// Attacks that were answered as found, and all that were made.
    #[must_use]
    pub fn attacks(&self) -> (u64, u64) {
        let found = self.found.load(Ordering::Relaxed);
        (found, self.attacked.load(Ordering::Relaxed))
    }

    fn operations(&self) -> Vec<String> {
        let attacks = self.attacks.iter().filter(|_| self.attack_share > 0.0);
        let attacks = attacks.map(|attack| format!("attack: {}", attack.name()));
        HONEST.map(str::to_owned).into_iter().chain(attacks).collect()
    }
}

/// A roamer, and the connection of the MME where it is.
#[derive(Clone, Copy, Debug)]
struct Roamer {
    number: u32,
    line: usize,
}

/// The MMEs of one generator thread, with roamers of their own.
#[derive(Debug)]
pub struct Roamers {
    plan: Arc<Roams>,
    /// Numbers of the MMEs, by connection, and who they are.
    numbers: Vec<u16>,
    /// The next roamer that has been nowhere yet, and how far the thread's are apart.
    fresh: u32,
    step: u32,
    /// Those that are authenticated, those that are registered, those that were purged. All are without a request in flight.
    authenticated: Vec<Roamer>,
    registered: Vec<Roamer>,
    purged: Vec<Roamer>,
    /// Those with a request in flight, by the number of its session.
    busy: AHashMap<u32, Roamer>,
    session: u32,
}

impl Roamers {
    /// MMEs with these numbers, a connection each; roamers `first`, `first` + `step` and so on are theirs.
    #[must_use]
    pub fn new(plan: Arc<Roams>, numbers: Vec<u16>, first: u32, step: u32) -> Self {
        Self {
            plan,
            numbers,
            fresh: first,
            step: step.max(1),
            authenticated: Vec::new(),
            registered: Vec::new(),
            purged: Vec::new(),
            busy: AHashMap::new(),
            session: 0,
        }
    }

    /// Any MME of the same country, or of another one.
    fn other_line(&self, line: usize, is_same: bool, random: &mut SmallRng) -> Option<usize> {
        let here = network_of(self.numbers[line]).mcc;
        let count = self.numbers.len();
        let start = random.random_range(0..count);
        let mut lines = (start..start + count).map(|at| at % count);
        lines.find(|at| (network_of(self.numbers[*at]).mcc == here) == is_same)
    }

    /// The next honest request and its roamer. Where none fits what was drawn, one is authenticated.
    fn choose(&mut self, line: usize, random: &mut SmallRng) -> (u16, Roamer) {
        let found = match self.plan.honest.draw(random) as u16 {
            ULR => take(&mut self.authenticated, random).map(|roamer| (ULR, roamer)),
            PUR if self.registered.len() > FEW => {
                take(&mut self.registered, random).map(|roamer| (PUR, roamer))
            }
            _ => None,
        };
        found.unwrap_or_else(|| (AIR, self.arriving(line, random)))
    }

    /// A roamer at the MME that authenticates it: one that arrives in a country, or one of that country.
    fn arriving(&mut self, line: usize, random: &mut SmallRng) -> Roamer {
        let is_new = self.fresh < self.plan.subscribers && random.random_bool(0.5);
        let known = if is_new {
            None
        } else if random.random_bool(0.3) {
            take(&mut self.purged, random)
        } else {
            take(&mut self.registered, random)
        };
        if let Some(roamer) = known {
            let line = self.other_line(roamer.line, true, random).unwrap_or(roamer.line);
            return Roamer { line, ..roamer };
        }
        // Where each of the subscribers has a request in flight, further ones come.
        let number = self.fresh;
        self.fresh = self.fresh.wrapping_add(self.step);
        Roamer { number, line }
    }

    /// An attack on a registered roamer, if there is one.
    fn attack(&mut self, random: &mut SmallRng, out: &mut Vec<u8>) -> Option<(u16, usize)> {
        if self.registered.is_empty() || self.plan.attacks.is_empty() {
            return None;
        }
        let victim = self.registered[random.random_range(0..self.registered.len())];
        let drawn = random.random_range(0..self.plan.attacks.len());
        let attack = self.plan.attacks[drawn];
        let line = self.other_line(victim.line, false, random)?;
        let attacker = Attacker {
            own: &roaming_mme(self.numbers[line]),
            network: network_of(self.numbers[line]),
            elsewhere: network_of(self.numbers[victim.line]),
            session: self.session,
            imsi: imsi_of(victim.number),
        };
        append(attacker.message(attack), out);
        self.plan.attacked.fetch_add(1, Ordering::Relaxed);
        Some(((HONEST.len() + drawn) as u16, line))
    }
}

fn take(from: &mut Vec<Roamer>, random: &mut SmallRng) -> Option<Roamer> {
    if from.is_empty() {
        return None;
    }
    let at = random.random_range(0..from.len());
    Some(from.swap_remove(at))
}

impl Requests for Roamers {
    fn operations(&self) -> Vec<String> {
        self.plan.operations()
    }

    fn next(&mut self, random: &mut SmallRng, turn: Turn<'_>, out: &mut Vec<u8>) -> Next {
        self.session = self.session.wrapping_add(1);
        let may_attack = self.plan.attack_share > 0.0 && self.plan.attacks_now.load(Ordering::Relaxed);
        let is_attack = may_attack && random.random_bool(self.plan.attack_share);
        let attacked = if is_attack { self.attack(random, out) } else { None };
        let (operation, line) = attacked.unwrap_or_else(|| {
            let (operation, roamer) = self.choose(turn.line, random);
            let (number, networks) = (self.numbers[roamer.line], &self.plan.forms);
            let forms = &networks[usize::from(number) % networks.len()][usize::from(operation)];
            let form = &forms[random.random_range(0..forms.len())];
            out.extend_from_slice(form.template.as_bytes());
            fill_in(out, &form.client, u64::from(number));
            fill_in(out, &form.session, u64::from(self.session));
            fill_in(out, &form.subscriber, imsi_of(roamer.number));
            self.busy.insert(self.session, roamer);
            (operation, roamer.line)
        });
        Next {
            ticket: Ticket {
                operation,
                first: u32::from(self.numbers[line]),
                second: self.session,
            },
            line,
        }
    }

    fn judge(&mut self, ticket: &Ticket, answer: MessageRef<'_>) -> Result<(), Fault> {
        let id = answer.get(known::SESSION_ID).ok().flatten().unwrap_or_default();
        let number = id.split(';').nth(1).and_then(|number| number.parse().ok());
        if number != Some(ticket.second) {
            return Err(Fault::Body(format!(
                "the Session-Id {id:?} is that of another request"
            )));
        }
        let result = result_of(answer);
        if usize::from(ticket.operation) >= HONEST.len() {
            if result != FOUND {
                return Err(Fault::Body(format!("the attack passed: it is answered {result}")));
            }
            self.plan.found.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let roamer = self.busy.remove(&ticket.second);
        if result != ResultCode::SUCCESS.0 {
            // What is known of the roamer then, the request does not say: it is left alone.
            return Err(Fault::Status);
        }
        let next = match ticket.operation {
            AIR => &mut self.authenticated,
            ULR => &mut self.registered,
            _ => &mut self.purged,
        };
        next.extend(roamer);
        Ok(())
    }

    fn lost(&mut self, ticket: &Ticket) {
        self.busy.remove(&ticket.second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use callmodel::dsr::Mix;
    use diameter_proto::known::command;
    use diameter_proto::{Dictionary, Message, MessageBuilder, check};
    use rand::SeedableRng;
    use settings::Percent;

    fn model() -> DsrModel {
        DsrModel {
            mix: Mix {
                update_location: Percent::new(40.0),
                authentication_information: Percent::new(40.0),
                purge: Percent::new(20.0),
            },
            ..DsrModel::default()
        }
    }

    fn answer(request: &Message<&[u8]>, code: u32) -> Vec<u8> {
        let mut answer = MessageBuilder::answer(request);
        answer
            .put(known::SESSION_ID, request.require(known::SESSION_ID).unwrap())
            .put(known::RESULT_CODE, code);
        let mut out = Vec::new();
        append(answer, &mut out);
        out
    }

    #[test]
    fn roamers_register_where_they_are_authenticated_and_attacks_are_told_apart() {
        let roaming = Roaming {
            subscribers: 50,
            attacks: Percent::new(20.0),
            ..Roaming::default()
        };
        let plan = Arc::new(Roams::new(&model(), &roaming).unwrap());
        // MMEs 0 to 3 are in two networks each of two countries.
        let mut roamers = Roamers::new(plan.clone(), vec![0, 1, 2, 3], 0, 1);
        let mut random = SmallRng::seed_from_u64(1);
        let introduction = roaming_mme(0);
        let (mut place, mut authenticated) = (AHashMap::new(), AHashMap::new());
        let (mut attacks, mut moves) = ([0; Attack::ALL.len()], 0);
        for _ in 0..2000 {
            let mut out = Vec::new();
            let line = random.random_range(0..4);
            let turn = Turn {
                line,
                introduction: &introduction,
            };
            let next = roamers.next(&mut random, turn, &mut out);
            let request = Message::parse(&out[..]).unwrap();
            if let Some(kind) = usize::from(next.ticket.operation).checked_sub(HONEST.len()) {
                attacks[kind] += 1;
                let passed = answer(&request, 2001);
                let passed = Message::parse(&passed[..]).unwrap();
                assert!(roamers.judge(&next.ticket, passed).is_err());
                let found = answer(&request, FOUND);
                roamers
                    .judge(&next.ticket, Message::parse(&found[..]).unwrap())
                    .unwrap();
                continue;
            }
            check::check(&request, Dictionary::standard(), check::Strictness::Pedantic).unwrap();
            let imsi = request.require(known::USER_NAME).unwrap().to_owned();
            let host = request.require(known::ORIGIN_HOST).unwrap().to_owned();
            let country = network_of(next.ticket.first as u16).mcc;
            assert_eq!(host, roaming_mme(next.ticket.first as u16).origin.host);
            match request.command() {
                command::AUTHENTICATION_INFORMATION => {
                    authenticated.insert(imsi, host);
                }
                command::UPDATE_LOCATION => {
                    assert_eq!(authenticated.get(&imsi), Some(&host));
                    let before = place.insert(imsi, (host.clone(), country));
                    assert!(before.as_ref().is_none_or(|before| before.1 == country));
                    moves += usize::from(before.is_some_and(|before| before.0 != host));
                }
                _ => assert_eq!(place.get(&imsi), Some(&(host, country))),
            }
            let good = answer(&request, 2001);
            roamers
                .judge(&next.ticket, Message::parse(&good[..]).unwrap())
                .unwrap();
        }
        assert!(attacks.iter().all(|count| *count > 0), "{attacks:?}");
        assert!(moves > 20 && place.len() >= 40, "{moves} of {}", place.len());
        let made: u64 = attacks.iter().sum();
        assert_eq!(plan.attacks(), (made, made));
    }
}
