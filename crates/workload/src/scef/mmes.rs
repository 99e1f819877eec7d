//! The MMEs of a generator thread: they send data and reports of devices, and take data for devices.

use std::sync::Arc;

use diameter_proto::known::{self, command};
use diameter_proto::{CommandFlags, MessageBuilder, MessageRef, ResultCode};
use rand::Rng;
use rand::rngs::SmallRng;

use super::books::Arrival;
use super::{Books, Kind, OPERATIONS, Plan, messages, number_in};
use callmodel::scef::device_of_imsi;
use loadgen::diameter::{Introduction, Next, Requests, Turn, append, result_of};
use loadgen::{Fault, Ticket, Weights};

/// Positions among the operations.
const MO_DATA: u16 = 4;
const REPORT: u16 = 5;
/// DIAMETER_ERROR_USER_TEMPORARILY_UNREACHABLE (TS 29.128 §6.3.3).
const UNREACHABLE: u32 = 5653;
/// DIAMETER_ERROR_INVALID_EPS_BEARER (TS 29.128 §6.3.3).
const INVALID_BEARER: u32 = 5651;
/// NO_STATE_MAINTAINED (RFC 6733 §8.11).
const NO_STATE: i32 = 1;

/// MMEs with the numbers `first`, `first + step` and so on.
#[derive(Debug)]
pub struct Mmes {
    plan: Arc<Plan>,
    books: Arc<Books>,
    weights: Weights,
    first: u32,
    step: u32,
    /// CMRs so far.
    updates: u32,
}

impl Mmes {
    /// The MMEs of thread number `thread` of `threads`.
    #[must_use]
    pub fn new(plan: &Arc<Plan>, books: &Arc<Books>, (thread, threads): (u32, u32)) -> Self {
        Self {
            weights: Weights::new([plan.rates[usize::from(MO_DATA)], plan.rates[usize::from(REPORT)]]),
            plan: plan.clone(),
            books: books.clone(),
            first: thread,
            step: threads.max(1),
            updates: 0,
        }
    }

    /// The introduction of each connection.
    #[must_use]
    pub fn nodes(&self) -> Vec<Introduction> {
        let numbers = (self.first..self.plan.mmes).step_by(self.step as usize);
        numbers.map(messages::mme).collect()
    }

    /// The number of the MME of a connection.
    fn number(&self, line: usize) -> u32 {
        self.first + line as u32 * self.step
    }

    /// A device of this MME.
    fn device(&self, mme: u32, random: &mut SmallRng) -> u32 {
        let own = self
            .plan
            .devices
            .saturating_sub(mme)
            .div_ceil(self.plan.mmes.max(1));
        mme + self.plan.mmes * random.random_range(0..own.max(1))
    }

    /// Takes data for a device.
    fn take(&mut self, turn: Turn<'_>, request: MessageRef<'_>, out: &mut Vec<u8>) {
        let own = turn.introduction;
        let user = request.get(known::USER_IDENTIFIER).ok().flatten();
        let imsi = user.and_then(|user| user.get(known::USER_NAME).ok().flatten());
        let data = request.get(known::NON_IP_DATA).ok().flatten();
        let (device, number) = (imsi.and_then(device_of_imsi), data.and_then(number_in));
        let (Some(device), Some(number)) = (device, number) else {
            return own.put_result(request, ResultCode::MISSING_AVP, out);
        };
        let to = request.get(known::DESTINATION_HOST).ok().flatten();
        if to.is_some_and(|to| to != own.origin.host) {
            return own.put_result(request, ResultCode::UNABLE_TO_DELIVER, out);
        }
        if self.plan.mme(device) != self.number(turn.line) {
            return own.put_experimental_result(request, INVALID_BEARER, out);
        }
        let is_again = request.flags().contains(CommandFlags::RETRANSMITTED);
        let arrival = self.books.arrived(
            number,
            (request.end_to_end(), is_again),
            (self.plan.server(device), self.plan.is_unreachable(number)),
        );
        match arrival {
            Arrival::Taken => {
                let mut answer = MessageBuilder::answer(&request);
                answer.result(ResultCode::SUCCESS, &own.origin);
                answer.put(known::AUTH_SESSION_STATE, NO_STATE);
                append(answer, out);
            }
            Arrival::Unreachable => {
                own.put_experimental_result(request, UNREACHABLE, out);
                // At once it is reachable again. Identifiers of requests in flight are never 0, so that the CMA is not taken for the
                // answer to another request.
                self.updates = self.updates.wrapping_add(1);
                let mut update = messages::reachable(&own.origin, self.updates, device);
                update.identifiers(0, self.updates);
                append(update, out);
            }
        }
    }
}

impl Requests for Mmes {
    fn operations(&self) -> Vec<String> {
        OPERATIONS.map(str::to_owned).into()
    }

    fn next(&mut self, random: &mut SmallRng, turn: Turn<'_>, out: &mut Vec<u8>) -> Next {
        let own = &turn.introduction.origin;
        let subscription = match self.weights.draw(random) {
            0 => None,
            _ => self.books.any(random),
        };
        let ticket = match subscription {
            Some(subscription) => {
                let number = self.books.number(Kind::Report);
                append(messages::report(own, number, subscription.reference), out);
                Ticket {
                    operation: REPORT,
                    first: number,
                    second: subscription.server,
                }
            }
            None => {
                let number = self.books.number(Kind::Uplink);
                let device = self.device(self.number(turn.line), random);
                append(
                    messages::uplink(own, number, device, &self.plan.data(number)),
                    out,
                );
                Ticket {
                    operation: MO_DATA,
                    first: number,
                    second: self.plan.server(device),
                }
            }
        };
        Next {
            ticket,
            line: turn.line,
        }
    }

    fn judge(&mut self, ticket: &Ticket, answer: MessageRef<'_>) -> Result<(), Fault> {
        if result_of(answer) != ResultCode::SUCCESS.0 {
            return Err(Fault::Status);
        }
        let kind = match ticket.operation {
            REPORT => Kind::Report,
            _ => Kind::Uplink,
        };
        self.books.owe(kind, ticket.first, ticket.second);
        Ok(())
    }

    fn asked(&mut self, turn: Turn<'_>, request: MessageRef<'_>, out: &mut Vec<u8>) {
        match request.command() {
            command::MT_DATA => self.take(turn, request, out),
            _ => turn
                .introduction
                .put_result(request, ResultCode::COMMAND_UNSUPPORTED, out),
        }
    }
}
