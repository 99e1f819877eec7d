//! Before the load: the associations that stand.

use std::net::SocketAddr;
use std::time::Duration;

use super::traffic::Standing;
use super::{Documents, Kind, id_of};
use crate::nrf::setup::{SetupError, accept};
use loadgen::client::{Client, Request};

/// The most that a group of creations may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Creations sent at once.
const GROUP: usize = 64;

/// Creates associations of one kind, with these numbers.
///
/// # Errors
/// When the PCF cannot be reached or refuses one.
pub fn create(
    pcf: SocketAddr,
    documents: &Documents,
    kind: &Kind,
    numbers: impl Iterator<Item = u32>,
) -> Result<Vec<Standing>, SetupError> {
    let failed = |source| SetupError::Io { peer: pcf, source };
    let collection = kind.service.collection();
    let mut client = Client::connect(pcf, PATIENCE).map_err(failed)?;
    let mut standing = Vec::new();
    let mut numbers = numbers.peekable();
    while numbers.peek().is_some() {
        let group: Vec<u32> = numbers.by_ref().take(GROUP).collect();
        let requests: Vec<Request> = group
            .iter()
            .map(|number| {
                Request::new("POST", collection).with("application/json", documents.context(kind, *number))
            })
            .collect();
        let answers = client.exchange(&requests).map_err(failed)?;
        for (number, answer) in group.into_iter().zip(&answers) {
            let what = || format!("creating the association of {}", documents.supi(number));
            accept(answer, &[201], what)?;
            let Some(id) = id_of(&answer.location, collection) else {
                return Err(SetupError::Refused {
                    what: format!("{}: Location {:?} names no association", what(), answer.location),
                    status: answer.status,
                    text: answer.text(),
                });
            };
            standing.push(Standing {
                number,
                id: id.into(),
            });
        }
    }
    Ok(standing)
}
