//! Where a function sends requests because others say so: checked as it is named, and again before it connects.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use ::sbi::client::{Guard, Origin};
use ahash::AHashSet;
use http::Uri;
use serde::Serialize;

use super::config::Outgoing;

/// What a URI is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Requests go to the URI as it stands; it may have a query.
    Whole,
    /// The function appends segments to its path (`{notificationUri}/update`), which a query would swallow.
    Base,
}

/// Destinations that others may name, by the settings and by what this process listens at.
#[derive(Clone, Debug, Default)]
pub struct Destinations {
    outgoing: Outgoing,
    /// Admin endpoints of this process.
    admins: Vec<SocketAddr>,
    /// The listeners of this function.
    listeners: Vec<SocketAddr>,
    /// The API root of this function.
    root: Option<Origin>,
    /// Whether loopback addresses are in reach.
    loopback: bool,
    /// API roots of the settings.
    named: AHashSet<Origin>,
}

impl Destinations {
    /// Those of a function that listens at these addresses and hands out URIs with this root; `admins` are the admin
    /// endpoints of its process.
    #[must_use]
    pub fn new(
        outgoing: &Outgoing,
        listen: impl Iterator<Item = SocketAddr>,
        root: &str,
        admins: impl Iterator<Item = SocketAddr>,
    ) -> Self {
        let root = root.parse::<Origin>().ok();
        let at_root = root
            .iter()
            .filter_map(|root| Some(SocketAddr::new(literal(root.host())?, root.port())));
        let listen: Vec<SocketAddr> = listen.chain(at_root).collect();
        // A function that is itself reached at the loopback address has consumers there.
        let loopback = listen
            .iter()
            .map(|address| address.ip().to_canonical())
            .any(|ip| ip.is_loopback() || ip.is_unspecified());
        Self {
            outgoing: outgoing.clone(),
            admins: admins.filter(|address| address.port() > 0).collect(),
            listeners: listen.into_iter().filter(|address| address.port() > 0).collect(),
            root,
            loopback,
            named: AHashSet::new(),
        }
    }

    /// Keeps requests from further listeners of the function, which are not of its service-based interface.
    #[must_use]
    pub fn sparing(mut self, listeners: impl Iterator<Item = SocketAddr>) -> Self {
        self.listeners
            .extend(listeners.filter(|address| address.port() > 0));
        self
    }

    /// Permits the function's own listeners: a query that this function is to answer may name it.
    #[must_use]
    pub fn reaching_itself(mut self) -> Self {
        self.listeners.clear();
        self.root = None;
        self
    }

    /// Exempts the API roots that stand in settings, wherever they do: an operator has named them.
    #[must_use]
    pub fn naming(mut self, settings: &impl Serialize) -> Self {
        fn walk(value: &serde_json::Value, named: &mut AHashSet<Origin>) {
            match value {
                serde_json::Value::String(text) => named.extend(text.parse::<Origin>()),
                serde_json::Value::Array(values) => values.iter().for_each(|value| walk(value, named)),
                serde_json::Value::Object(members) => {
                    members.values().for_each(|value| walk(value, named));
                }
                _ => {}
            }
        }
        if let Ok(settings) = serde_json::to_value(settings) {
            walk(&settings, &mut self.named);
        }
        self
    }

    /// Whether requests may go to a URI that another function names.
    ///
    /// # Errors
    /// What was expected.
    pub fn check_uri(&self, text: &str, used: Use) -> Result<(), &'static str> {
        let uri: Uri = text.parse().map_err(|_| ABSOLUTE)?;
        // `Origin` takes no user information (RFC 9110 §4.2.4).
        let origin = Origin::of_uri(&uri).map_err(|_| ABSOLUTE)?;
        if used == Use::Base && uri.query().is_some() {
            return Err("expected a URI without a query, since segments are appended to its path");
        }
        self.check(&origin)
    }

    /// Whether requests may go to an origin that another function names, as far as its text says.
    ///
    /// # Errors
    /// What was expected.
    pub fn check(&self, origin: &Origin) -> Result<(), &'static str> {
        if self.root.as_ref() == Some(origin) {
            return Err(OWN);
        }
        let host = origin.host().trim_end_matches('.');
        let local = |host: &str| host == "localhost" || host.ends_with(".localhost");
        match literal(host) {
            Some(IpAddr::V6(ip)) if has_ipv4(ip) => Err("expected an IPv4 address in dotted form"),
            Some(ip) => self.judge(SocketAddr::new(ip, origin.port())),
            None if local(host) => self.judge(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), origin.port())),
            // What it resolves to is checked before the function connects.
            None => Ok(()),
        }
    }

    /// Whether a connection to an origin may be made at this address, to which its host resolves.
    #[must_use]
    pub fn permits(&self, origin: &Origin, address: SocketAddr) -> bool {
        match self.named.contains(origin) {
            true => self.judge_always(address).is_ok(),
            false => self.judge(address).is_ok(),
        }
    }

    /// Whether a redirection of one host to another may be followed.
    #[must_use]
    pub fn permits_redirection(&self, from: &Uri, to: &Origin) -> bool {
        let same = || Origin::of_uri(from).is_ok_and(|from| from.host() == to.host());
        self.check(to).is_ok() && (self.outgoing.redirect_to_other_hosts || same())
    }

    fn judge(&self, address: SocketAddr) -> Result<(), &'static str> {
        self.judge_always(address)?;
        let ip = address.ip().to_canonical();
        let lists = |networks: &[ipnet::IpNet]| networks.iter().any(|network| network.contains(&ip));
        if lists(&self.outgoing.denied_networks) {
            return Err("expected an address in none of outgoing.deniedNetworks");
        }
        let allowed = lists(&self.outgoing.allowed_networks);
        if !self.outgoing.allowed_networks.is_empty() && !allowed {
            return Err("expected an address in one of outgoing.allowedNetworks");
        }
        if ip.is_loopback() && !self.loopback && !allowed {
            return Err("expected an address that is not a loopback address");
        }
        Ok(())
    }

    /// What holds for the targets of settings as well.
    fn judge_always(&self, address: SocketAddr) -> Result<(), &'static str> {
        let ip = address.ip().to_canonical();
        let unfit = match ip {
            IpAddr::V4(ip) => ip.octets()[0] == 0 || ip.is_multicast() || ip.is_broadcast(),
            IpAddr::V6(ip) => ip.is_unspecified() || ip.is_multicast() || has_ipv4(ip),
        };
        if is_at(&self.admins, address.port(), ip, ip.is_loopback())
            || is_at(&self.listeners, address.port(), ip, false)
        {
            return Err(OWN);
        }
        match unfit {
            true => Err("expected the address of one host"),
            false => Ok(()),
        }
    }
}

const ABSOLUTE: &str = "expected an absolute http or https URI without user information";
const OWN: &str = "expected another place than an admin endpoint or listener of this function";

/// A guard for the client of a worker, by the destinations that are in effect when it connects.
pub fn guard(now: impl Fn() -> Arc<Destinations> + 'static) -> Guard {
    Guard::new(move |origin, address| now().permits(origin, address))
}

/// Whether an address stands for one of IPv4: mapped, compatible (RFC 4291 §2.5.5) or translated (RFC 6052 §2.1).
fn has_ipv4(ip: Ipv6Addr) -> bool {
    let is_compatible = ip.segments()[..6] == [0; 6] && !ip.is_unspecified() && !ip.is_loopback();
    let is_translated = ip.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
    ip.to_ipv4_mapped().is_some() || is_compatible || is_translated
}

/// The address that a host is, where it is none by name.
fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Whether an address and a port lead to one of these; `always`: an address that is taken to lead to all with that port.
fn is_at(own: &[SocketAddr], port: u16, ip: IpAddr, always: bool) -> bool {
    let reaches = |own: &SocketAddr| {
        let at = own.ip().to_canonical();
        always || at == ip || ip.is_unspecified() || (at.is_unspecified() && is_local(ip))
    };
    own.iter().any(|own| own.port() == port && reaches(own))
}

/// Whether an address belongs to this machine: only such a one can be bound.
fn is_local(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(outgoing: &Outgoing, listen: &str) -> Destinations {
        let one = |text: &str| std::iter::once(text.parse().unwrap());
        let root = format!("http://{listen}");
        Destinations::new(outgoing, one(listen), &root, one("127.0.0.1:9040"))
    }

    fn refused(destinations: &Destinations, uri: &str) -> bool {
        destinations.check_uri(uri, Use::Whole).is_err()
    }

    #[test]
    fn some_places_are_never_destinations() {
        let here = of(&Outgoing::default(), "127.0.0.1:8040");
        for bad in [
            "http://169.254.169.254/latest",
            "http://[fe80::1]:80",
            "http://[::ffff:169.254.169.254]",
            "http://[::ffff:127.0.0.1]:7777/n",
            "http://[::127.0.0.1]:7777/n",
            "http://[64:ff9b::7f00:1]:7777/n",
            "http://127.0.0.1:9040",
            "http://127.0.0.2:9040",
            "http://[::1]:9040",
            "http://localhost:9040",
            "http://LOCALHOST.:9040",
            "http://a.localhost:9040",
            "http://0.0.0.0:7777",
            "http://[::]:7777",
            "http://0.1.2.3",
            "http://224.0.0.1",
            "http://[ff02::1]",
            "http://255.255.255.255",
            "http://127.0.0.1:8040/npcf-smpolicycontrol/v1/sm-policies/1",
            "http://smf@10.0.0.1/n",
            "http://a:b@10.0.0.1/n",
            "ftp://10.0.0.1",
            "/n",
        ] {
            assert!(refused(&here, bad), "{bad}");
        }
        for good in [
            "http://10.0.0.1:9040/n?x=1",
            "http://127.0.0.1:7777/n",
            "http://127.0.0.2:8040/n",
            "https://smf.example.org/n",
            "http://[2001:db8::1]/n",
        ] {
            assert!(!refused(&here, good), "{good}");
        }
    }

    #[test]
    fn a_name_counts_by_what_it_resolves_to() {
        let here = of(&Outgoing::default(), "127.0.0.1:8040");
        let name = "http://smf.example.org".parse().unwrap();
        let permits = |address: &str| here.permits(&name, address.parse().unwrap());
        assert!(permits("10.0.0.1:80") && permits("127.0.0.1:7777"));
        for bad in [
            "169.254.169.254:80",
            "127.0.0.1:9040",
            "[::ffff:127.0.0.1]:9040",
            "0.0.0.0:80",
        ] {
            assert!(!permits(bad), "{bad}");
        }
    }

    #[test]
    fn loopback_is_for_functions_that_are_there() {
        let elsewhere = of(&Outgoing::default(), "10.0.0.5:8040");
        assert!(refused(&elsewhere, "http://127.0.0.1:7777") && refused(&elsewhere, "http://[::1]:7777"));
        assert!(refused(&elsewhere, "http://localhost:7777"));
        assert!(!refused(
            &of(&Outgoing::default(), "0.0.0.0:8040"),
            "http://127.0.0.1:7777"
        ));
        let listed = Outgoing {
            allowed_networks: vec!["127.0.0.0/8".parse().unwrap()],
            ..Outgoing::default()
        };
        assert!(!refused(&of(&listed, "10.0.0.5:8040"), "http://127.0.0.1:7777"));
    }

    #[test]
    fn networks_can_be_named_and_settings_are_exempt() {
        let outgoing = Outgoing {
            allowed_networks: vec!["10.0.0.0/8".parse().unwrap()],
            denied_networks: vec!["10.1.0.0/16".parse().unwrap()],
            ..Outgoing::default()
        };
        let settings = serde_json::json!({"nrf": {"apiRoots": ["http://10.1.0.9:8010"]}, "x": "text"});
        let listed = of(&outgoing, "10.0.0.5:8040").naming(&settings);
        assert!(!refused(&listed, "http://10.0.0.1"));
        assert!(refused(&listed, "http://10.1.0.1") && refused(&listed, "http://11.0.0.1"));
        let permits =
            |origin: &str, address: &str| listed.permits(&origin.parse().unwrap(), address.parse().unwrap());
        assert!(permits("http://10.1.0.9:8010", "10.1.0.9:8010"));
        assert!(
            !permits("http://smf.example.org", "11.0.0.1:80"),
            "a name outside of the networks"
        );
        assert!(permits("http://smf.example.org", "10.0.0.1:80"));
    }

    #[test]
    fn segments_follow_a_path_alone() {
        let here = of(&Outgoing::default(), "127.0.0.1:8040");
        assert!(here.check_uri("http://10.0.0.1/n?x=", Use::Base).is_err());
        assert!(here.check_uri("http://10.0.0.1/n", Use::Base).is_ok());
    }

    #[test]
    fn redirections_stay_at_their_host() {
        let permits = |others, to: &str| {
            let outgoing = Outgoing {
                redirect_to_other_hosts: others,
                ..Outgoing::default()
            };
            let from = "http://127.0.0.1:7777/n".parse().unwrap();
            of(&outgoing, "127.0.0.1:8040").permits_redirection(&from, &to.parse().unwrap())
        };
        assert!(permits(false, "http://127.0.0.1:7778"));
        assert!(!permits(false, "http://127.0.0.2:7778") && permits(true, "http://127.0.0.2:7778"));
        assert!(!permits(true, "http://127.0.0.1:9040") && !permits(true, "http://169.254.1.1"));
    }
}
