//! Sessions of subscribers at several PCRFs: our router as a Policy DRA, and freeDiameter with rules of `rt_default`, which choose
//! the PCRF by the Session-Id; and our router as a relay with one PCRF.
//!
//! Each program has PCRFs of its own, which know of one another, serve what belongs at another one, and count it: so all programs
//! get the same requests, whatever they do with them.

mod result;

use std::fmt::Write as _;
use std::net::SocketAddr;

use super::freediameter::{self, Served};
use super::phase::Loaded;
use super::routed::{relays, within};
use super::turns::{TIMEOUT, generator};
use crate::bench::{Site, Turns};
use crate::run::dsr::{self as rig, Asking, await_connections};
use crate::run::{Guarded, Place, Progress, RigError, RunError, Simulator, free_address};
use callmodel::dsr::DsrModel;
use workload::pcrf::REALM;

pub use result::{Comparison, Placement};

/// Names of the programs.
const OURS: &str = "dsr-pdra";
const RELAY: &str = "dsr-relay";
const THEIRS: &str = "freediameter";
/// The call model whose requests they get.
const MODEL: &str = "dsr/pdra";

/// How to compare.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How each is loaded.
    pub turns: Turns,
    /// PCEFs, and as many P-CSCFs, a connection each.
    pub connections: u32,
    /// Where it runs.
    pub site: Site,
}

/// A program with its PCRFs.
struct Routing {
    name: &'static str,
    function: Guarded,
    address: SocketAddr,
    pcrfs: Simulator,
}

/// Compares our Policy DRA with freeDiameter between the same gateways, applications and PCRFs.
///
/// # Errors
/// When something does not start; [`RunError::Missing`] when there is no freeDiameter.
pub fn compare(options: &Settings, progress: &mut Progress) -> Result<Comparison, RunError> {
    freediameter::find()?;
    let place = options.site.place()?;
    let model = model()?;
    let alone = DsrModel {
        hss: 1,
        ..model.clone()
    };
    progress.status("starting the routers and the PCRFs …");
    let started = [
        router(OURS, &model, &place, true)?,
        router(RELAY, &alone, &place, false)?,
        freediameter(&model, &place)?,
    ];
    let (mut relays, mut pcrfs) = (Vec::new(), Vec::new());
    for routing in started {
        let asking = Asking::new(&model)?;
        let traffic = rig::traffic_to(&asking, routing.address, options.connections, 1, TIMEOUT);
        let generator = generator(routing.address, options.connections, traffic, &place)?;
        relays.push(Loaded::new(routing.name, routing.function, generator));
        pcrfs.push((routing.name, routing.pcrfs));
    }
    let measured = options.turns.measure(relays, &place, progress)?;
    let placements = pcrfs.iter_mut().map(|(name, pcrfs)| Placement::of(name, pcrfs));
    let placements = placements.collect::<Result<_, _>>()?;
    let messages = model.pdra.as_ref().map_or(2.0, |sessions| {
        2.0 * (1.0 + sessions.re_auths() / sessions.requests())
    });
    Ok(result::comparison(
        &measured,
        placements,
        messages,
        &place.function_cpus,
        options.turns.rounds,
    ))
}

fn model() -> Result<DsrModel, RigError> {
    let found = callmodel::find(MODEL).map_err(|error| RigError::Settings(error.to_string()))?;
    let model = found.model.dsr;
    model.ok_or_else(|| RigError::Settings(format!("{MODEL} does not model a Diameter router")))
}

/// Our router with its PCRFs, as a Policy DRA or as a relay.
fn router(name: &'static str, model: &DsrModel, place: &Place, is_dra: bool) -> Result<Routing, RigError> {
    let place = within(place, name)?;
    let mut pcrfs = rig::start_serving_pcrfs(model, &place)?;
    let address = free_address()?;
    let one_worker = DsrModel {
        da_mps: 1,
        ..model.clone()
    };
    let mut settings = rig::config(&one_worker, &place, (address, free_address()?), &pcrfs.addresses)?;
    if !is_dra {
        relays(&mut settings, model);
    }
    let function = rig::start_router(&place, settings, None, address)?;
    await_connections(&mut pcrfs, model.hss)?;
    Ok(Routing {
        name,
        function,
        address,
        pcrfs,
    })
}

/// freeDiameter with its PCRFs.
fn freediameter(model: &DsrModel, place: &Place) -> Result<Routing, RigError> {
    let place = within(place, THEIRS)?;
    let mut pcrfs = rig::start_serving_pcrfs(model, &place)?;
    let names = rig::hss_names(model);
    let served = Served {
        clients: REALM,
        rules: rules(|number| names.host(number)),
        names,
        servers: &pcrfs.addresses,
    };
    let (function, address) = freediameter::start(&place, &served)?;
    await_connections(&mut pcrfs, model.hss)?;
    Ok(Routing {
        name: THEIRS,
        function,
        address,
        pcrfs,
    })
}

/// Rules by which each of four PCRFs gets a quarter of the sessions, by the number of the client and that of the session in the
/// Session-Id. They add more than a fitting realm (15), and less than a Destination-Host (100).
fn rules(host: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    let parts = ["02468", "13579"]
        .into_iter()
        .flat_map(|client| ["01468", "23579"].map(|own| (client, own)));
    for (number, (client, own)) in parts.enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "si=[\"^[a-z]+[0-9]*[{client}][.][^;]*;[0-9]*[{own}];\"] : \"{}\" += 50 ;",
            host(number)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_has_one_pcrf_by_the_rules() {
        let text = rules(|number| format!("pcrf{number:03}.example"));
        let patterns: Vec<&str> = text.lines().filter_map(|line| line.split('"').nth(1)).collect();
        assert_eq!(patterns.len(), 4);
        let classes: Vec<(&str, &str)> = patterns
            .iter()
            .map(|pattern| {
                let parts: Vec<&str> = pattern.split(['[', ']']).collect();
                (parts[5], parts[13])
            })
            .collect();
        for client in "0123456789".chars() {
            for own in "0123456789".chars() {
                let fits = |(one, other): &&(&str, &str)| one.contains(client) && other.contains(own);
                assert_eq!(
                    classes.iter().filter(fits).count(),
                    1,
                    "{client} {own}: {classes:?}"
                );
            }
        }
        assert!(text.contains(": \"pcrf003.example\" += 50 ;"), "{text}");
    }
}
