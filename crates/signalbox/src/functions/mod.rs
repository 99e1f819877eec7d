//! The table of network functions. To add one: a line in [`table`], and a file beside this one that says how
//! it is started ([`Mounted`]) and what can be looked at ([`Page`]).

mod bsf;
mod dsr;
mod ipfe;
mod nrf;
mod sbi;
mod scp;
mod store;

use std::net::SocketAddr;

use axum::Router;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};
use telemetry::{Alarms, Declaration, Health, Registry, admin, logging, trace};

/// A network function as the command line knows it.
#[derive(Debug)]
pub(crate) struct Function {
    /// `nrf`: its name on the command line and its section in the configuration.
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) about: &'static str,
    /// Where its admin endpoint listens.
    pub(crate) admin: fn(&Config) -> SocketAddr,
    /// Every address it listens at, with the key that says so.
    pub(crate) addresses: fn(&Config) -> Vec<(String, SocketAddr)>,
    /// Starts it. Blocks until it is ready.
    pub(crate) start: fn(&Config) -> anyhow::Result<Mounted>,
    /// What can be looked at, beside what every function has.
    pub(crate) pages: &'static [Page],
    /// Every metric it has.
    pub(crate) metrics: fn() -> Vec<Declaration>,
}

/// A page of a function's admin endpoint, and how the command line shows it.
#[derive(Debug)]
pub(crate) struct Page {
    /// Name of the subcommand.
    pub(crate) name: &'static str,
    /// What it shows.
    pub(crate) about: &'static str,
    /// Path at the admin endpoint; `{}` stands for the argument, if there is one.
    pub(crate) path: &'static str,
    /// Name of the argument.
    pub(crate) argument: Option<&'static str>,
    /// Title and JSON pointer of the columns in which a list is shown; without columns it is shown as JSON.
    pub(crate) columns: &'static [(&'static str, &'static str)],
}

/// A function that runs in this process.
pub(crate) struct Mounted {
    /// Where it listens: name of the interface and URI or address.
    pub(crate) interfaces: Vec<(&'static str, String)>,
    /// Its metrics.
    pub(crate) registry: Registry,
    /// Whether it is well.
    pub(crate) health: Health,
    /// Its alarms.
    pub(crate) alarms: Alarms,
    /// Its own admin pages.
    pub(crate) routes: Router,
    /// Commands worth trying.
    pub(crate) hints: Vec<String>,
    /// What it can change while it runs.
    pub(crate) live: Option<Live>,
    /// Lets requests in flight finish and ends it. Blocks.
    pub(crate) stop: Box<dyn FnOnce() -> anyhow::Result<()> + Send>,
}

/// Brings a running function to what the configuration says.
pub(crate) type Apply = Box<dyn Fn(&Config) -> Result<(), String> + Send + Sync>;
/// Has a running function read files again that its settings name; answers whether something has changed.
pub(crate) type Reread = Box<dyn Fn() -> Result<bool, String> + Send + Sync>;

/// Settings that a running function can change.
pub(crate) struct Live {
    /// The keys of its section that it can change, each with all below it.
    pub(crate) keys: &'static [&'static str],
    /// Changes them to what the configuration says, or nothing at all and says why.
    pub(crate) apply: Apply,
    /// Reads its TLS files again, where no setting has changed; all goes on as before where they cannot be used.
    pub(crate) reread: Option<Reread>,
}

/// Makes of the table: the configuration with a section per function, and the list of functions.
macro_rules! table {
    ($($(#[doc = $about:literal])+ $name:ident: $config:ty;)+) => {
        /// The configuration of a process.
        #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default, rename_all = "camelCase")]
        pub(crate) struct Config {
            /// Logs.
            pub(crate) log: logging::Config,
            /// Who may ask the admin endpoints.
            pub(crate) admin: admin::Config,
            /// Traces of requests, for a collector.
            pub(crate) traces: trace::Config,
            $($(#[doc = $about])+ pub(crate) $name: $config,)+
        }

        impl Validate for Config {
            fn validate(&self, faults: &mut Faults) {
                faults.within("log", &self.log);
                faults.within("admin", &self.admin);
                faults.within("traces", &self.traces);
                $(faults.within(stringify!($name), &self.$name);)+
                self.validate_addresses(faults);
            }
        }

        /// Every function, in the order in which they start.
        pub(crate) const ALL: &[Function] = &[$(Function {
            name: stringify!($name),
            about: concat!($($about),+),
            admin: $name::admin,
            addresses: $name::addresses,
            start: $name::start,
            pages: $name::PAGES,
            metrics: $name::metrics,
        },)+];
    };
}

table! {
    /// Network repository function (TS 29.510): who is there, and who may ask whom.
    nrf: ::nrf::Config;
    /// Service communication proxy (TS 29.500): indirect communication, Models C and D.
    scp: ::scp::Config;
    /// Binding support function (TS 29.521): which PCF has which session.
    bsf: ::bsf::Config;
    /// Diameter signaling router (RFC 6733): who gets which request.
    dsr: ::dsr::Config;
    /// IP front end: spreads TCP connections over message processors, and keeps them out of congested ones.
    ipfe: ::ipfe::Config;
}

/// The function of this name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    ALL.iter().find(|function| function.name == name)
}

/// The function of this name, for the command line.
pub(crate) fn parse(name: &str) -> Result<&'static Function, String> {
    find(name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|function| function.name).collect();
        format!("there is no such function; there are {}", names.join(", "))
    })
}

/// The keys of a list of listen addresses with the addresses.
fn listening(key: &str, listen: &settings::Listen) -> Vec<(String, SocketAddr)> {
    let several = listen.0.len() > 1;
    let path = |index| match several {
        true => format!("{key}[{index}]"),
        false => key.to_owned(),
    };
    listen
        .iter()
        .enumerate()
        .map(|(index, address)| (path(index), address))
        .collect()
}

/// What every process tells of itself.
fn common_metrics() -> Vec<Declaration> {
    [
        telemetry::process::METRICS,
        telemetry::alarms::METRICS,
        logging::METRICS,
        admin::METRICS,
        trace::METRICS,
    ]
    .concat()
}

/// The reference page of every metric.
pub(crate) fn metrics_page() -> String {
    let common = common_metrics();
    let mut page = String::from(
        "# Metrics\n\nEach function shows its metrics at `/metrics` of its admin endpoint, as OpenMetrics text.\n\n",
    );
    page.push_str(&section("Every function", &common));
    page.push_str(&section(
        "Servers of the service-based interface",
        &sbi::declarations(),
    ));
    page.push_str(&section("Stores of registrations and sessions", store::METRICS));
    for function in ALL {
        page.push_str(&section(&function.name.to_uppercase(), &(function.metrics)()));
    }
    page
}

fn section(title: &str, declarations: &[Declaration]) -> String {
    format!("#{}\n", telemetry::metrics::reference(title, declarations))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_configuration_has_no_mistakes_and_reads_back_equal() {
        let text = settings::to_yaml(&Config::default());
        let back: Config = settings::from_str(&text, "default").unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(
            serde_json::to_value(back).unwrap(),
            serde_json::to_value(Config::default()).unwrap()
        );
    }

    #[test]
    fn two_functions_cannot_listen_at_one_address() {
        let admin = (ALL[0].admin)(&Config::default());
        let text = format!("{}: {{listen: \"{admin}\"}}", ALL[0].name);
        let report = settings::from_str::<Config>(&text, "x").unwrap_err().to_string();
        assert!(report.contains("as well"), "{report}");
    }

    #[test]
    fn metric_names_follow_the_rules_and_no_two_are_the_same() {
        let mut all = common_metrics();
        all.extend(sbi::declarations());
        all.extend(store::METRICS);
        for function in ALL {
            let own = (function.metrics)();
            let prefix = format!("signalbox_{}_", function.name);
            assert!(own.iter().all(|one| one.name.starts_with(&prefix)), "{own:?}");
            all.extend(own);
        }
        assert_eq!(telemetry::metrics::lint(&all), Vec::<String>::new());
    }
}
