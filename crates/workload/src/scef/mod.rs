//! What is around an SCEF: SCS/AS at T8 (TS 29.122), MMEs at T6a (TS 29.128), and the books of what is owed and what has come.
//!
//! | file | what it has |
//! |---|---|
//! | `books` | what was accepted, and what has arrived of it |
//! | `servers` | requests of SCS/AS, and the notifications that they get |
//! | `mmes` | requests of MMEs, and the data that they get |
//! | `messages` | messages of MMEs |
//! | `setup` | configurations and subscriptions before the load |

mod books;
pub mod messages;
mod mmes;
mod servers;
pub mod setup;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use settings::Percent;

pub use books::{Books, Kind, Tally};
pub use mmes::Mmes;
pub use servers::{Judging, Servers};

/// The operations, in the order of [`loadgen::Ticket::operation`]: those of SCS/AS, then those of MMEs.
pub const OPERATIONS: [&str; 6] = [
    "mtData",
    "subscribe",
    "unsubscribe",
    "trigger",
    "moData",
    "report",
];

/// Names and numbers that SCS/AS and MMEs share.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Devices.
    pub devices: u32,
    /// SCS/AS; devices are dealt to them in turn.
    pub servers: u32,
    /// MMEs; devices are dealt to them in turn.
    pub mmes: u32,
    /// Octets of data.
    pub octets: usize,
    /// Share of the data for devices that finds its device unreachable.
    pub unreachable: Percent,
    /// Where the first SCS/AS takes notifications, and where the others do.
    pub targets: [SocketAddr; 2],
    /// Paths of the NIDD configurations, by device.
    pub configurations: Vec<String>,
    /// Rates of the operations.
    pub rates: [f64; 6],
}

impl Plan {
    /// The SCS/AS of a device.
    #[must_use]
    pub fn server(&self, device: u32) -> u32 {
        device % self.servers.max(1)
    }

    /// The number of the MME that a device is connected to.
    #[must_use]
    pub fn mme(&self, device: u32) -> u32 {
        device % self.mmes.max(1)
    }

    /// Where an SCS/AS takes notifications about something of this kind and number.
    fn destination(&self, server: u32, kind: char, number: u32) -> String {
        let target = self.targets[usize::from(server != 0)];
        format!("http://{target}/s{server}/{kind}/{number}")
    }

    /// Octets of data with a number.
    fn data(&self, number: u32) -> Vec<u8> {
        let mut data = number.to_be_bytes().to_vec();
        data.resize(self.octets.max(data.len()), 0x5a);
        data
    }

    /// Whether the device of this data is unreachable at first.
    fn is_unreachable(&self, number: u32) -> bool {
        f64::from(number % 100) < self.unreachable.percent()
    }
}

/// The number in data.
fn number_in(data: &[u8]) -> Option<u32> {
    data.first_chunk().map(|number| u32::from_be_bytes(*number))
}
