//! Programs of others that take part in a comparison, by their command lines.

use std::net::SocketAddr;
use std::process::Command;
use std::str::FromStr;

use super::processes::start;
use crate::run::{Guarded, Place, RigError};

/// A program of others: written `NAME=ADDRESS=COMMAND LINE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// How the result names it.
    pub name: String,
    /// Where it serves HTTP/2 in cleartext.
    pub address: SocketAddr,
    /// What starts it in the foreground, for a shell.
    pub command: String,
}

impl Other {
    /// Starts it on the cores of the functions, and waits until it listens.
    pub(super) fn start(&self, place: &Place) -> Result<Guarded, RigError> {
        let mut command = Command::new("sh");
        // What it prints goes to its log.
        command.arg("-c").arg(format!("exec {} >&2", self.command));
        start(place, &self.name, command, &place.function_cpus, self.address)
    }
}

impl FromStr for Other {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, '=');
        let wanted = || {
            format!(
                "{text:?}: expected NAME=ADDRESS=COMMAND, as in open5gs=127.0.0.13:7777=open5gs-pcfd -c pcf.yaml"
            )
        };
        let mut next = || parts.next().filter(|part| !part.is_empty()).ok_or_else(wanted);
        let (name, address, command) = (next()?, next()?, next()?);
        Ok(Self {
            name: name.to_owned(),
            address: address.parse().map_err(|_| wanted())?,
            command: command.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_program_is_a_name_an_address_and_a_command_line() {
        let other: Other = "open5gs=127.0.0.10:7777=open5gs-nrfd -c nrf.yaml -e x=y"
            .parse()
            .unwrap();
        assert_eq!(other.name, "open5gs");
        assert_eq!(other.address, SocketAddr::from(([127, 0, 0, 10], 7777)));
        assert_eq!(other.command, "open5gs-nrfd -c nrf.yaml -e x=y");
        for wrong in [
            "open5gs-nrfd",
            "a=b",
            "a=127.0.0.1:1=",
            "a=localhost:1=x",
            "=127.0.0.1:1=x",
        ] {
            let error = wrong.parse::<Other>().unwrap_err();
            assert!(error.contains("NAME=ADDRESS=COMMAND"), "{error}");
        }
    }
}
