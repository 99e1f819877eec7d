//! A process that runs already: its addresses are taken, and its store is open. SBI listeners share their port
//! (`SO_REUSEPORT`), so a second process must find out before it listens, or it would take some of the requests.

use std::net::SocketAddr;

use crate::config::Config;
use crate::failure::Failure;
use crate::functions::Function;
use crate::inspect;

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

/// Refuses to start when one of the functions answers at its admin address already.
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
    Ok(())
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
