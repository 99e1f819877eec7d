//! free5GC 3 and 4: one function per file, which does not name it in one place.

use serde_json::{Value, json};

use super::Made;
use super::sections::{Sections, address};
use super::source::{Part, Reasons, Source};

/// Its port, unless a file names one.
const PORT: u64 = 8000;

/// Why the rest is not carried over, by the end of its path.
const REASONS: Reasons = &[
    ("sbi.tls", "the server has no TLS (scheme)"),
    ("sbi.cert", "the server has no TLS (scheme)"),
    ("info", "a version of its files"),
    (
        "logger",
        "of the logs only the level is carried over (log.filter)",
    ),
    ("enable", "logs go to stderr"),
    ("reportCaller", "a line of the log names its module"),
    ("ReportCaller", "a line of the log names its module"),
    (
        "debugLevel",
        "of the logs only the level of the function itself is carried over (log.filter)",
    ),
    ("MongoDBName", "profiles are in the store of the function (store)"),
    ("MongoDBUrl", "profiles are in the store of the function (store)"),
    (
        "mongodb",
        "the subscribers in its database are not read; write a policy project (docs/policy.md)",
    ),
    ("DefaultPlmnId", "the NRF serves every network whose NFs register"),
    ("serviceNameList", "all services of the function are offered"),
    ("serviceList", "all services of the function are offered"),
    ("pcfName", "the profile needs no name"),
    ("bsfName", "the profile needs no name"),
    ("scpName", "the profile needs no name"),
    ("timeFormat", "times are those of RFC 3339"),
    ("defaultBdtRefId", "Npcf_BDTPolicyControl is not offered"),
    ("amfUri", "the SCP learns producers from the NRF"),
    ("ausfUri", "the SCP learns producers from the NRF"),
    ("chfUri", "the SCP learns producers from the NRF"),
    ("nefUri", "the SCP learns producers from the NRF"),
    ("nssfUri", "the SCP learns producers from the NRF"),
    ("pcfUri", "the SCP learns producers from the NRF"),
    ("smfUri", "the SCP learns producers from the NRF"),
    ("udmUri", "the SCP learns producers from the NRF"),
    ("udrUri", "the SCP learns producers from the NRF"),
    ("upfUri", "the SCP learns producers from the NRF"),
    (
        "metrics",
        "metrics are at the admin address of the function (/metrics)",
    ),
];

/// Makes our sections of these files.
pub(crate) fn carry(sources: &[Source]) -> Made {
    let mut sections = Sections::default();
    let mut authority = None;
    for source in sources {
        let configuration = source.root().get("configuration");
        let Some(name) = function_of(source, &configuration) else {
            configuration.refuse_if_there(
                "this function stays with free5GC (docs/free5gc.md): NRF, SCP, BSF and PCF are here",
            );
            continue;
        };
        server(&mut sections, name, &configuration);
        consumer(&mut sections, name, &configuration);
        level(&mut sections, name, &source.root());
        authority = authority.or(configuration.at(&["sbi", "rootcert", "pem"]).text());
    }
    if let Some(file) = authority {
        for name in ["scp", "bsf", "pcf"] {
            if sections.has(name) && !sections.get(name, &["clientTls"]).is_null() {
                sections.set(name, &["clientTls", "authorities"], file);
            }
        }
    }
    let own = sections.get("nrf", &["listen"]);
    let scheme = if sections.get("nrf", &["tls"]).is_null() {
        "http"
    } else {
        "https"
    };
    let own = own[0].as_str().map(|listen| format!("{scheme}://{listen}"));
    sections.use_nrf(own.as_deref());
    for source in sources {
        source.refuse_rest(REASONS);
    }
    Made {
        sections,
        project: None,
    }
}

/// Which function a file is of: by its name in the file, by what it alone has, by the name of the file.
fn function_of(source: &Source, configuration: &Part<'_>) -> Option<&'static str> {
    let named = [("pcfName", "pcf"), ("bsfName", "bsf"), ("scpName", "scp")];
    if let Some((_, name)) = named.iter().find(|(key, _)| configuration.get(key).is_there()) {
        return Some(name);
    }
    if configuration.get("DefaultPlmnId").is_there() {
        return Some("nrf");
    }
    let logs = source.root().get("logger");
    let names = [("NRF", "nrf"), ("SCP", "scp"), ("BSF", "bsf"), ("PCF", "pcf")];
    let by_log = names.iter().find(|(key, _)| logs.get(key).is_there());
    let file = source.file_name();
    by_log
        .or_else(|| names.iter().find(|(_, name)| file.starts_with(name)))
        .map(|(_, name)| *name)
        .filter(|_| configuration.is_there())
}

fn server(sections: &mut Sections, name: &'static str, configuration: &Part<'_>) {
    let sbi = configuration.get("sbi");
    let port = sbi.get("port").number().unwrap_or(PORT);
    let text = |keys: [&str; 3]| keys.iter().find_map(|key| sbi.get(key).text());
    let bound = text(["bindingIP", "bindingIPv4", "bindingIPv6"]);
    let registered = text(["registerIP", "registerIPv4", "registerIPv6"]);
    let scheme = sbi.get("scheme").text().unwrap_or("http");
    if let Some(host) = bound.or(registered) {
        sections.set(name, &["listen"], json!([address(host, port)]));
    }
    if let Some(host) = registered.filter(|host| bound != Some(host)) {
        sections.set(name, &["apiRoot"], format!("{scheme}://{}", address(host, port)));
    }
    if scheme == "https" {
        let mut tls = json!({});
        for place in ["tls", "cert"] {
            for (ours, theirs) in [("certificate", "pem"), ("key", "key")] {
                if let Some(file) = sbi.at(&[place, theirs]).text() {
                    tls[ours] = file.into();
                }
            }
        }
        sections.set(name, &["tls"], tls);
    }
    let rules = sbi.get("oauth");
    if rules.is_yes() {
        // Its own functions then ask for a token with each request.
        sections.set(name, &["tokens", "protectOwnServices"], true);
    }
    sbi.at(&["rootcert", "key"])
        .refuse_if_there("tokens are signed by a key of the NRF's own (nrf.tokens.signingKeys)");
}

fn consumer(sections: &mut Sections, name: &'static str, configuration: &Part<'_>) {
    let certificate = configuration.get("nrfCertPem");
    if let Some(root) = configuration.get("nrfUri").text() {
        let root = root.trim_end_matches('/');
        let key = if name == "scp" { "roots" } else { "apiRoots" };
        sections.set(name, &["nrf", key], json!([root]));
        if root.starts_with("https:") {
            let file = certificate.text().map_or(Value::Null, Value::from);
            sections.set(name, &["clientTls"], json!({"authorities": file}));
            certificate.refuse("it is taken for the authority (clientTls.authorities) unless the NRF's file names one (rootcert)");
        }
    }
    certificate.refuse_unless_read("the NRF is reached without TLS");
    if name == "pcf" {
        let bsf = configuration.at(&["bsf", "enable"]);
        let is_used = !bsf.is_there() || bsf.is_yes();
        sections.set(name, &["bsf", "discover"], is_used);
        sections.set(name, &["diameter", "enabled"], false);
        if let Some(place) = configuration.get("locality").text() {
            sections.set(name, &["nrf", "profile", "locality"], place);
        }
    }
    let services: &[(&str, &str)] = match name {
        "pcf" => &PCF_SERVICES,
        "bsf" => &[("nbsf-management", "1.3.1")],
        _ => &[],
    };
    if !services.is_empty() {
        let services = profile_services(sections, name, services);
        sections.set(name, &["nrf", "profile", "nfServices"], services);
    }
}

/// Services that consumers use, with the versions of their APIs in Release 17.
const PCF_SERVICES: [(&str, &str); 4] = [
    ("npcf-smpolicycontrol", "1.2.4"),
    ("npcf-am-policy-control", "1.2.1"),
    ("npcf-ue-policy-control", "1.2.1"),
    ("npcf-policyauthorization", "1.2.3"),
];

/// Services whose `apiPrefix` is the whole address: consumers of free5GC use it so, where TS 29.510 §6.1.6.2.3 has path
/// segments.
fn profile_services(sections: &Sections, name: &str, services: &[(&str, &str)]) -> Value {
    let tls = sections.get(name, &["tls"]);
    let scheme = if tls.is_null() { "http" } else { "https" };
    let listen = sections.get(name, &["listen"]);
    let authority = listen[0].as_str().unwrap_or_default();
    let root = sections.get(name, &["apiRoot"]);
    let root = root
        .as_str()
        .map_or_else(|| format!("{scheme}://{authority}"), str::to_owned);
    let socket = authority.parse::<std::net::SocketAddr>().ok();
    let service = |(service, version): &(&str, &str)| {
        let mut described = json!({
            "serviceInstanceId": service,
            "serviceName": service,
            "versions": [{"apiVersionInUri": "v1", "apiFullVersion": version}],
            "scheme": scheme,
            "nfServiceStatus": "REGISTERED",
            "apiPrefix": root,
        });
        if let Some(socket) = socket {
            let kind = if socket.is_ipv4() {
                "ipv4Address"
            } else {
                "ipv6Address"
            };
            described["ipEndPoints"] = json!([{kind: socket.ip().to_string(), "port": socket.port()}]);
        }
        described
    };
    services.iter().map(service).collect()
}

fn level(sections: &mut Sections, name: &'static str, root: &Part<'_>) {
    let logger = root.get("logger");
    let own = logger.at(&[name.to_uppercase().as_str(), "debugLevel"]);
    let general = logger.get("level");
    sections.set_level(name, if own.is_there() { &own } else { &general });
}
