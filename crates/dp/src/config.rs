//! Every setting of a database processor.

use std::net::SocketAddr;
use std::path::PathBuf;

use function::sbi::config::check_root;
use ipnet::IpNet;
use model::NfInstanceId;
use sbi::client::{Origin, Scheme};
use sbi::headers::{SbiHeader as _, TargetApiRoot};
use sbi::tls::TlsFiles;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Listen, Period, Validate};

/// Settings of a database processor. Its data come from the files `numbers` and `names`, or from `sds`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Id of this processor, a UUID, by which `nrfs` know it. Empty: that of the certificate of `clientTls`, or made at the first
    /// start and kept in the file `dp-instance-id` of `directory`.
    pub nf_instance_id: String,
    /// Address of the admin endpoint (`/livez /readyz /metrics /config`).
    #[schemars(extend("format" = "socket-address"))]
    pub admin: SocketAddr,
    /// Worker threads; each has a listener of its own. 0: one per core.
    pub workers: usize,
    /// Where routers connect. Empty: nowhere.
    pub listen: Listen,
    /// Networks whose routers may connect. Empty: all.
    #[schemars(extend("x-reload" = true))]
    pub clients: Vec<IpNet>,
    /// TLS of the connections of routers; absent: cleartext. With `requireClientCertificate: true` each router shows a
    /// certificate of `authorities`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub tls: Option<TlsFiles>,
    /// The file of numbers (`signalbox numbers import`). Reloaded when it is replaced and the processor is asked to reload.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub numbers: Option<PathBuf>,
    /// Names, as text: one `name,VALUE,DESTINATION[,SERVICE=DESTINATION…]` per line. VALUE is an IMPI, an IMPU, a NAI or an
    /// External Identifier, or `*@realm` for all of a realm. Reloaded as `numbers` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub names: Option<PathBuf>,
    /// Bound on names. One of `names` takes four bytes of memory besides its own; those of `sds` are in a file.
    pub max_names: usize,
    /// Subscriber database servers whose data this processor has, in place of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sds: Option<Sds>,
    /// API roots of NRFs, tried in turn, which grant access tokens for servers that require them (scope `sds-journal`). The
    /// processor registers there as a consumer of type `DP`. Empty: it sends no token.
    pub nrfs: Vec<String>,
    /// TLS of the connections to `sds` and `nrfs`; absent: only those with `http` addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub client_tls: Option<TlsFiles>,
    /// Directory of the data that come from `sds`, so that a restart continues where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Queries that each worker answers in a second; those beyond are answered as congested. 0: no bound.
    #[schemars(extend("x-reload" = true))]
    pub queries_per_second: u32,
    /// Connections of each worker; a new one beyond them is closed at once.
    #[schemars(range(min = 1, max = 100_000), extend("x-reload" = true))]
    pub connections: usize,
    /// A connection without a whole frame for this time ends, and so does one whose router does not read its answers. Routers
    /// send one every second.
    #[schemars(extend("x-reload" = true))]
    pub idle: Period,
}

/// Servers whose journal is polled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Sds {
    /// Where they are, such as `http://192.0.2.1:8095`, or `https` with `clientTls`, in the order in which they are tried.
    pub addresses: Vec<String>,
    /// The name by which they know this processor.
    pub name: String,
}

impl Sds {
    /// The addresses, which were checked with the settings.
    pub(crate) fn origins(&self) -> impl Iterator<Item = Origin> + '_ {
        self.addresses.iter().filter_map(|one| one.parse().ok())
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            nf_instance_id: String::new(),
            admin: SocketAddr::from(([127, 0, 0, 1], 9100)),
            workers: 0,
            listen: Listen(Vec::new()),
            clients: Vec::new(),
            tls: None,
            numbers: None,
            names: None,
            max_names: 10_000_000,
            sds: None,
            nrfs: Vec::new(),
            client_tls: None,
            directory: None,
            queries_per_second: 0,
            connections: 1_024,
            idle: Period::from_secs(60),
        }
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        if !(1..=100_000).contains(&self.connections) {
            let what = format!("is {}", self.connections);
            faults.at("connections").say(what, "1 to 100000");
        }
        if self.idle.is_zero() {
            faults.at("idle").say("is 0", "a period such as 60s");
        }
        faults.within("sds", &self.sds);
        if !self.nf_instance_id.is_empty() && NfInstanceId::parse(&self.nf_instance_id).is_err() {
            faults
                .at("nfInstanceId")
                .say("is not a UUID", "a UUID, or nothing");
        }
        let Some(sds) = &self.sds else {
            if !self.nrfs.is_empty() {
                faults
                    .at("nrfs")
                    .say("is set without sds", "nothing: files need no token");
            }
            return;
        };
        for (index, root) in self.nrfs.iter().enumerate() {
            check_root(root, &format!("nrfs[{index}]"), faults);
        }
        let roots = self
            .nrfs
            .iter()
            .filter_map(|root| TargetApiRoot::parse(root).ok());
        let mut all = sds.origins().chain(roots.map(|root| root.origin));
        if self.client_tls.is_none() && all.any(|origin| origin.scheme() == Scheme::Https) {
            faults.at("clientTls").say(
                "is absent, and a server of sds or nrfs has an https address",
                "certificate, key and authorities",
            );
        }
        if !self.nrfs.is_empty() && self.listen.0.is_empty() {
            faults.at("listen").say(
                "is empty, and the profile at nrfs needs an address",
                "an address, such as 192.0.2.11:3800",
            );
        }
        for (key, file) in [("numbers", &self.numbers), ("names", &self.names)] {
            if file.is_some() {
                faults.at(key).say("is set beside sds", "either files or sds");
            }
        }
        if self.directory.is_none() {
            faults
                .at("directory")
                .say("is absent", "a directory for the data of sds");
        }
    }
}

impl Validate for Sds {
    fn validate(&self, faults: &mut Faults) {
        if self.addresses.is_empty() {
            faults.at("addresses").say("is empty", "at least one address");
        }
        for (index, address) in self.addresses.iter().enumerate() {
            if address.parse::<Origin>().is_err() {
                faults.at(format!("addresses[{index}]")).say(
                    format!("`{address}` is not an address"),
                    "http://HOST:PORT or https://HOST:PORT",
                );
            }
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if !self.name.bytes().all(is_plain) || self.name.len() > 64 {
            faults.at("name").say(
                format!("`{}` is not a name", self.name),
                "up to 64 letters, digits, `-`, `.` and `_`",
            );
        }
    }
}
