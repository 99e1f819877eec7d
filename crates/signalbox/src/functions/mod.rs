//! The table of network functions. To add one: a line in [`table`].

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use axum::Router;
pub(crate) use function::Page;
use function::{Frame, NetworkFunction};
use function::{sbi, store};
use observability::{Pack, Section};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};
use telemetry::{AlarmKind, Alarms, Declaration, Health, Registry, admin, logging, trace, webhook};

use crate::changes;

/// A network function as the command line knows it.
#[derive(Debug)]
pub(crate) struct Function {
    /// `nrf`: its name on the command line and its section in the configuration.
    pub(crate) name: &'static str,
    /// Its name in messages to people.
    pub(crate) title: &'static str,
    /// What it is.
    pub(crate) about: &'static str,
    /// Where its admin endpoint listens.
    pub(crate) admin: fn(&Config) -> SocketAddr,
    /// Every address it listens at, with the key that says so.
    pub(crate) addresses: fn(&Config) -> Vec<(String, SocketAddr)>,
    /// Where its journal is kept, and the name of the files there.
    pub(crate) journal: fn(&Config) -> Option<PathBuf>,
    pub(crate) journal_name: &'static str,
    /// What it shows of itself before it is started.
    pub(crate) frame: fn() -> Frame,
    /// Starts it within its frame. Blocks until it is ready.
    pub(crate) start: fn(&Config, Frame) -> anyhow::Result<Mounted>,
    /// Its own pages, beside those that every function has.
    pub(crate) pages: &'static [Page],
    /// Every metric it has.
    pub(crate) metrics: fn() -> Vec<Declaration>,
    /// Every alarm it has.
    pub(crate) alarms: fn() -> Vec<AlarmKind>,
}

impl Function {
    fn section(&self) -> Section {
        Section {
            name: self.name,
            title: self.title,
            metrics: (self.metrics)(),
            alarms: (self.alarms)(),
        }
    }
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
    pub(crate) keys: Vec<String>,
    /// Changes them to what the configuration says, or nothing at all and says why.
    pub(crate) apply: Apply,
    /// Reads its TLS files again, where no setting has changed; all goes on as before where they cannot be used.
    pub(crate) reread: Option<Reread>,
}

/// Every address that a function listens at, that of its admin endpoint included.
fn addresses<F: NetworkFunction>(config: &F::Config) -> Vec<(String, SocketAddr)> {
    let common = F::common(config);
    let mut all = common.listen;
    all.push(("admin".to_owned(), common.admin));
    all
}

/// The admin endpoints of all functions but this one.
fn admins_beside(name: &str, config: &Config) -> Vec<SocketAddr> {
    let others = ALL.iter().filter(|function| function.name != name);
    others.map(|function| (function.admin)(config)).collect()
}

/// Starts a function by its section of the configuration.
fn mount<F: NetworkFunction>(
    mut config: F::Config,
    section: fn(&Config) -> &F::Config,
    admins: &[SocketAddr],
    frame: Frame,
) -> anyhow::Result<Mounted> {
    F::beside(&mut config, admins);
    let starting = || format!("starting the {}", F::TITLE);
    let running = function::start_within::<F>(config, frame).with_context(starting)?;
    let handle = running.handle();
    let (changed, files) = (handle.clone(), handle.clone());
    let interfaces = handle.interfaces();
    Ok(Mounted {
        hints: F::hints(interfaces.first().map_or("", |(_, uri)| uri)),
        interfaces,
        registry: handle.registry().clone(),
        health: handle.health().clone(),
        alarms: handle.alarms().clone(),
        routes: handle.routes(),
        live: Some(Live {
            keys: settings::reload::keys::<F::Config>(),
            apply: Box::new(move |config| changed.reload(section(config))),
            reread: Some(Box::new(move || files.reread())),
        }),
        stop: Box::new(move || Ok(running.stop()?)),
    })
}

/// A name without the mark of one that is a word of Rust: `enum` of `r#enum`.
const fn plain(name: &'static str) -> &'static str {
    if let [b'r', b'#', rest @ ..] = name.as_bytes()
        && let Ok(rest) = std::str::from_utf8(rest)
    {
        return rest;
    }
    name
}

/// Makes of the table: the configuration with a section per function, and the list of functions.
macro_rules! table {
    ($($(#[doc = $about:literal])+ $name:ident: $function:ty;)+) => {
        /// The configuration of a process.
        #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default, rename_all = "camelCase")]
        pub(crate) struct Config {
            /// Logs.
            pub(crate) log: logging::Config,
            /// Who may ask the admin endpoints.
            pub(crate) admin: admin::Config,
            /// Alarms, for a server that takes them.
            pub(crate) alarms: webhook::Config,
            /// Traces of requests, for a collector.
            pub(crate) traces: trace::Config,
            /// Whose changes of this file the admin endpoints accept.
            pub(crate) changes: changes::Config,
            $($(#[doc = $about])+ pub(crate) $name: <$function as NetworkFunction>::Config,)+
        }

        impl Validate for Config {
            fn validate(&self, faults: &mut Faults) {
                faults.within("log", &self.log);
                faults.within("admin", &self.admin);
                faults.within("alarms", &self.alarms);
                faults.within("traces", &self.traces);
                faults.within("changes", &self.changes);
                $(faults.within(plain(stringify!($name)), &self.$name);)+
                self.validate_addresses(faults);
                self.validate_directories(faults);
            }
        }

        /// Every function, in the order in which they start.
        pub(crate) const ALL: &[Function] = &[$(Function {
            name: plain(stringify!($name)),
            title: <$function>::TITLE,
            about: concat!($($about),+),
            admin: |config| <$function>::common(&config.$name).admin,
            addresses: |config| addresses::<$function>(&config.$name),
            journal: |config| <$function>::common(&config.$name).directory.map(Path::to_owned),
            journal_name: plain(concat!(stringify!($name), "-journal")),
            frame: Frame::new::<$function>,
            start: |config, frame| {
                let admins = admins_beside(plain(stringify!($name)), config);
                mount::<$function>(config.$name.clone(), |config| &config.$name, &admins, frame)
            },
            pages: <$function>::PAGES,
            metrics: <$function>::metrics,
            alarms: <$function>::alarms,
        },)+];
    };
}

table! {
    /// Network repository function (TS 29.510): who is there, and who may ask whom.
    nrf: ::nrf::Nrf;
    /// Service communication proxy (TS 29.500): indirect communication, Models C and D.
    scp: ::scp::Scp;
    /// Binding support function (TS 29.521): which PCF has which session.
    bsf: ::bsf::Bsf;
    /// Policy control function (TS 29.512): which session gets which rules.
    pcf: ::pcf::Pcf;
    /// Service capability exposure function (TS 23.682): what servers of devices may ask of the network.
    scef: ::scef::Scef;
    /// Diameter signaling router (RFC 6733): who gets which request.
    dsr: ::dsr::Dsr;
    /// IP front end: spreads TCP connections over message processors, and keeps them out of congested ones.
    ipfe: ::ipfe::Ipfe;
    /// Signal transfer point: routes SS7 messages (M3UA) by point code and global title.
    stp: ::stp::Stp;
    /// ENUM server (RFC 6116): what a telephone number resolves to in DNS.
    r#enum: ::enum_server::EnumServer;
    /// Subscriber database server: which servers each subscriber has, provisioned once for all database processors.
    sds: ::sds::Sds;
    /// Database processor: which servers a subscriber belongs to, for many Diameter routers.
    dp: ::dp::DatabaseProcessor;
    /// Console: one page that shows how all functions are doing, what is wrong and the remedy.
    console: ::console::Console;
}

/// The console's name. It follows the others, and no other function needs it.
pub(crate) const CONSOLE: &str = "console";

/// The functions that have a section in this file, in the order of [`ALL`].
pub(crate) fn sections(text: &str) -> impl Iterator<Item = &'static Function> {
    ALL.iter().filter(move |function| {
        let mut lines = text.lines();
        lines.any(|line| key_of(line) == Some(function.name))
    })
}

/// The key of a line that begins a section, with or without quotes.
fn key_of(line: &str) -> Option<&str> {
    let (key, _) = line.split_once(':')?;
    Some(key.trim_end().trim_matches(['"', '\'']))
}

/// The function of this name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    ALL.iter().find(|function| function.name == name)
}

/// The function of this name, for the command line.
pub(crate) fn parse(name: &str) -> Result<&'static Function, String> {
    find(name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|function| function.name).collect();
        let guess =
            settings::nearest(name, &names).map_or(String::new(), |name| format!("; did you mean `{name}`?"));
        format!(
            "the function does not exist; valid are {}{guess}",
            names.join(", ")
        )
    })
}

/// What all functions have in common.
fn common() -> Vec<Section> {
    let section = |name, title, metrics, alarms: &[&[AlarmKind]]| Section {
        name,
        title,
        metrics,
        alarms: alarms.concat(),
    };
    let process = [
        telemetry::process::METRICS,
        telemetry::alarms::METRICS,
        webhook::METRICS,
        logging::METRICS,
        admin::METRICS,
        trace::METRICS,
        crate::metrics::METRICS,
        function::certificates::METRICS,
    ];
    vec![
        section(
            "process",
            "Every function",
            process.concat(),
            &[
                &[function::live::REFUSED, function::OVERLOAD],
                function::certificates::ALARMS,
                function::journal_file::ALARMS,
            ],
        ),
        section(
            "sbi",
            "Servers of the service-based interface",
            sbi::declarations(),
            &[],
        ),
        section(
            "store",
            "Stores of registrations and sessions",
            store::METRICS.to_vec(),
            &[store::ALARMS],
        ),
    ]
}

/// Everything that a process can show; links of alerts begin with `docs`.
pub(crate) fn pack(docs: &str) -> Pack {
    Pack {
        common: common(),
        functions: ALL
            .iter()
            .map(Function::section)
            .filter(|section| !section.metrics.is_empty())
            .collect(),
        docs: docs.trim_end_matches('/').to_owned(),
    }
}

/// The reference page of every metric.
pub(crate) fn metrics_page() -> String {
    let mut page = String::from(
        "# Metrics\n\nEach function shows its metrics at `/metrics` of its admin endpoint, as text, or as OpenMetrics where `Accept` asks for it.\n\n",
    );
    for one in common() {
        page.push_str(&section(one.title, &one.metrics));
    }
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
        let mut all: Vec<Declaration> = common().into_iter().flat_map(|section| section.metrics).collect();
        for function in ALL {
            let own = (function.metrics)();
            let prefix = format!("signalbox_{}_", function.name);
            assert!(own.iter().all(|one| one.name.starts_with(&prefix)), "{own:?}");
            all.extend(own);
        }
        assert_eq!(telemetry::metrics::lint(&all), Vec::<String>::new());
    }
}
