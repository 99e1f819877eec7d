//! Whose NIR, DRR and ends of events are taken: those of the node that was asked, or of a peer of the settings with that role. Any other admitted
//! peer, such as an MME, could end what it has not been asked for.

use diameter::endpoint::Request;
use diameter::proto::known;
use diameter::proto::{Fault, ResultCode};

use crate::config::{Config, Diameter};
use crate::events::Event;
use crate::worker::Worker;

/// A node that is asked for something, and reports about it later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Hss,
    SmsSc,
}

impl Role {
    /// Its Destination-Host and Destination-Realm.
    fn destination(self, settings: &Diameter) -> (Option<&str>, &str) {
        match self {
            Self::Hss => settings.hss(),
            Self::SmsSc => settings.sms_sc(),
        }
    }

    const fn application(self) -> u32 {
        match self {
            Self::Hss => known::application::S6T,
            Self::SmsSc => known::application::T4,
        }
    }
}

/// Whether a request is from the node that has answered in this role (`asked`; none: it has not answered yet, or is not known), or
/// from one of the settings.
pub(super) fn is_from(
    request: &Request,
    config: &Config,
    role: Role,
    asked: Option<&str>,
) -> Result<bool, Fault> {
    let settings = &config.diameter;
    let origin = request.message.require(known::ORIGIN_HOST)?;
    let is_origin = |name: &str| name.eq_ignore_ascii_case(origin);
    let (host, realm) = role.destination(settings);
    if asked.is_some_and(is_origin) || host.is_some_and(is_origin) {
        return Ok(true);
    }
    if asked.is_none() && host.is_none() {
        let of = request.message.require(known::ORIGIN_REALM)?;
        return Ok(of.eq_ignore_ascii_case(realm) && serves(request, role));
    }
    // Another HSS of a pool, to which the SCEF is connected itself.
    let is_configured = settings.peers.iter().any(|peer| is_origin(&peer.host));
    Ok(is_configured && is_neighbour(request, origin) && serves(request, role))
}

/// Whether the peer of the connection announces the application of this role, or is a relay.
fn serves(request: &Request, role: Role) -> bool {
    let peer = request.from.peer();
    peer.is_some_and(|up| up.remote.serves(role.application()))
}

fn is_neighbour(request: &Request, origin: &str) -> bool {
    let peer = request.from.peer();
    peer.is_some_and(|up| up.remote.origin.host.eq_ignore_ascii_case(origin))
}

/// DIAMETER_UNABLE_TO_COMPLY (RFC 6733 §7.1.5): TS 29.336 §8.3 and TS 29.337 §7.3 have no result for it.
pub(super) fn refused(worker: &Worker, role: Role) -> Fault {
    worker.count(Event::SenderRefused);
    let reason = match role {
        Role::Hss => "Origin-Host is not the HSS that has authorized the device or has the event",
        Role::SmsSc => "Origin-Host is not the SMS-SC that has accepted the trigger",
    };
    tracing::warn!(reason, "a request of another node was refused");
    Fault::new(ResultCode::UNABLE_TO_COMPLY, reason)
}
