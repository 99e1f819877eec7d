//! The incidents of a bad day: how each begins and ends, and what it may cost.

use std::net::SocketAddr;

use rustix::process::{Pid, Signal, kill_process};

use super::kinds::Kind;
use super::network::{Function, NAMED, Network};
use crate::run::admin::ask;
use crate::run::rig::RigError;
use callmodel::bad_day::Incident;
use simulators::MovedName;

/// Who reports an incident, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported {
    /// The function.
    pub(super) by: &'static str,
    /// Number of its alarm.
    pub(super) alarm: u64,
    /// Whether `/readyz` reports it as well: by its status, or by a remark where the function goes on serving.
    pub(super) readiness: bool,
}

/// Its name in reports.
pub(super) fn name(incident: Incident) -> &'static str {
    match incident {
        Incident::NrfKilled => "NRF killed",
        Incident::ProducerRenewed => "producer renewed",
        Incident::NameMoved => "name moved",
        Incident::DatabaseStopped => "database stopped",
        Incident::CertificateRotated => "certificate rotated wrongly",
        Incident::WrongReload => "wrong reload",
        Incident::DiskFull => "disk full",
        Incident::PeerHangs => "peers hang",
    }
}

/// Requests that cannot be served meanwhile.
pub(super) fn unserved(incident: Incident) -> &'static [Kind] {
    match incident {
        Incident::NrfKilled => &[Kind::Directory, Kind::Registration],
        Incident::DatabaseStopped => &[Kind::Binding],
        Incident::DiskFull => &[Kind::Registration],
        Incident::ProducerRenewed
        | Incident::NameMoved
        | Incident::CertificateRotated
        | Incident::WrongReload
        | Incident::PeerHangs => &[],
    }
}

/// What reports it; `None` where service goes on and nothing is to be done by an operator.
pub(super) fn reported(incident: Incident) -> Option<Reported> {
    let of = |by, alarm, readiness| Some(Reported { by, alarm, readiness });
    match incident {
        Incident::NrfKilled => of("scp", 10_530, true),
        Incident::DatabaseStopped => of("bsf", 10_520, true),
        Incident::CertificateRotated => of("scp", 10_526, false),
        Incident::WrongReload => of("scp", 10_525, false),
        Incident::DiskFull => of("nrf", 10_520, true),
        Incident::PeerHangs => of("dsr", 22_051, false),
        Incident::ProducerRenewed | Incident::NameMoved => None,
    }
}

/// Makes it happen.
pub(super) fn begin(incident: Incident, network: &mut Network) -> Result<(), RigError> {
    match incident {
        // Dropping the process kills it.
        Incident::NrfKilled => network.nrf.process = None,
        Incident::ProducerRenewed => {
            let (number, old) = network.producers.remove(0);
            drop(old);
            network.start_producer()?;
            network.register("DELETE", number, None)?;
        }
        Incident::NameMoved => move_name(network)?,
        Incident::DatabaseStopped => with(network.database.as_ref(), |database| database.stop())?,
        Incident::CertificateRotated => {
            let identity = issue(network)?;
            write(&network.tls.certificate, &identity.certificate)?;
        }
        Incident::WrongReload => {
            let text = read(&network.scp)?;
            let wrong = format!("{text}\n  nonsense: true\n");
            write(&network.scp.file, &wrong)?;
            reload(&network.scp, 422)?;
            // The right one comes back with the end of the incident.
            write(&network.scp.file.with_extension("right"), &text)?;
        }
        Incident::DiskFull => with(network.disk.as_ref(), |disk| disk.fill())?,
        Incident::PeerHangs => signal(network, Signal::STOP)?,
    }
    Ok(())
}

/// Ends its cause.
pub(super) fn end(incident: Incident, network: &mut Network) -> Result<(), RigError> {
    match incident {
        Incident::NrfKilled => {
            let place = network.place.clone();
            network.nrf.start(&place)
        }
        Incident::DatabaseStopped => with(network.database.as_ref(), |database| database.restart()),
        Incident::CertificateRotated => {
            let identity = issue(network)?;
            write(&network.tls.key, &identity.key)?;
            write(&network.tls.certificate, &identity.certificate)
        }
        Incident::WrongReload => {
            let right = network.scp.file.with_extension("right");
            let text = std::fs::read_to_string(&right)
                .map_err(RigError::io(format!("reading {}", right.display())))?;
            write(&network.scp.file, &text)?;
            reload(&network.scp, 200)
        }
        Incident::DiskFull => with(network.disk.as_ref(), |disk| disk.empty()),
        Incident::PeerHangs => signal(network, Signal::CONT),
        Incident::ProducerRenewed | Incident::NameMoved => Ok(()),
    }
}

/// The producer listens elsewhere, then its name leads there, then the old address is gone.
fn move_name(network: &mut Network) -> Result<(), RigError> {
    let (of, to) = NAMED;
    let moved = network.start_named(to, network.named_port())?;
    let names = network.names.take();
    let at = names.as_ref().and_then(|names| names.addresses.first().copied());
    let at = at.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    // The port is free as soon as the first name server has ended.
    drop(names);
    network.names = Some(network.start_names(&[MovedName { of, to }], at)?);
    network.named = Some(moved);
    Ok(())
}

fn with<T>(part: Option<&T>, act: impl FnOnce(&T) -> Result<(), RigError>) -> Result<(), RigError> {
    part.map_or_else(
        || Err(RigError::Settings("the incident cannot be made here".to_owned())),
        act,
    )
}

fn issue(network: &Network) -> Result<tls::authority::Identity, RigError> {
    let issued = network.authority.issue(&["127.0.0.1"]);
    issued.map_err(|error| RigError::Settings(format!("certificates cannot be made: {error}")))
}

fn read(function: &Function) -> Result<String, RigError> {
    let file = &function.file;
    std::fs::read_to_string(file).map_err(RigError::io(format!("reading {}", file.display())))
}

fn write(path: &std::path::Path, text: &str) -> Result<(), RigError> {
    std::fs::write(path, text).map_err(RigError::io(format!("writing {}", path.display())))
}

/// Has a function reload its configuration, which must be answered with this status.
fn reload(function: &Function, wanted: u16) -> Result<(), RigError> {
    match ask(function.admin, "POST", "/config/reload") {
        Some((status, _)) if status == wanted => Ok(()),
        Some((status, body)) => Err(RigError::Settings(format!(
            "the {} answers {status} to a reload in place of {wanted}: {body}",
            function.name
        ))),
        None => Err(RigError::Settings(format!(
            "the {} does not answer a reload",
            function.name
        ))),
    }
}

/// Sends a signal to the last producer of the set and to the last HSS.
fn signal(network: &Network, signal: Signal) -> Result<(), RigError> {
    let producer = network.producers.last().map(|(_, simulator)| simulator.id());
    let hss = network.hss.last().map(crate::run::Simulator::id);
    for id in producer.into_iter().chain(hss) {
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| RigError::Settings(format!("{id} cannot be a process id")))?;
        kill_process(pid, signal).map_err(|error| RigError::io("sending a signal")(error.into()))?;
    }
    Ok(())
}
