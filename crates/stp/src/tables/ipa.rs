//! Application servers whose links are of IPA: what stands for the routing label that SCCP has not got there.

use settings::Faults;
use ss7_proto::PointCode;

use super::Points;
use crate::config::{ApplicationServer, Config, Link, Role, Traffic, Transport};

/// The label of what a peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// The point code of the application server.
    pub(crate) origin: PointCode,
    pub(crate) destination: PointCode,
}

/// The label of an application server; `None` where its links are of M3UA.
pub(super) fn compile(
    config: &Config,
    server: &ApplicationServer,
    points: &Points,
    at: &str,
    faults: &mut Faults,
) -> Option<Label> {
    let find = |name: &String| config.links.iter().find(|link| link.name == *name);
    let links: Vec<&Link> = server.links.iter().filter_map(find).collect();
    let count = links.iter().filter(|link| link.role == Role::Ipa).count();
    if count == 0 {
        if server.destination.is_some() {
            let what = "is of IPA, and no link of the application server has role `ipa`";
            let right = "no `destination`: messages of M3UA name theirs";
            faults.at(format!("{at}.destination")).say(what, right);
        }
        return None;
    }
    if count < links.len() {
        let what = "are of IPA and of M3UA";
        let right = "links of one of the two";
        faults.at(format!("{at}.links")).say(what, right);
    }
    if links.iter().any(|link| link.transport != Transport::Tcp) {
        let what = "have a link of role `ipa` that is not of TCP";
        faults
            .at(format!("{at}.links"))
            .say(what, "`transport: tcp` for that link");
    }
    // Messages have no routing context by which application servers differ.
    let others = config.application_servers.iter().filter(|other| *other != server);
    let shares = |other: &ApplicationServer| other.links.iter().any(|link| server.links.contains(link));
    if others.into_iter().any(shares) {
        let what = "has a link of role `ipa` that another application server has";
        faults
            .at(format!("{at}.links"))
            .say(what, "links of its own for each");
    }
    if server.point_codes.len() != 1 {
        let what = "is not one point code, which a link of role `ipa` needs as the origin of what comes";
        faults
            .at(format!("{at}.pointCodes"))
            .say(what, "the point code of the peer");
    }
    // The peer whose traffic another one has taken sends no ASPAC by which it could take it back.
    if links.len() > 1 && server.traffic_mode == Traffic::Override {
        let what = "is `override`, which needs ASPAC of the peers, and IPA has none";
        faults
            .at(format!("{at}.trafficMode"))
            .say(what, "`loadshare` or `broadcast`");
    }
    let Some(destination) = &server.destination else {
        let what = "is absent, and a link of role `ipa` has no routing label";
        let right = "the point code that messages of the peer go to";
        faults.at(format!("{at}.destination")).say(what, right);
        return None;
    };
    let parsed = points.plan.parse(destination);
    if let Err(error) = &parsed {
        let right = "the point code that messages of the peer go to";
        faults
            .at(format!("{at}.destination"))
            .say(error.to_string(), right);
    }
    // A mistake in it is that of the route that it makes.
    let origin = points.plan.parse(server.point_codes.first()?);
    Some(Label {
        origin: origin.ok()?,
        destination: parsed.ok()?,
    })
}
