//! What the counts of instructions ask of a Diameter router: the same requests relayed, and with an application.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use diameter_proto::known::application::{GX, RX};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use crate::diameter_client::DiameterClient;
use crate::run::dsr::{Asking, await_connections, config, start_hss};
use crate::run::{Place, RigError, Simulator, free_address, write_config};
use callmodel::dsr::{Destination, DsrModel, Mix};
use callmodel::pdra::Sessions;
use callmodel::policy::Rates;
use callmodel::resolution::Resolution;
use callmodel::roaming::Roaming;
use loadgen::diameter::Turn;
use settings::Percent;

/// One MME asks, with one HSS behind the router for each subscriber's name.
pub(super) const UPDATE: &str = "Update-Location of 1.2 KB through a router";
/// The same number of AIRs and ULRs.
pub(super) const ROAMING: &str = "roamer authenticated and registered through a router";
/// As many CCR-Is and CCR-Ts as CCR-Us.
pub(super) const SESSIONS: &str = "request of a Gx session through a router";
pub(super) const RELAY: &str = "dsr-relay";
pub(super) const RBAR: &str = "dsr-rbar";
pub(super) const FABR: &str = "dsr-fabr";
pub(super) const ROAMED: &str = "dsr-relay-roaming";
pub(super) const DSA: &str = "dsr-dsa";
pub(super) const RELAYED_SESSIONS: &str = "dsr-relay-gx";
pub(super) const PDRA: &str = "dsr-pdra";
/// All of them, in the order of the rows.
pub(super) const NAMES: [&str; 7] = [RELAY, RBAR, FABR, ROAMED, DSA, RELAYED_SESSIONS, PDRA];
/// Ranges of the guide's smallest router, and as many subscribers as there are in a few of them.
const RANGES: u64 = 5000;
const SUBSCRIBERS: u64 = 20_000;
const SEED: u64 = 29_272;

/// A router with its HSSs.
pub(super) struct Routed {
    pub(super) name: &'static str,
    pub(super) job: &'static str,
    model: DsrModel,
    /// Whether the router has the application that the model asks for.
    is_guarded: bool,
    hss: RefCell<Simulator>,
}

/// Each router that is wanted, in the order of the rows: a relay before what is compared with it.
pub(super) fn all(place: &Place, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Routed>, RigError> {
    let plain = DsrModel {
        message_bytes: 1200,
        hss: 4,
        ..DsrModel::default()
    };
    let by_ranges = DsrModel {
        destination: Destination::Subscriber,
        ranges: RANGES,
        ..plain.clone()
    };
    let one_by_one = DsrModel {
        fabr: Some(Resolution {
            subscribers: SUBSCRIBERS,
            ..Resolution::default()
        }),
        ..by_ranges.clone()
    };
    let roaming = DsrModel {
        destination: Destination::Realm,
        mix: Mix {
            update_location: Percent::new(50.0),
            authentication_information: Percent::new(50.0),
            purge: Percent::new(0.0),
        },
        dsa: Some(Roaming::default()),
        ..plain.clone()
    };
    let sessions = DsrModel {
        hss: 1,
        destination: Destination::Realm,
        pdra: Some(gx()),
        ..plain.clone()
    };
    let rows = [
        (RELAY, UPDATE, plain, true),
        (RBAR, UPDATE, by_ranges, true),
        (FABR, UPDATE, one_by_one, true),
        (ROAMED, ROAMING, roaming.clone(), false),
        (DSA, ROAMING, roaming, true),
        (RELAYED_SESSIONS, SESSIONS, sessions.clone(), false),
        (PDRA, SESSIONS, sessions, true),
    ];
    let wanted = rows.into_iter().filter(|(name, ..)| is_wanted(name));
    let made = wanted.map(|(name, job, model, is_guarded)| {
        Ok(Routed {
            name,
            job,
            is_guarded,
            hss: RefCell::new(start_hss(&model, &within(place, name)?)?),
            model,
        })
    });
    made.collect()
}

/// Gx sessions at one PCRF, without calls and RARs.
fn gx() -> Sessions {
    let rates = |create, update, delete| Rates {
        create,
        update,
        delete,
    };
    let none = Percent::new(0.0);
    Sessions {
        gx: rates(1.0, 2.0, 1.0),
        rx: rates(0.0, 0.0, 0.0),
        gx_rar: none,
        rx_rar: none,
        subscribers: SUBSCRIBERS as u32,
        each: 1,
        sessions: SUBSCRIBERS as u32,
    }
}

/// A folder of its own.
pub(super) fn within(place: &Place, name: &str) -> Result<Place, RigError> {
    let folder = place.folder.join(name);
    std::fs::create_dir_all(&folder).map_err(RigError::io(format!("making {}", folder.display())))?;
    Ok(Place {
        folder,
        ..place.clone()
    })
}

/// Has a router relay what it would give to applications.
pub(super) fn relays(settings: &mut Value, model: &DsrModel) {
    settings["dsr"]["applications"] = json!([]);
    let routing = &mut settings["dsr"]["routing"];
    routing["applicationRouteTables"] = json!([]);
    if model.pdra.is_some() {
        // By the realm, as other requests; a Policy DRA has a pool instead.
        routing["peerRouteTables"][0]["rules"][0]["when"]["applications"] = json!([GX, RX]);
    }
}

impl Routed {
    /// The command line of the router, and where it will listen.
    pub(super) fn command(&self, place: &Place) -> Result<(Command, SocketAddr), RigError> {
        let place = within(place, self.name)?;
        let (address, admin) = (free_address()?, free_address()?);
        let hss = self.hss.borrow().addresses.clone();
        let mut settings = config(&self.model, &place, (address, admin), &hss)?;
        if !self.is_guarded {
            relays(&mut settings, &self.model);
        }
        let file = place.folder.join("dsr.yaml");
        write_config(&file, settings, None)?;
        Ok((place.function("dsr", &file)?, address))
    }

    /// Waits until the router has its HSSs.
    pub(super) fn await_servers(&self) -> Result<(), RigError> {
        await_connections(&mut self.hss.borrow_mut(), self.model.hss)
    }

    /// Sends requests one after the other, each of which must be answered rightly.
    pub(super) fn send(&self, address: SocketAddr, count: u32, patience: Duration) -> Result<(), RigError> {
        let failed = || RigError::io(format!("a request to {address}"));
        let asking = Asking::new(&self.model)?;
        let introduction = asking.nodes(&[0], (0, 1)).remove(0);
        let mut requests = asking.requests(vec![0], (0, 1));
        let mut client =
            DiameterClient::connect(address, introduction.clone(), None, patience).map_err(failed())?;
        let mut random = SmallRng::seed_from_u64(SEED);
        let turn = Turn {
            line: 0,
            introduction: &introduction,
        };
        for number in 1..=count {
            let mut request = Vec::new();
            let next = requests.next(&mut random, turn, &mut request);
            if let Some(place) = request.get_mut(12..20) {
                place.copy_from_slice(&((u64::from(number) << 32) | u64::from(number)).to_be_bytes());
            }
            let judged = client.exchange(&request, number, &mut |answer| {
                requests.judge(&next.ticket, answer)
            });
            if let Err(fault) = judged.map_err(failed())? {
                return Err(RigError::Settings(format!("{}: {fault:?}", self.name)));
            }
        }
        Ok(())
    }
}
