use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;

use sbi_proto::Origin;

/// Whether a client may connect to an address for requests to an origin.
type Judge = dyn Fn(&Origin, SocketAddr) -> bool;

/// Decides to which addresses a client may connect. The client queries it after name resolution, for each connection: a
/// name may resolve to another address than at an earlier check.
#[derive(Clone)]
pub struct Guard(Rc<Judge>);

impl Guard {
    /// A guard that permits these addresses for requests to an origin.
    pub fn new(lets_pass: impl Fn(&Origin, SocketAddr) -> bool + 'static) -> Self {
        Self(Rc::new(lets_pass))
    }

    /// Those of the addresses that the client may connect to.
    ///
    /// # Errors
    /// When none may.
    pub(super) fn screen(
        &self,
        origin: &Origin,
        addresses: impl IntoIterator<Item = SocketAddr>,
    ) -> Result<Vec<SocketAddr>, String> {
        let passing: Vec<SocketAddr> = addresses
            .into_iter()
            .filter(|one| (self.0)(origin, *one))
            .collect();
        match passing.is_empty() {
            true => Err("connections to this address are not permitted".to_owned()),
            false => Ok(passing),
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}
