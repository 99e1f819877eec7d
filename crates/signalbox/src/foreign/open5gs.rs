//! Open5GS 2.7: a section per function, in one file or in several.

use serde_json::{Value, json};

use super::Made;
use super::free_diameter::{self, Peers};
use super::policies::Policies;
use super::sections::{Sections, address};
use super::source::{Part, Reasons, Source};

/// Functions of both cores.
const FUNCTIONS: [&str; 4] = ["nrf", "scp", "bsf", "pcf"];

/// Why the rest is not carried over, by the end of its path.
const REASONS: Reasons = &[
    ("logger.file", "logs go to stderr, to the journal under systemd"),
    (
        "logger.file.path",
        "logs go to stderr, to the journal under systemd",
    ),
    (
        "logger",
        "of the logs only the level is carried over (log.filter)",
    ),
    (
        "max.ue",
        "memory is bounded, not the number of UEs (server.maxMemory)",
    ),
    ("max.peer", "connections are bounded by server.maxConnections"),
    (
        "max",
        "memory and connections are bounded by settings of their own (server)",
    ),
    ("global", "parameters of its process"),
    (
        "db_uri",
        "the subscribers in its database are not read; write a policy project (docs/policy.md)",
    ),
    (
        "serving",
        "the NRF serves every network whose NFs register; NRFs of other networks are nrf.forwarding",
    ),
    ("delegated", "functions reach the NRF and producers directly"),
    ("sslkeylogfile", "session keys are not written to files"),
    ("client_sslkeylogfile", "session keys are not written to files"),
    ("tls.server", "the server has no TLS (scheme)"),
    ("tls.client", "no NRF is reached by TLS (scheme)"),
    ("tls", "TLS is not in use (scheme)"),
    (
        "verify_client_cacert",
        "clients need no certificate (verify_client)",
    ),
    ("insecure_skip_verify", "certificates are always verified"),
    (
        "metrics",
        "metrics are at the admin address of the function (/metrics)",
    ),
    ("family", "the address says which family it is of"),
    ("dev", "an address is needed in place of a device: set listen"),
    ("option", "socket options of the server have no setting"),
    (
        "interface",
        "an address is needed in place of a device: set listen",
    ),
    ("service_name", "all services of the function are offered"),
    ("qos_profiles", "QoS of media is pcf.media (docs/pcf.md)"),
    (
        "scp.info",
        "ports and domains of an SCP are scp.nrf.scpDomains and its listen addresses",
    ),
    ("n32", "there is no SEPP"),
    ("sepp", "the SCP reaches other networks by scp.networks"),
    ("amf", "this function stays with Open5GS (docs/open5gs.md)"),
    ("smf", "this function stays with Open5GS (docs/open5gs.md)"),
    ("upf", "this function stays with Open5GS (docs/open5gs.md)"),
    ("ausf", "this function stays with Open5GS (docs/open5gs.md)"),
    ("udm", "this function stays with Open5GS (docs/open5gs.md)"),
    ("udr", "this function stays with Open5GS (docs/open5gs.md)"),
    ("nssf", "this function stays with Open5GS (docs/open5gs.md)"),
    ("hss", "this function stays with Open5GS (docs/open5gs.md)"),
    ("mme", "this function stays with Open5GS (docs/open5gs.md)"),
    ("sgwc", "this function stays with Open5GS (docs/open5gs.md)"),
    ("sgwu", "this function stays with Open5GS (docs/open5gs.md)"),
];

/// Makes our sections of these files.
pub(crate) fn carry(sources: &[Source], peers: &mut [Peers]) -> Made {
    let mut sections = Sections::default();
    let mut policies = Policies::default();
    for source in sources {
        let root = source.root();
        for name in FUNCTIONS {
            let part = root.get(name);
            if part.is_object() {
                function(&mut sections, name, &part);
                sections.set_level(name, &root.at(&["logger", "level"]));
                policies.read(&part.get("policy"));
            }
        }
    }
    let has_pcrf = sources.iter().any(|source| source.root().get("pcrf").is_there());
    if sections.has("pcf") && !has_pcrf {
        sections.set("pcf", &["diameter", "enabled"], false);
    }
    for source in sources {
        let part = source.root().get("pcrf");
        if part.is_there() {
            pcrf(&mut sections, &part, peers);
            sections.set_level("pcf", &source.root().at(&["logger", "level"]));
            policies.read_4g(&part.get("policy"));
        }
    }
    let nrf = own_root(&sections);
    sections.use_nrf(nrf.as_deref());
    for source in sources {
        indirect(&sections, source);
    }
    if sections.has("pcf") && !sections.get("pcf", &["nrf", "apiRoots"]).is_null() {
        sections.set("pcf", &["bsf", "discover"], true);
    }
    let project = policies.project();
    if project.is_some() {
        sections.set("pcf", &["policy", "sm"], "policy");
        // Open5GS refuses a session that no policy fits, too.
        sections.set("pcf", &["policy", "fallback"], "refuse");
    }
    for source in sources {
        source.refuse_rest(REASONS);
    }
    Made { sections, project }
}

/// The API root of the NRF that is among the files, or that the SCP or any other function uses.
fn own_root(sections: &Sections) -> Option<String> {
    if sections.has("nrf") {
        if let Some(root) = sections.get("nrf", &["apiRoot"]).as_str() {
            return Some(root.to_owned());
        }
        let scheme = if sections.get("nrf", &["tls"]).is_null() {
            "http"
        } else {
            "https"
        };
        let listen = sections.get("nrf", &["listen"]);
        return listen[0].as_str().map(|listen| format!("{scheme}://{listen}"));
    }
    let known = [
        ("scp", ["nrf", "roots"]),
        ("bsf", ["nrf", "apiRoots"]),
        ("pcf", ["nrf", "apiRoots"]),
    ];
    known
        .iter()
        .find_map(|(function, path)| sections.get(function, path)[0].as_str().map(str::to_owned))
}

/// What functions reach through an SCP they reach directly here, if they know an NRF.
fn indirect(sections: &Sections, source: &Source) {
    for name in FUNCTIONS {
        let scp = source.root().at(&[name, "sbi", "client", "scp"]);
        if !scp.is_there() {
            continue;
        }
        let path = if name == "scp" {
            ["nrf", "roots"]
        } else {
            ["nrf", "apiRoots"]
        };
        let reason = if name == "scp" {
            "next SCPs are found by scp.nextHops and scp.networks".to_owned()
        } else if sections.get(name, &path).is_null() {
            format!("no NRF is known: import the file of the NRF as well, or set {name}.nrf.apiRoots")
        } else {
            "the function reaches the NRF directly".to_owned()
        };
        scp.refuse(&reason);
    }
}

/// What all functions have.
fn function(sections: &mut Sections, name: &'static str, part: &Part<'_>) {
    let tls = part.at(&["default", "tls"]);
    let servers = part.at(&["sbi", "server"]).items();
    let mut listen = Vec::new();
    for server in &servers {
        let (scheme, addresses) = server_addresses(server, &tls.get("server"));
        if listen.is_empty() {
            if let Some(own) = advertised(server) {
                sections.set(name, &["apiRoot"], root(scheme, own, port(server, scheme)));
            }
            if scheme == "https" {
                sections.set(name, &["tls"], server_tls(server, &tls.get("server")));
            }
        }
        listen.extend(addresses);
    }
    if !listen.is_empty() {
        sections.set(name, &["listen"], json!(listen));
    }
    let roots: Vec<&str> = part
        .at(&["sbi", "client", "nrf"])
        .items()
        .iter()
        .filter_map(|nrf| nrf.get("uri").text())
        .map(|uri| uri.trim_end_matches('/'))
        .collect();
    if let Some(client) = client_tls(&tls.get("client"), &roots) {
        sections.set(name, &["clientTls"], client);
    }
    if !roots.is_empty() && name != "nrf" {
        let key = if name == "scp" { "roots" } else { "apiRoots" };
        sections.set(name, &["nrf", key], json!(roots));
    }
    admin(sections, name, part);
    if name == "nrf" {
        timers(sections, part);
    }
}

/// The scheme of a server, and the addresses that it listens at.
fn server_addresses(server: &Part<'_>, default: &Part<'_>) -> (&'static str, Vec<String>) {
    let own = server.get("scheme").text();
    let general = default.get("scheme").text();
    let scheme = if own
        .or(general)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
    {
        "https"
    } else {
        "http"
    };
    let Some(port) = port(server, scheme) else {
        server
            .get("port")
            .refuse("it is not a number: the function has no listener by it");
        return (scheme, Vec::new());
    };
    let hosts = server.get("address").items();
    let mut addresses: Vec<String> = hosts
        .iter()
        .filter_map(host)
        .map(|host| address(host, port))
        .collect();
    if hosts.is_empty() && !server.get("dev").is_there() {
        addresses.push(address("0.0.0.0", port));
    }
    (scheme, addresses)
}

/// The port of a server; none where it is written and no number.
fn port(server: &Part<'_>, scheme: &str) -> Option<u64> {
    let written = server.get("port");
    if !written.is_there() {
        return Some(usual_port(scheme));
    }
    written.text()?.parse().ok()
}

fn usual_port(scheme: &str) -> u64 {
    if scheme == "https" { 443 } else { 80 }
}

/// A name or an address of a host, perhaps with a port; another text is refused.
fn host<'s>(part: &Part<'s>) -> Option<&'s str> {
    let text = part.text()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    if text.chars().all(is_plain) {
        return Some(text);
    }
    part.refuse("it is not a name or an address of a host: write the value itself");
    None
}

/// The name that a server publishes, the first of several.
fn advertised<'s>(server: &Part<'s>) -> Option<&'s str> {
    let names = server.get("advertise").items();
    let (first, others) = names.split_first()?;
    for other in others {
        other.refuse("one name is published: apiRoot");
    }
    host(first)
}

/// The URI that others reach a server by. A name without a port has that of the server.
fn root(scheme: &str, own: &str, port: Option<u64>) -> String {
    let behind_host = own.rsplit(']').next().unwrap_or_default();
    match port.filter(|port| !behind_host.contains(':') && *port != usual_port(scheme)) {
        Some(port) => format!("{scheme}://{own}:{port}"),
        None => format!("{scheme}://{own}"),
    }
}

/// A server's own key and certificate come before those of all.
fn server_tls(server: &Part<'_>, default: &Part<'_>) -> Value {
    let text = |key: &str| server.get(key).text().or(default.get(key).text());
    let mut tls = json!({});
    for (ours, theirs) in [("certificate", "cert"), ("key", "private_key")] {
        if let Some(file) = text(theirs) {
            tls[ours] = file.into();
        }
    }
    let is_asked = server.get("verify_client").is_yes() || default.get("verify_client").is_yes();
    if is_asked && let Some(file) = text("verify_client_cacert") {
        tls["authorities"] = file.into();
        tls["requireClientCertificate"] = true.into();
    }
    tls
}

fn client_tls(client: &Part<'_>, roots: &[&str]) -> Option<Value> {
    let is_https = client
        .get("scheme")
        .text()
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
    let names = [
        ("authorities", "cacert"),
        ("certificate", "client_cert"),
        ("key", "client_private_key"),
    ];
    if !is_https && !roots.iter().any(|root| root.starts_with("https:")) {
        return None;
    }
    let files = names.map(|(ours, theirs)| (ours, client.get(theirs).text()));
    let there = files
        .iter()
        .filter_map(|(ours, file)| Some(((*ours).to_owned(), (*file)?.into())));
    Some(Value::Object(there.collect()))
}

/// The address of metrics is that of the admin endpoint, which does more: only on loopback is it carried over.
fn admin(sections: &mut Sections, name: &'static str, part: &Part<'_>) {
    let Some(server) = part.at(&["metrics", "server"]).items().into_iter().next() else {
        return;
    };
    let host = server.get("address").items().into_iter().next();
    let is_loopback = |host: &str| host.starts_with("127.") || host == "::1";
    if let Some(host) = host
        .as_ref()
        .and_then(Part::text)
        .filter(|host| is_loopback(host))
    {
        let port = server.get("port").number().unwrap_or(9090);
        sections.set(name, &["admin"], address(host, port));
    } else {
        part.get("metrics").refuse(&format!(
            "metrics are at {name}.admin, with all else of an operator: keep it on loopback or behind a proxy"
        ));
        server.get("port").mark();
    }
}

fn timers(sections: &mut Sections, part: &Part<'_>) {
    for (theirs, ours) in [
        (["time", "nf_instance", "heartbeat"], &["heartBeat", "default"]),
        (["time", "nf_instance", "validity"], &["discovery", "validity"]),
        (
            ["time", "subscription", "validity"],
            &["subscriptions", "maxValidity"],
        ),
    ] {
        let value = part.at(&theirs);
        match value.number() {
            Some(0) => value.refuse("0 switches it off, which has no setting here"),
            Some(seconds) => sections.set("nrf", ours, format!("{seconds}s")),
            None => {}
        }
    }
}

/// The PCRF is the Diameter side of our PCF.
fn pcrf(sections: &mut Sections, part: &Part<'_>, files: &mut [Peers]) {
    if !sections.has("pcf") {
        // Without N7 it needs no NRF; it listens on loopback.
        sections.set("pcf", &["diameter", "enabled"], true);
    }
    let place = part.get("freeDiameter");
    if place.is_object() {
        free_diameter::carry_inline(sections, &place);
    } else if let Some(path) = place.text() {
        let name = path.rsplit('/').next().unwrap_or_default();
        match files.iter_mut().find(|file| file.file_name() == name) {
            Some(file) => file.carry(sections),
            None => place.refuse(&format!(
                "give {name} as well: it has the names and addresses of Diameter"
            )),
        }
    }
    if sections.get("pcf", &["admin"]).is_null() {
        admin(sections, "pcf", part);
    }
}
