use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;

/// Says to which addresses a client may connect. It is asked after names are resolved, for each connection: what a
/// name may resolve to another address than at the earlier check.
#[derive(Clone)]
pub struct Guard(Rc<dyn Fn(SocketAddr) -> bool>);

impl Guard {
    /// One that lets these addresses pass.
    pub fn new(lets_pass: impl Fn(SocketAddr) -> bool + 'static) -> Self {
        Self(Rc::new(lets_pass))
    }

    /// Those of the addresses that may be connected to.
    ///
    /// # Errors
    /// When none may.
    pub(super) fn screen(
        &self,
        addresses: impl IntoIterator<Item = SocketAddr>,
    ) -> Result<Vec<SocketAddr>, String> {
        let passing: Vec<SocketAddr> = addresses.into_iter().filter(|one| (self.0)(*one)).collect();
        match passing.is_empty() {
            true => Err("the address may not be connected to".to_owned()),
            false => Ok(passing),
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}
