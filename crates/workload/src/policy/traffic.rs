//! The load on a PCF, and the judge of its answers.

use std::collections::VecDeque;
use std::sync::Arc;

use rand::Rng;
use rand::rngs::SmallRng;

use super::{Documents, Kind, Service, id_of};
use loadgen::{Answer, Draft, Fault, Interest, Ticket, Weights, Workload};

/// The operations, in the order of [`Ticket::operation`]: three for each service.
pub const OPERATIONS: [&str; 9] = [
    "smCreate", "smUpdate", "smDelete", "amCreate", "amUpdate", "amDelete", "ueCreate", "ueUpdate",
    "ueDelete",
];
const CREATE: u16 = 0;
const UPDATE: u16 = 1;
const DELETE: u16 = 2;
const VERBS: u16 = 3;

/// With fewer associations of a kind than this none is deleted or updated: one that is updated must not be among those
/// that are being deleted.
const FEW: usize = 16;

/// One thread's part of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Number of its first new association.
    pub first: u32,
    /// How far the numbers of its new associations are apart.
    pub step: u32,
}

/// An association that stands, as the PCF named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its number.
    pub number: u32,
    /// `smPolicyId` or `polAssoId`.
    pub id: Box<str>,
}

/// An association on its way to the PCF.
#[derive(Debug)]
struct Creation {
    kind: usize,
    number: u32,
    id: Option<Box<str>>,
}

/// Associations of a kind that stand, the oldest first.
#[derive(Debug)]
struct Stock {
    kind: Kind,
    standing: VecDeque<Standing>,
    /// How many are to stand.
    level: usize,
}

/// The traffic of one generator thread.
#[derive(Debug)]
pub struct PolicyWorkload {
    documents: Arc<Documents>,
    /// By kind and verb.
    weights: Weights,
    stocks: Vec<Stock>,
    next: u32,
    step: u32,
    updates: u32,
    /// By the ticket's `second`.
    creations: Vec<Option<Creation>>,
    free: Vec<u32>,
}

impl PolicyWorkload {
    /// Traffic of these kinds, each with the associations that stand.
    #[must_use]
    pub fn new(documents: Arc<Documents>, kinds: Vec<(Kind, Vec<Standing>)>, part: Part) -> Self {
        let rates = kinds.iter().flat_map(|(kind, _)| {
            let rates = kind.rates;
            [rates.create, rates.update, rates.delete]
        });
        Self {
            documents,
            weights: Weights::new(rates.collect::<Vec<_>>()),
            stocks: kinds
                .into_iter()
                .map(|(kind, standing)| Stock {
                    kind,
                    level: standing.len(),
                    standing: standing.into(),
                })
                .collect(),
            next: part.first,
            step: part.step,
            updates: 0,
            creations: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Associations that stand.
    #[must_use]
    pub fn standing(&self) -> usize {
        self.stocks.iter().map(|stock| stock.standing.len()).sum()
    }

    /// Draws what is sent next: a kind and a verb. As many come as go, but by chance one may run ahead: then it is held
    /// back.
    fn choose(&self, random: &mut SmallRng) -> (usize, u16) {
        let drawn = self.weights.draw(random);
        let (at, verb) = (drawn / usize::from(VERBS), (drawn % usize::from(VERBS)) as u16);
        let Some(stock) = self.stocks.get(at) else {
            return (0, CREATE);
        };
        let (count, level) = (stock.standing.len(), stock.level.max(4 * FEW));
        let verb = match verb {
            DELETE if count < level / 2 => CREATE,
            UPDATE if count < FEW => CREATE,
            CREATE if count > level * 2 => DELETE,
            other => other,
        };
        (at, verb)
    }

    fn create(&mut self, at: usize, draft: &mut Draft) -> Ticket {
        let number = self.next;
        self.next = number.wrapping_add(self.step);
        let kind = &self.stocks[at].kind;
        draft.method = "POST";
        draft.path.extend_from_slice(kind.service.collection().as_bytes());
        draft.content_type = Some("application/json");
        draft.body = self.documents.context(kind, number);
        let operation = operation(kind.service, CREATE);
        let creation = Some(Creation {
            kind: at,
            number,
            id: None,
        });
        let second = match self.free.pop() {
            Some(slot) => {
                self.creations[slot as usize] = creation;
                slot
            }
            None => {
                self.creations.push(creation);
                self.creations.len() as u32 - 1
            }
        };
        Ticket {
            operation,
            first: number,
            second,
        }
    }

    fn delete(&mut self, at: usize, draft: &mut Draft) -> Option<Ticket> {
        let stock = self.stocks.get_mut(at)?;
        let gone = stock.standing.pop_front()?;
        let service = stock.kind.service;
        path(draft, service, &gone.id);
        // TS 29.512 §4.2.5: an SM policy association ends by a custom operation.
        if service == Service::Sm {
            draft.method = "POST";
            draft.path.extend_from_slice(b"/delete");
            draft.content_type = Some("application/json");
            draft.body = bytes::Bytes::from_static(b"{}");
        } else {
            draft.method = "DELETE";
        }
        Some(Ticket {
            operation: operation(service, DELETE),
            first: gone.number,
            second: at as u32,
        })
    }

    fn update(&mut self, at: usize, random: &mut SmallRng, draft: &mut Draft) -> Option<Ticket> {
        let stock = self.stocks.get(at)?;
        // Of the later half: the oldest are those that are deleted next.
        let count = stock.standing.len();
        let one = stock.standing.get(random.random_range(count / 2..count.max(1)))?;
        path(draft, stock.kind.service, &one.id);
        draft.method = "POST";
        draft.path.extend_from_slice(b"/update");
        draft.content_type = Some("application/json");
        draft.body = Documents::update(&stock.kind, self.updates);
        self.updates = self.updates.wrapping_add(1);
        Some(Ticket {
            operation: operation(stock.kind.service, UPDATE),
            first: one.number,
            second: at as u32,
        })
    }

    fn take_creation(&mut self, ticket: &Ticket) -> Option<Creation> {
        let creation = self.creations.get_mut(ticket.second as usize)?.take()?;
        self.free.push(ticket.second);
        Some(creation)
    }
}

fn operation(service: Service, verb: u16) -> u16 {
    let service = match service {
        Service::Sm => 0,
        Service::Am => 1,
        Service::Ue => 2,
    };
    service * VERBS + verb
}

fn path(draft: &mut Draft, service: Service, id: &str) {
    draft.path.extend_from_slice(service.collection().as_bytes());
    draft.path.push(b'/');
    draft.path.extend_from_slice(id.as_bytes());
}

impl Workload for PolicyWorkload {
    fn operations(&self) -> Vec<String> {
        OPERATIONS.map(str::to_owned).into()
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("user-agent", "SMF-lab".to_owned())]
    }

    fn next(&mut self, random: &mut SmallRng, draft: &mut Draft) -> Ticket {
        let (at, verb) = self.choose(random);
        let made = match verb {
            DELETE => self.delete(at, draft),
            UPDATE => self.update(at, random, draft),
            _ => None,
        };
        match made {
            Some(ticket) => ticket,
            None => self.create(at, draft),
        }
    }

    fn interest(&mut self, ticket: &Ticket, _status: u16, _length: Option<u64>) -> Interest {
        match ticket.operation % VERBS {
            DELETE => Interest::Skip,
            _ => Interest::Body,
        }
    }

    fn located(&mut self, ticket: &Ticket, location: &[u8]) {
        if ticket.operation % VERBS != CREATE {
            return;
        }
        if let Some(Some(creation)) = self.creations.get_mut(ticket.second as usize) {
            let collection = self.stocks[creation.kind].kind.service.collection();
            let location = std::str::from_utf8(location).ok();
            creation.id = location.and_then(|one| id_of(one, collection)).map(Into::into);
        }
    }

    fn judge(&mut self, ticket: &Ticket, answer: &Answer<'_>) -> Result<(), Fault> {
        let body = answer.body.unwrap_or_default();
        match ticket.operation % VERBS {
            CREATE => {
                let creation = self.take_creation(ticket);
                if answer.status != 201 {
                    return Err(Fault::Status);
                }
                let Some(Creation {
                    kind,
                    number,
                    id: Some(id),
                }) = creation
                else {
                    return Err(Fault::Body("no Location that names an association".to_owned()));
                };
                let stock = &mut self.stocks[kind];
                stock.standing.push_back(Standing { number, id });
                self.documents.shows(&stock.kind, number, body)
            }
            // TS 29.512 §4.2.4.2: the policy that changes; nothing may have.
            UPDATE if answer.status == 200 => match body.first() {
                Some(b'{') => Ok(()),
                _ => Err(Fault::Body("an update is answered with a policy".to_owned())),
            },
            DELETE if answer.status == 204 => Ok(()),
            _ => Err(Fault::Status),
        }
    }

    fn lost(&mut self, ticket: &Ticket) {
        // Whether the association stands is unknown: it is left to the PCF's audit.
        if ticket.operation % VERBS == CREATE {
            self.take_creation(ticket);
        }
    }
}
