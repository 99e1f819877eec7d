//! Before the load: the bindings that stand.

use std::net::SocketAddr;
use std::time::Duration;

use super::{Binding, COLLECTION, Sessions, id_of};
use crate::nrf::setup::{SetupError, accept};
use loadgen::client::{Client, Request};

/// The most that a group of registrations may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Registrations sent at once.
const GROUP: usize = 512;

/// Registers the bindings of these sessions.
///
/// # Errors
/// When the BSF cannot be reached or refuses one.
pub fn register(
    bsf: SocketAddr,
    sessions: &Sessions,
    numbers: impl Iterator<Item = u32>,
) -> Result<Vec<Binding>, SetupError> {
    let failed = |source| SetupError::Io { peer: bsf, source };
    let mut client = Client::connect(bsf, PATIENCE).map_err(failed)?;
    let mut bindings = Vec::new();
    let mut numbers = numbers.peekable();
    while numbers.peek().is_some() {
        let group: Vec<u32> = numbers.by_ref().take(GROUP).collect();
        let requests: Vec<Request> = group
            .iter()
            .map(|number| Request::new("POST", COLLECTION).with("application/json", sessions.body(*number)))
            .collect();
        let answers = client.exchange(&requests).map_err(failed)?;
        for (number, answer) in group.into_iter().zip(&answers) {
            let what = || format!("registering the binding of {}", sessions.supi(number));
            accept(answer, &[201], what)?;
            let Some(id) = id_of(&answer.location) else {
                return Err(SetupError::Refused {
                    what: format!("{}: Location {:?} names no binding", what(), answer.location),
                    status: answer.status,
                    text: answer.text(),
                });
            };
            bindings.push(Binding {
                number,
                id: id.into(),
            });
        }
    }
    Ok(bindings)
}
