//! A process that runs already: its addresses are taken, and its store is open. SBI listeners share their port
//! (`SO_REUSEPORT`), so a second process must find out before it listens, or it would take some of the requests.

use std::net::SocketAddr;

use crate::config::Config;
use crate::failure::Failure;
use crate::functions::Function;
use crate::inspect;
use crate::ports::{self, Holder};

/// The command by which this program was started: `./target/release/signalbox`, or `signalbox` from the path.
pub(crate) fn program() -> String {
    let program = std::env::args().next();
    program.unwrap_or_else(|| "signalbox".to_owned())
}

/// The option that leads to an admin endpoint, where it is not at its default address.
pub(crate) fn option(function: &Function, admin: SocketAddr) -> String {
    if (function.admin)(&Config::default()) == admin {
        String::new()
    } else {
        format!(" --admin {admin}")
    }
}

/// Refuses to start when one of the functions answers at its admin address already, or another process has one of its
/// ports.
pub(crate) fn refuse_second(wanted: &[&'static Function], config: &Config) -> Result<(), Failure> {
    for function in wanted {
        let admin = (function.admin)(config);
        if admin.port() == 0 {
            continue;
        }
        // Other programs may listen there: then listening fails, with the address.
        let index =
            inspect::identify(admin).filter(|index| index.starts_with(&format!("{} ", function.name)));
        if let Some(index) = index {
            let process = index.rsplit_once("process ").map(|(_, id)| id);
            return Err(Failure::Other(anyhow::anyhow!(
                "{}",
                advice(function.name, admin, process, &option(function, admin))
            )));
        }
    }
    refuse_taken(wanted, config)
}

/// Refuses to start when another process listens where a function is to listen. Two processes of one user would share the
/// port, and each would get some of the connections.
fn refuse_taken(wanted: &[&'static Function], config: &Config) -> Result<(), Failure> {
    for function in wanted {
        for (key, address) in (function.addresses)(config) {
            // The members of a pair have the same addresses, and one of them at a time listens there.
            let is_shared = function.name == "ipfe" && config.ipfe.pair.is_some() && key != "admin";
            if address.port() == 0 || is_shared {
                continue;
            }
            let is_sctp = key.contains("sctpListen");
            let is_taken = if is_sctp {
                stp::is_taken_over_sctp(address)
            } else {
                worker::is_taken(address)
            };
            if !is_taken {
                continue;
            }
            // Who has a port of SCTP is not in the tables of TCP.
            let holder = if is_sctp { None } else { ports::holder(address) };
            let setting = format!("{}.{key}", function.name);
            return Err(Failure::Other(anyhow::anyhow!(
                "{}",
                taken(&setting, address, holder.as_ref())
            )));
        }
    }
    Ok(())
}

fn taken(setting: &str, address: SocketAddr, holder: Option<&Holder>) -> String {
    let stop = match holder.and_then(|holder| holder.process) {
        Some(process) => format!("kill {process}"),
        None => format!("`ss -ltnp` as root names the process of port {}", address.port()),
    };
    let holder = holder.map_or_else(|| "another process".to_owned(), ToString::to_string);
    format!(
        "{setting}: {holder} listens at {address} already.\n\
         \x20 Stop it:         {stop}\n\
         \x20 Run this beside: give {setting} another address"
    )
}

fn advice(function: &str, admin: SocketAddr, process: Option<&str>, option: &str) -> String {
    let program = program();
    let (named, stop) = match process {
        Some(process) => (
            format!(" (process {process})"),
            format!("Ctrl-C in its terminal, or kill {process}"),
        ),
        None => (String::new(), "Ctrl-C in its terminal".to_owned()),
    };
    format!(
        "Signalbox runs already: its {function} answers at http://{admin}{named}.\n\
         \x20 Look inside:     {program} {function} status{option}\n\
         \x20 Stop it:         {stop}\n\
         \x20 Run another one: give it other ports and folders in a file, then {program} up --config FILE"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_names_setting_address_and_process() {
        let address = "127.0.0.1:8020".parse().unwrap();
        let holder = Holder {
            process: Some(4711),
            program: Some("signalbox run scp".to_owned()),
            user: 0,
        };
        let said = taken("scp.listen", address, Some(&holder));
        assert!(
            said.starts_with("scp.listen: process 4711 (signalbox run scp) listens at 127.0.0.1:8020"),
            "{said}"
        );
        assert!(said.contains("kill 4711"), "{said}");
        let foreign = Holder {
            process: None,
            program: None,
            user: 12,
        };
        let said = taken("scp.listen", address, Some(&foreign));
        assert!(
            said.contains("a process of the user 12") && said.contains("8020"),
            "{said}"
        );
    }

    #[test]
    fn advice_names_place_process_and_commands() {
        let admin = "127.0.0.1:9010".parse().unwrap();
        let said = advice("nrf", admin, Some("4711"), " --admin 127.0.0.1:9010");
        for part in [
            "http://127.0.0.1:9010 (process 4711)",
            "kill 4711",
            "nrf status --admin 127.0.0.1:9010",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
