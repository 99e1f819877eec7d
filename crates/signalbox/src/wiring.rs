//! What `signalbox up` makes of a configuration: functions of one process find each other, and are secure where that is
//! wanted.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use console::config::Target;
use dsr::config::{Group, Member, Peer, RealmRoute, RouteList, Routing};
use pcf::config::DiameterPeer;
use serde_json::json;
use settings::Listen;
use stp::config::{PointCodes, Translation};
use tls::TlsFiles;

use crate::config::Config;
use crate::laboratory::traffic;
use crate::secure::Secure;

/// Name of the route list and the route group of the BSF in the router.
const BSF: &str = "bsf";

/// How a configuration is adapted, whenever it is read.
pub(crate) struct Core {
    /// Whether functions find each other; otherwise the configuration stays as it is.
    joined: bool,
    /// Whether an STP without links gets simulated nodes.
    simulated: bool,
    /// Whether it has got them.
    simulates_stp: OnceLock<()>,
    secure: Option<Arc<Secure>>,
    nrf: OnceLock<String>,
    bsf: OnceLock<String>,
    /// Rx of the BSF.
    rx: OnceLock<SocketAddr>,
    /// What a console follows whose settings name no function.
    followed: OnceLock<Vec<Target>>,
}

impl Core {
    pub(crate) fn new(joined: bool, simulated: bool, secure: Option<Arc<Secure>>) -> Self {
        Self {
            joined,
            simulated,
            simulates_stp: OnceLock::new(),
            secure,
            nrf: OnceLock::new(),
            bsf: OnceLock::new(),
            rx: OnceLock::new(),
            followed: OnceLock::new(),
        }
    }

    /// Admin endpoints of the functions of this process and of the file, for a console.
    pub(crate) fn follow(&self, followed: Vec<Target>) {
        let _ = self.followed.set(followed);
    }

    /// A function of this process listens at these interfaces.
    pub(crate) fn found(&self, function: &str, interfaces: &[(&'static str, String)]) {
        let first = |wanted| {
            interfaces
                .iter()
                .find(|(name, _)| *name == wanted)
                .map(|(_, root)| root)
        };
        if !self.joined {
            return;
        }
        // A function listens at one place as long as the process runs.
        match function {
            "nrf" => {
                if let Some(root) = first("SBI") {
                    let _ = self.nrf.set(root.clone());
                    if let Some(secure) = &self.secure {
                        secure.found_nrf(root);
                    }
                }
            }
            "bsf" => {
                if let Some(root) = first("SBI") {
                    let _ = self.bsf.set(root.clone());
                }
                let rx = first("Diameter").and_then(|uri| uri.rsplit('/').next()?.parse().ok());
                if let Some(rx) = rx {
                    let _ = self.rx.set(rx);
                }
            }
            _ => {}
        }
    }

    /// Whether the nodes around the STP are simulated.
    pub(crate) fn simulates_stp(&self) -> bool {
        self.simulates_stp.get().is_some()
    }

    /// Changes a configuration to what runs here.
    pub(crate) fn adapt(&self, config: &mut Config) {
        config.console.may_move = self.joined;
        if let Some(followed) = self
            .followed
            .get()
            .filter(|_| config.console.functions.is_empty())
        {
            config.console.functions.clone_from(followed);
        }
        if self.simulated && surround(&mut config.stp) {
            let _ = self.simulates_stp.set(());
        }
        // A PCF without a BSF registers its bindings at the one beside it. With TLS, only `--secure` has certificates for both.
        let reachable = |root: &&String| self.secure.is_some() || root.starts_with("http://");
        let bsf = self.bsf.get().filter(reachable);
        if let Some(bsf) = bsf.filter(|_| config.pcf.bsf.api_roots.is_empty() && !config.pcf.bsf.discover) {
            config.pcf.bsf.api_roots = vec![bsf.clone()];
        }
        if let Some(secure) = &self.secure {
            secure.apply(config);
            if let Some(rx) = self.rx.get() {
                join_rx(config, *rx, Some(secure.router()));
            }
            return;
        }
        // An SCP with the default settings of its NRF asks the one beside it, on whatever port that is.
        if let Some(nrf) = self.nrf.get()
            && config.scp.nrf.roots == scp::config::Nrf::default().roots
        {
            config.scp.nrf.roots = vec![nrf.clone()];
        }
        // A PCF or a BSF without an NRF registers at the one beside it.
        for roots in [&mut config.pcf.nrf.api_roots, &mut config.bsf.nrf.api_roots] {
            if let Some(nrf) = self.nrf.get().filter(|_| roots.is_empty()) {
                *roots = vec![nrf.clone()];
            }
        }
        if let Some(rx) = self.rx.get().filter(|_| config.bsf.rx.tls.is_none()) {
            join_rx(config, *rx, None);
        }
    }
}

/// Gives an STP whose settings name neither point codes nor peers those of simulated nodes; returns whether it could. Everything
/// else stays as its settings say; without `listen` it takes a free port.
fn surround(stp: &mut stp::Config) -> bool {
    let is_bare = stp.point_codes == PointCodes::default()
        && stp.links.is_empty()
        && stp.application_servers.is_empty()
        && stp.link_sets.is_empty()
        && stp.routes.is_empty();
    let made = serde_json::from_value::<stp::Config>(traffic::transfer_point());
    let Some(made) = made.ok().filter(|_| is_bare) else {
        return false;
    };
    if stp.listen.0.is_empty() {
        stp.listen = Listen(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))]);
    }
    if stp.translation == Translation::default() {
        stp.translation = made.translation;
    }
    stp.point_codes = made.point_codes;
    stp.links = made.links;
    stp.application_servers = made.application_servers;
    true
}

/// Rx requests pass the router and the BSF, which sends them to the PCF of the binding (TS 29.513 §8.2): the router and the
/// PCF connect to the BSF, where they have no peers of the operator's; over TLS where the router has files for that.
fn join_rx(config: &mut Config, rx: SocketAddr, router: Option<TlsFiles>) {
    let host = config.bsf.rx.host.clone();
    let pcf = &mut config.pcf;
    let is_secure = pcf.diameter.tls.is_some();
    if pcf.diameter.enabled && pcf.diameter.peers.is_empty() && is_secure == router.is_some() {
        pcf.diameter.peers = vec![DiameterPeer {
            host: host.clone(),
            addresses: vec![rx],
        }];
        let names = [
            ("pcfDiamHost", &pcf.diameter.host),
            ("pcfDiamRealm", &pcf.diameter.realm),
        ];
        for (member, name) in names {
            let member = pcf.bsf.binding.entry(member);
            member.or_insert_with(|| json!(name));
        }
    }
    if config.dsr.peers.is_empty() && config.dsr.routing == Routing::default() {
        config.dsr.peers = vec![Peer {
            host: host.clone(),
            addresses: vec![rx],
            tls: router,
            ..Peer::default()
        }];
        config.dsr.routing = Routing {
            realm_routes: vec![RealmRoute {
                realm: config.pcf.diameter.realm.clone(),
                route_list: BSF.to_owned(),
                ..RealmRoute::default()
            }],
            route_lists: vec![RouteList {
                name: BSF.to_owned(),
                groups: vec![BSF.to_owned()],
                ..RouteList::default()
            }],
            route_groups: vec![Group {
                by_session: false,
                name: BSF.to_owned(),
                peers: vec![Member {
                    host,
                    ..Member::default()
                }],
            }],
            ..Routing::default()
        };
    }
}

#[cfg(all(test, feature = "lab"))]
mod tests {
    use super::*;

    #[test]
    fn simulated_nodes_leave_what_an_operator_wrote() {
        let mut stp = stp::Config {
            queue: 77,
            subsystems: vec![8],
            ..stp::Config::default()
        };
        stp.mtp.t1 = settings::Period::from_millis(500);
        let wanted = stp.clone();
        assert!(surround(&mut stp));
        assert!(!stp.links.is_empty() && !stp.point_codes.own.is_empty() && !stp.listen.0.is_empty());
        assert_eq!(
            (stp.queue, &stp.subsystems, &stp.mtp),
            (77, &wanted.subsystems, &wanted.mtp)
        );
        // Settings that name the node have the nodes around it as well.
        let mut named = wanted;
        named.point_codes.own = "1-1-1".to_owned();
        assert!(!surround(&mut named) && named.links.is_empty());
    }
}
