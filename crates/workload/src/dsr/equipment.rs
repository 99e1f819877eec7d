//! Simulated MMEs at their S13 end (TS 29.272 §6): ME-Identity-Check-Requests about equipment in the lists of a register.

use std::sync::Arc;

use diameter_proto::known::{self, application};
use diameter_proto::{MessageRef, ResultCode};
use rand::Rng;
use rand::rngs::SmallRng;

use super::mme::number_at;
use super::{FIRST_SUBSCRIBER, REALM};
use callmodel::equipment::{EquipmentLists, Listed, Status};
use loadgen::Weights;
use loadgen::diameter::{
    Introduction, Next, Places, Requests, Template, TemplateError, Turn, fill_in, result_of,
};
use loadgen::{Fault, Ticket};

/// DIAMETER_ERROR_EQUIPMENT_UNKNOWN (TS 29.272 §7.4.3.2).
const EQUIPMENT_UNKNOWN: u32 = 5422;
/// The placeholder of the IMEI in the template.
const IMEI: &[u8] = b"99999999999999";
/// The list that decides about the equipment of a request.
const KINDS: [Listed; 4] = [Listed::Range, Listed::Imei, Listed::Pair, Listed::Nowhere];

/// The introduction of an MME at S13.
#[must_use]
pub fn mme(number: usize) -> Introduction {
    Introduction::new(format!("mme{number:03}.{REALM}"), REALM, application::S13)
}

/// The shared requests of all generator threads; made once.
#[derive(Clone, Debug)]
pub struct Checks {
    lists: EquipmentLists,
    weights: Weights,
    template: Template,
    client: Places,
    session: Places,
    imsi: Places,
    imei: usize,
}

impl Checks {
    /// Requests about these lists.
    ///
    /// # Errors
    /// When the template is not a valid message, which a test rules out.
    pub fn new(lists: &EquipmentLists) -> Result<Self, TemplateError> {
        let template = Template::parse(include_str!("ecr.txt"))?;
        let imei = template
            .as_bytes()
            .windows(IMEI.len())
            .position(|part| part == IMEI);
        let missing = || TemplateError::Hole("the IMEI".to_owned());
        Ok(Self {
            weights: Weights::new(KINDS.map(|kind| lists.share(kind).fraction())),
            client: template.places("client"),
            session: template.places("session"),
            imsi: template.places("imsi"),
            imei: imei.ok_or_else(missing)?,
            lists: lists.clone(),
            template,
        })
    }

    /// Bytes of a request.
    #[must_use]
    pub fn message_bytes(&self) -> usize {
        self.template.as_bytes().len()
    }
}

/// The MMEs of one generator thread.
#[derive(Debug)]
pub struct Checkers {
    plan: Arc<Checks>,
    /// Numbers of the MMEs, by connection.
    numbers: Vec<u16>,
    session: u32,
}

impl Checkers {
    /// MMEs with these numbers, a connection each.
    #[must_use]
    pub fn new(plan: Arc<Checks>, numbers: Vec<u16>) -> Self {
        Self {
            plan,
            numbers,
            session: 0,
        }
    }
}

impl Requests for Checkers {
    fn operations(&self) -> Vec<String> {
        KINDS
            .map(|kind| format!("checkEquipment {}", kind.name()))
            .to_vec()
    }

    fn next(&mut self, random: &mut SmallRng, turn: Turn<'_>, out: &mut Vec<u8>) -> Next {
        let plan = &*self.plan;
        let operation = plan.weights.draw(random);
        let kind = KINDS[operation];
        let client = self.numbers[turn.line];
        self.session = self.session.wrapping_add(1);
        let entry = plan
            .lists
            .entry(kind, random.random_range(0..plan.lists.count(kind).max(1)));
        out.extend_from_slice(plan.template.as_bytes());
        fill_in(out, &plan.client, u64::from(client));
        fill_in(out, &plan.session, u64::from(self.session));
        fill_in(out, &plan.imsi, entry.imsi.unwrap_or(FIRST_SUBSCRIBER - 1));
        if let Some(place) = out.get_mut(plan.imei..plan.imei + IMEI.len()) {
            place.copy_from_slice(format!("{:014}", entry.imei).as_bytes());
        }
        Next {
            ticket: Ticket {
                operation: operation as u16,
                first: u32::from(client) << 16
                    | entry.status.map_or(u32::from(u16::MAX), |status| status as u32),
                second: self.session,
            },
            line: turn.line,
        }
    }

    fn judge(&mut self, ticket: &Ticket, answer: MessageRef<'_>) -> Result<(), Fault> {
        let expected = Status::of(ticket.first as u16);
        let code = expected.map_or(EQUIPMENT_UNKNOWN, |_| ResultCode::SUCCESS.0);
        if result_of(answer) != code {
            return Err(Fault::Status);
        }
        let (mut session, mut status) = (None, None);
        for avp in answer.walk().map_while(Result::ok) {
            if avp.is(known::SESSION_ID) {
                session = Some(avp.data);
            } else if avp.is(known::EQUIPMENT_STATUS) {
                status = avp.read::<diameter_proto::kind::Integer32>().ok();
            }
        }
        let mine = session.is_some_and(|id| {
            number_at(id, "mme".len(), 3) == Some(u64::from(ticket.first >> 16))
                && number_at(id, "mme000.".len() + REALM.len() + 1, 10) == Some(u64::from(ticket.second))
        });
        if !mine {
            return Err(Fault::Body(
                "the Session-Id is that of another request".to_owned(),
            ));
        }
        if status != expected.map(|status| status as i32) {
            return Err(Fault::Body(format!(
                "Equipment-Status {status:?} instead of {expected:?}"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diameter_proto::{Dictionary, Message, check};
    use rand::SeedableRng;

    #[test]
    fn requests_are_right_and_name_what_the_lists_have() {
        let lists = EquipmentLists {
            ranges: 100,
            imeis: 100,
            pairs: 100,
            ..EquipmentLists::default()
        };
        let plan = Arc::new(Checks::new(&lists).unwrap());
        let mut checkers = Checkers::new(plan, vec![3, 14]);
        let mut random = SmallRng::seed_from_u64(1);
        let introduction = mme(14);
        let mut seen = [0; KINDS.len()];
        for _ in 0..400 {
            let mut out = Vec::new();
            let turn = Turn {
                line: 1,
                introduction: &introduction,
            };
            let next = checkers.next(&mut random, turn, &mut out);
            seen[usize::from(next.ticket.operation)] += 1;
            let message = Message::parse(&out[..]).unwrap();
            check::check(&message, Dictionary::standard(), check::Strictness::Pedantic).unwrap();
            assert_eq!(
                message.require(known::ORIGIN_HOST).unwrap(),
                introduction.origin.host
            );
            let terminal = message.require(known::TERMINAL_INFORMATION).unwrap();
            let imei: u64 = terminal.require(known::IMEI).unwrap().parse().unwrap();
            let known_only_as_nine = imei / 1_000_000_000_000 == 98;
            assert_eq!(known_only_as_nine, next.ticket.first as u16 == u16::MAX, "{imei}");
        }
        assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    }
}
