//! What a hostile script sees and says.

use std::cell::RefCell;
use std::fmt::Display;
use std::rc::Rc;
use std::time::Duration;

use sbi::client::{Client, Origin};

use crate::answer::{Ask, Got, client, send};
use crate::dose::Dose;
use crate::stage::World;

/// Missed bars that are kept in words.
const MISSES: usize = 10;

/// The field of an attack: the functions, the dose, and what the script found.
#[derive(Debug)]
pub struct Field {
    /// The functions and their surroundings.
    pub world: Rc<RefCell<World>>,
    /// How much of everything.
    pub dose: Dose,
    /// Where the function under attack listens.
    pub target: std::net::SocketAddr,
    notes: RefCell<Vec<String>>,
    misses: RefCell<Vec<String>>,
}

impl Field {
    /// A field before an attack.
    #[must_use]
    pub fn new(world: Rc<RefCell<World>>, dose: Dose) -> Self {
        let target = world.borrow().target;
        Self {
            world,
            dose,
            target,
            notes: RefCell::default(),
            misses: RefCell::default(),
        }
    }

    /// A number by the dose.
    #[must_use]
    pub fn of<T>(&self, full: T, quick: T) -> T {
        match self.dose {
            Dose::Full => full,
            Dose::Quick => quick,
        }
    }

    /// How long a flood lasts that ends of itself when the function defends itself.
    #[must_use]
    pub fn flood_time(&self) -> Duration {
        self.of(Duration::from_secs(5), Duration::from_millis(1_000))
    }

    /// Something for the report.
    pub fn note(&self, text: impl Display) {
        self.notes.borrow_mut().push(text.to_string());
    }

    /// A bar that was missed.
    pub fn miss(&self, text: impl Display) {
        let (text, mut misses) = (text.to_string(), self.misses.borrow_mut());
        if !misses.contains(&text) && misses.len() < MISSES {
            misses.push(text);
        }
    }

    /// A bar that is missed unless this holds.
    pub fn check(&self, holds: bool, text: impl Display) {
        if !holds {
            self.miss(text);
        }
    }

    /// A well-formed request of the attacker on a connection of its own.
    pub async fn ask(&self, ask: &Ask) -> Got {
        self.ask_as(&client("AF-attacker"), ask).await
    }

    /// A well-formed request of the attacker.
    pub async fn ask_as(&self, client: &Client, ask: &Ask) -> Got {
        match self.origin() {
            Ok(origin) => send(client, &origin, ask).await,
            Err(error) => Got {
                status: 0,
                headers: http::HeaderMap::new(),
                body: error.to_string().into_bytes(),
            },
        }
    }

    /// The origin of the function under attack.
    ///
    /// # Errors
    /// When there is none.
    pub fn origin(&self) -> anyhow::Result<Origin> {
        self.world.borrow().origin()
    }

    /// What was found: notes and missed bars.
    #[must_use]
    pub fn found(&self) -> (Vec<String>, Vec<String>) {
        (self.notes.take(), self.misses.take())
    }
}
