//! The load on a BSF, and the check of its answers.

use std::sync::Arc;

use memchr::memmem;
use rand::Rng;
use rand::rngs::SmallRng;

use super::{Binding, COLLECTION, Sessions, Stock, id_of};
use crate::{Priorities, rx};
use callmodel::PriorityShare;
use callmodel::bsf::Operations;
use loadgen::Weights;
use loadgen::{Answer, Draft, Fault, Interest, Ticket, Workload};

/// The operations, in the order of [`Ticket::operation`]; with priorities, again for each of them.
pub const OPERATIONS: [&str; 3] = ["bindingCreate", "bindingDelete", "bindingDiscover"];
const CREATE: u16 = 0;
const DELETE: u16 = 1;
const DISCOVER: u16 = 2;

/// With fewer bindings than this none is deleted or queried: a queried binding must not be among those that are being
/// deleted.
const FEW: usize = 16;

/// One thread's part of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Number of its first new session.
    pub first: u32,
    /// Distance between the numbers of its new sessions.
    pub step: u32,
}

/// A binding that is being registered, or removed.
#[derive(Debug)]
struct Pending {
    number: u32,
    id: Option<Box<str>>,
}

/// The traffic of one generator thread.
#[derive(Debug)]
pub struct BsfWorkload {
    sessions: Arc<Sessions>,
    weights: Weights,
    priorities: Priorities,
    standing: Stock,
    /// Number of bindings to keep.
    level: usize,
    next: u32,
    step: u32,
    /// By the ticket's `second`.
    pending: Vec<Option<Pending>>,
    free: Vec<u32>,
}

impl BsfWorkload {
    /// Traffic that begins with these bindings.
    #[must_use]
    pub fn new(
        operations: &Operations,
        sessions: Arc<Sessions>,
        standing: impl Into<Stock>,
        part: Part,
    ) -> Self {
        let Operations {
            binding_create,
            binding_delete,
            binding_discover,
        } = *operations;
        let standing = standing.into();
        Self {
            sessions,
            weights: Weights::new([binding_create, binding_delete, binding_discover]),
            priorities: Priorities::new(&[]),
            level: standing.len(),
            standing,
            next: part.first,
            step: part.step,
            pending: Vec::new(),
            free: Vec::new(),
        }
    }

    /// With priorities of the requests.
    #[must_use]
    pub fn with_priorities(self, shares: &[PriorityShare]) -> Self {
        Self {
            priorities: Priorities::new(shares),
            ..self
        }
    }

    /// Existing bindings.
    #[must_use]
    pub fn standing(&self) -> usize {
        self.standing.len()
    }

    /// Draws the next request. The rates of registration and deletion are equal, but by chance one may lead: then it is
    /// held back.
    fn choose(&self, random: &mut SmallRng) -> u16 {
        let drawn = self.weights.draw(random) as u16;
        let (count, level) = (self.standing.len(), self.level.max(4 * FEW));
        match drawn {
            DELETE if count < level / 2 => CREATE,
            DISCOVER if count < FEW => CREATE,
            CREATE if count > level * 2 => DELETE,
            other => other,
        }
    }

    fn create(&mut self, draft: &mut Draft) -> Ticket {
        let number = self.next;
        self.next = number.wrapping_add(self.step);
        draft.method = "POST";
        draft.path.extend_from_slice(COLLECTION.as_bytes());
        draft.content_type = Some("application/json");
        draft.body = self.sessions.body(number);
        Ticket {
            operation: CREATE,
            first: number,
            second: self.begin(Pending { number, id: None }),
        }
    }

    fn delete(&mut self, binding: Binding, draft: &mut Draft) -> Ticket {
        let Binding { number, id } = binding;
        draft.method = "DELETE";
        draft.path.extend_from_slice(COLLECTION.as_bytes());
        draft.path.push(b'/');
        draft.path.extend_from_slice(id.as_bytes());
        let id = Some(id);
        Ticket {
            operation: DELETE,
            first: number,
            second: self.begin(Pending { number, id }),
        }
    }

    fn discover(&self, number: u32, draft: &mut Draft) -> Ticket {
        let query = self.sessions.query(number);
        draft.path.extend_from_slice(query.as_bytes());
        Ticket {
            operation: DISCOVER,
            first: number,
            second: 0,
        }
    }

    fn draw(&mut self, random: &mut SmallRng, draft: &mut Draft) -> Ticket {
        let operation = self.choose(random);
        if operation == DELETE
            && let Some(binding) = self.standing.pop()
        {
            return self.delete(binding, draft);
        }
        if operation == DISCOVER {
            // Of the later half: the oldest are those that are deleted next.
            let count = self.standing.len();
            let drawn = random.random_range(count / 2..count.max(1));
            if let Some(number) = self.standing.number(drawn) {
                return self.discover(number, draft);
            }
        }
        self.create(draft)
    }

    /// Notes a request in flight; returns its slot.
    fn begin(&mut self, pending: Pending) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.pending[at as usize] = Some(pending);
                at
            }
            None => {
                self.pending.push(Some(pending));
                self.pending.len() as u32 - 1
            }
        }
    }

    fn end(&mut self, ticket: &Ticket) -> Option<Pending> {
        let pending = self.pending.get_mut(ticket.second as usize)?.take()?;
        self.free.push(ticket.second);
        Some(pending)
    }

    /// Whether a body is that of the session's binding.
    fn shows(&self, number: u32, body: &[u8]) -> Result<(), Fault> {
        let (_, address) = self.sessions.address(number);
        for wanted in [self.sessions.supi(number), address, self.sessions.pcf(number)] {
            if memmem::find(body, wanted.as_bytes()).is_none() {
                return Err(Fault::Body(format!("the binding does not show {wanted}")));
            }
        }
        Ok(())
    }
}

impl Workload for BsfWorkload {
    fn operations(&self) -> Vec<String> {
        // Threads of one generator name the same ones; the AFs' come after.
        let mut all = self.priorities.names(&OPERATIONS);
        all.extend(self.priorities.names(&rx::OPERATIONS));
        all
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("user-agent", "PCF-lab".to_owned())]
    }

    fn next(&mut self, random: &mut SmallRng, draft: &mut Draft) -> Ticket {
        let ticket = self.draw(random, draft);
        let priority = self.priorities.draw(random);
        if let Some(value) = self.priorities.value(priority) {
            draft
                .headers
                .push(("3gpp-sbi-message-priority", value.to_string()));
        }
        Ticket {
            operation: Priorities::number(priority, ticket.operation, OPERATIONS.len()),
            ..ticket
        }
    }

    fn interest(&mut self, ticket: &Ticket, _status: u16, _length: Option<u64>) -> Interest {
        match kind(ticket) {
            DELETE => Interest::Skip,
            _ => Interest::Body,
        }
    }

    fn located(&mut self, ticket: &Ticket, location: &[u8]) {
        if kind(ticket) != CREATE {
            return;
        }
        let id = std::str::from_utf8(location).ok().and_then(id_of);
        if let Some(Some(creation)) = self.pending.get_mut(ticket.second as usize) {
            creation.id = id.map(Into::into);
        }
    }

    fn judge(&mut self, ticket: &Ticket, answer: &Answer<'_>) -> Result<(), Fault> {
        let body = answer.body.unwrap_or_default();
        match kind(ticket) {
            CREATE => {
                let creation = self.end(ticket);
                if answer.status != 201 {
                    return Err(Fault::Status);
                }
                let Some(Pending { number, id: Some(id) }) = creation else {
                    return Err(Fault::Body("no Location that names a binding".to_owned()));
                };
                self.standing.push(Binding { number, id });
                self.shows(number, body)
            }
            DELETE => {
                let pending = self.end(ticket);
                if answer.status == 204 {
                    return Ok(());
                }
                // A binding whose removal was refused still exists.
                if let Some(Pending { number, id: Some(id) }) = pending
                    && matches!(answer.status, 429 | 503)
                {
                    self.standing.push(Binding { number, id });
                }
                Err(Fault::Status)
            }
            DISCOVER if answer.status == 200 => self.shows(ticket.first, body),
            _ => Err(Fault::Status),
        }
    }

    fn lost(&mut self, ticket: &Ticket) {
        // Whether the binding exists is unknown: the BSF's audit removes it.
        if kind(ticket) != DISCOVER {
            self.end(ticket);
        }
    }
}

/// The operation of a request, whatever its priority.
fn kind(ticket: &Ticket) -> u16 {
    ticket.operation % OPERATIONS.len() as u16
}
