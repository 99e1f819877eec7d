//! What settings are compiled to before a message needs it. Tables are immutable; a reload makes others.

mod adjacent;
mod calls;
mod ipa;
mod numbers;
mod points;
mod routes;
mod screening;
mod translations;
mod validation;

use std::collections::HashMap;
use std::path::PathBuf;

use settings::Faults;
use ss7_proto::m3ua::TrafficMode;
use ss7_proto::sccp::Format;
use ss7_proto::{Plan, PointCode};

use crate::config::{Config, Link, NumberingPlan, Role};

pub(crate) use calls::fits_msu;
pub(crate) use ipa::Label;
pub(crate) use numbers::{Number, NumberServices, Whereabouts};
pub(crate) use points::Points;
pub(crate) use routes::{Destination, Routes, Via};
pub(crate) use screening::{Message, Passed, Screen};
pub(crate) use translations::Translations;
pub use translations::check_files;

/// The subsystem of SCCP management (Q.713 §3.4.2.2).
pub(crate) const MANAGEMENT: u8 = 1;
/// The subsystem of an EIR (TS 23.003 §8.2).
pub(crate) const EIR: u8 = 9;
/// Routing contexts of link sets that have none; no peer sees them.
const UNNAMED: u32 = 0xffff_0000;

/// Where a route leads to: an application server or a link set.
#[derive(Debug)]
pub(crate) struct Hop {
    pub(crate) name: String,
    pub(crate) is_server: bool,
    /// What DATA to it carries.
    pub(crate) context: Option<u32>,
    /// By which the control side knows it.
    pub(crate) key: u32,
    pub(crate) mode: TrafficMode,
    pub(crate) links: Vec<usize>,
    /// The adjacent node, where the links are of M2PA.
    pub(crate) adjacent: Option<PointCode>,
    /// Of what comes from it, where the links are of IPA.
    pub(crate) label: Option<Label>,
    /// The screening list for what comes from it.
    pub(crate) screen: Option<usize>,
}

/// Everything that the path of a message needs of the settings.
#[derive(Debug, Default)]
pub struct Tables {
    pub(crate) points: Points,
    pub(crate) network_appearance: Option<u32>,
    pub(crate) links: Vec<Link>,
    /// Application servers, then link sets.
    pub(crate) hops: Vec<Hop>,
    /// Of each link those that it belongs to.
    of_links: Vec<Vec<usize>>,
    pub(crate) routes: Routes,
    pub(crate) screens: Vec<Screen>,
    pub(crate) translations: Translations,
    pub(crate) numbers: Option<NumberServices>,
    /// Lists of equipment.
    pub(crate) equipment: Option<dsr_eir::Eir>,
    /// Subsystems of this node.
    pub(crate) subsystems: Vec<u8>,
}

impl Tables {
    /// Compiles settings; reports everything that is wrong with them. Files are not read.
    pub(crate) fn compile(config: &Config, faults: &mut Faults) -> Self {
        let points = Points::compile(&config.point_codes, config.links.is_empty(), faults);
        let links = links(config, faults);
        let lists = names(
            config.screening.iter().map(|list| list.name.as_str()),
            "screening",
            faults,
        );
        let hops = hops(config, &points, &links, &lists, faults);
        let routes = Routes::compile(config, &points, &hops, faults);
        if let Some(equipment) = &config.equipment {
            faults.within("equipment", equipment);
            // The file of a router's changes has one owner.
            if equipment.changes.is_some() {
                faults.at("equipment.changes").say(
                    "names a file that the Diameter router changes",
                    "no `changes` here",
                );
            }
        }
        numbers::Numbering::compile(&config.number_services, faults);
        calls::check(config, faults);
        let screens = Screen::compile(&config.screening, &lists, points.plan, faults);
        let translations = Translations::compile(&config.translation, &points, &routes, faults);
        calls::Calls::compile(&config.number_services, &hops, &translations, faults);
        let calls = &config.number_services.calls;
        Self {
            network_appearance: config.network_appearance,
            links: config.links.clone(),
            screens,
            translations,
            numbers: None,
            equipment: None,
            of_links: of_links(&hops, config.links.len()),
            hops,
            routes,
            points,
            subsystems: [config.subsystems.as_slice(), &calls.subsystems].concat(),
        }
    }

    /// As [`Self::compile`], with the files that settings name.
    pub(crate) fn load(config: &Config) -> Result<Self, String> {
        let mut faults = Faults::default();
        let mut tables = Self::compile(config, &mut faults);
        if let Some(fault) = faults.into_vec().into_iter().next() {
            return Err(format!("{}: {}; use {}", fault.path, fault.what, fault.expected));
        }
        tables.translations = Translations::load(&config.translation, &tables.points)?;
        tables.equipment = config.equipment.as_ref().map(equipment).transpose()?;
        tables.numbers = NumberServices::load(&config.number_services, &tables.hops, &tables.translations)?;
        Ok(tables)
    }

    /// Whether a subsystem of this node has a user that answers requests.
    pub(crate) fn has_user(&self, ssn: u8) -> bool {
        let of_calls = |services: &NumberServices| services.calls.serves(ssn);
        ssn == EIR && self.equipment.is_some() || self.numbers.as_ref().is_some_and(of_calls)
    }

    /// The form of SCCP addresses.
    pub(crate) fn format(&self) -> Format {
        self.points.format
    }

    /// A point code as operators write it.
    pub(crate) fn show(&self, code: PointCode) -> String {
        self.points.plan.show(code).to_string()
    }

    /// Whether this STP grants on a link: the peer is an ASP, or may be.
    pub(crate) fn grants(&self, link: usize) -> bool {
        let grants = |link: &Link| matches!(link.role, Role::Sgp | Role::Ipsp | Role::Ipa);
        self.links.get(link).is_some_and(grants)
    }

    /// The link set of a link of M2PA.
    pub(crate) fn set_of(&self, link: usize) -> Option<usize> {
        let mut hops = self.hops_of(link);
        hops.find(|(_, hop)| hop.adjacent.is_some()).map(|(at, _)| at)
    }

    /// The hops that a link belongs to: each change of states asks it of all links.
    pub(crate) fn hops_of(&self, link: usize) -> impl Iterator<Item = (usize, &Hop)> {
        let hops = self.of_links.get(link).into_iter().flatten();
        hops.filter_map(|at| Some((*at, self.hops.get(*at)?)))
    }

    /// Whether this STP asks on a link.
    pub(crate) fn asks(&self, link: usize) -> bool {
        let asks = |link: &Link| link.role == Role::Asp || link.role == Role::Ipsp && link.connect;
        self.links.get(link).is_some_and(asks)
    }
}

impl NumberingPlan {
    const fn format(self) -> Format {
        match self {
            Self::Ansi => Format::Ansi,
            Self::Itu => Format::Itu,
            Self::China => Format::China,
            Self::Japan => Format::Japan,
        }
    }
}

/// Reads the lists of equipment.
fn equipment(config: &dsr_eir::config::Eir) -> Result<dsr_eir::Eir, String> {
    let empty = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0);
    // A file of 0 octets is one that was not written yet; without entries every device would be unknown.
    if let Some(path) = config.file.as_ref().filter(|path| empty(path)) {
        return Err(format!("equipment.file: {}: is empty", path.display()));
    }
    dsr_eir::Eir::load(config).map_err(|error| format!("equipment.file: {error}"))
}

/// The position of each name; reports names that are empty or not unique.
fn names<'c>(all: impl Iterator<Item = &'c str>, key: &str, faults: &mut Faults) -> HashMap<&'c str, usize> {
    let mut found = HashMap::new();
    for (index, name) in all.enumerate() {
        if name.is_empty() || found.insert(name, index).is_some() {
            let what = "is empty, or the name of another one";
            faults
                .at(format!("{key}[{index}].name"))
                .say(what, "a name of its own");
        }
    }
    found
}

fn links<'c>(config: &'c Config, faults: &mut Faults) -> HashMap<&'c str, usize> {
    for (index, link) in config.links.iter().enumerate() {
        if link.peer.is_empty() {
            let right = "at least one address of the peer";
            faults.at(format!("links[{index}].peer")).say("is empty", right);
        }
        if link.role == Role::Asp && !link.connect {
            let what = "is false, and an ASP connects to its signalling gateway";
            faults.at(format!("links[{index}].connect")).say(what, "true");
        }
        // Connections differ by the address of the peer, and its port where it is set.
        let same = |other: &&Link| {
            let one_port = other.port.is_none() || link.port.is_none() || other.port == link.port;
            !other.connect
                && !link.connect
                && other.transport == link.transport
                && one_port
                && other.peer.iter().any(|address| link.peer.contains(address))
        };
        if let Some(other) = config.links.iter().take(index).find(same) {
            faults.at(format!("links[{index}].peer")).say(
                format!("is an address of link `{}` as well", other.name),
                "another address, or a `port` for each of the two",
            );
        }
    }
    names(
        config.links.iter().map(|link| link.name.as_str()),
        "links",
        faults,
    )
}

/// What names mean, for a hop.
struct Names<'c> {
    links: &'c HashMap<&'c str, usize>,
    screens: &'c HashMap<&'c str, usize>,
    config: &'c Config,
}

fn hops<'c>(
    config: &'c Config,
    points: &Points,
    links: &'c HashMap<&'c str, usize>,
    screens: &'c HashMap<&'c str, usize>,
    faults: &mut Faults,
) -> Vec<Hop> {
    let all = Names {
        links,
        screens,
        config,
    };
    let servers = config
        .application_servers
        .iter()
        .enumerate()
        .map(|(index, server)| {
            let at = format!("applicationServers[{index}]");
            Hop {
                name: server.name.clone(),
                is_server: true,
                context: Some(server.routing_context),
                key: server.routing_context,
                mode: server.traffic_mode.mode(),
                links: all.links(&at, &server.links, &[Role::Sgp, Role::Ipa], faults),
                adjacent: None,
                label: ipa::compile(config, server, points, &at, faults),
                screen: all.screen(&at, server.screening.as_deref(), faults),
            }
        });
    let mut hops: Vec<Hop> = servers.collect();
    for (index, set) in config.link_sets.iter().enumerate() {
        let at = format!("linkSets[{index}]");
        let adjacent = adjacent::compile(config, set, points, &at, faults);
        let roles = match adjacent {
            Some(_) => &[Role::M2pa][..],
            None => &[Role::Asp, Role::Ipsp],
        };
        let links = all.links(&at, &set.links, roles, faults);
        let grants = |link: &usize| {
            config
                .links
                .get(*link)
                .is_some_and(|link| link.role == Role::Ipsp)
        };
        if set.routing_context.is_none() && links.iter().any(grants) {
            let right = "the routing context that both sides use";
            faults
                .at(format!("{at}.routingContext"))
                .say("is absent, and a link of the set has role `ipsp`", right);
        }
        hops.push(Hop {
            name: set.name.clone(),
            is_server: false,
            context: set.routing_context,
            key: set.routing_context.unwrap_or(UNNAMED + index as u32),
            mode: TrafficMode::Loadshare,
            links,
            adjacent,
            label: None,
            screen: all.screen(&at, set.screening.as_deref(), faults),
        });
    }
    contexts(&hops, config, faults);
    hops
}

/// Of each link its hops.
fn of_links(hops: &[Hop], links: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); links];
    for (at, hop) in hops.iter().enumerate() {
        for link in &hop.links {
            if let Some(mine) = all.get_mut(*link).filter(|mine| mine.last() != Some(&at)) {
                mine.push(at);
            }
        }
    }
    all
}

/// A link has one hop for each routing context: DATA would be ambiguous otherwise.
fn contexts(hops: &[Hop], config: &Config, faults: &mut Faults) {
    let servers = config.application_servers.len();
    for (index, hop) in hops.iter().enumerate() {
        let at = match index.checked_sub(servers) {
            None => format!("applicationServers[{index}]"),
            Some(set) => format!("linkSets[{set}]"),
        };
        let earlier = hops.iter().take(index);
        let ambiguous = |other: &&Hop| {
            let shares = other.links.iter().any(|link| hop.links.contains(link));
            shares && (other.context == hop.context || other.context.is_none() || hop.context.is_none())
        };
        if let Some(other) = earlier.clone().find(ambiguous) {
            faults.at(format!("{at}.routingContext")).say(
                format!(
                    "does not distinguish it from `{}`, which has one of its links",
                    other.name
                ),
                "a routing context of its own",
            );
        }
        if hop.name.is_empty() || earlier.clone().any(|other| other.name == hop.name) {
            let what = "is empty, or the name of another application server or link set";
            faults.at(format!("{at}.name")).say(what, "a name of its own");
        }
    }
}

impl Names<'_> {
    fn links(&self, at: &str, names: &[String], roles: &[Role], faults: &mut Faults) -> Vec<usize> {
        let mut found = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let key = format!("{at}.links[{number}]");
            match self.links.get(name.as_str()) {
                None => faults.at(key).say("names no link", "the name of one of `links`"),
                Some(link) if found.contains(link) => faults.at(key).say("occurs twice", "each link once"),
                Some(link) => {
                    let role = self.config.links.get(*link).map(|link| link.role);
                    if role.is_some_and(|role| !roles.contains(&role)) {
                        let right = match roles {
                            [Role::Sgp, ..] => "a link of role `sgp` or `ipa`",
                            [Role::M2pa] => "a link of role `m2pa`, as the `pointCode` of the link set says",
                            _ => "a link of role `asp` or `ipsp`",
                        };
                        faults.at(key).say("is a link of another role", right);
                    }
                    found.push(*link);
                }
            }
        }
        if names.is_empty() {
            faults
                .at(format!("{at}.links"))
                .say("is empty", "at least one link");
        }
        found
    }

    fn screen(&self, at: &str, name: Option<&str>, faults: &mut Faults) -> Option<usize> {
        let found = self.screens.get(name?).copied();
        if found.is_none() {
            let right = "the name of a list of `screening`";
            faults
                .at(format!("{at}.screening"))
                .say("names no screening list", right);
        }
        found
    }
}

/// Bits of the longest point codes, those of ANSI and China.
const MOST_WILD: u8 = 24;

/// The bits of a point code that count, and those that are wild.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Cluster {
    pub(crate) code: PointCode,
    pub(crate) wild: u8,
}

impl Cluster {
    /// Bits of the member in a point code of ANSI.
    const MEMBER_BITS: u8 = 8;

    /// The point codes that have all but the last bits of one.
    pub(crate) const fn new(code: PointCode, wild: u8) -> Self {
        let wild = if wild > MOST_WILD { MOST_WILD } else { wild };
        Self { code, wild: 0 }.widened(wild)
    }

    /// Reads `3-50-1`, `3-48-0/3`.
    pub(crate) fn parse(plan: Plan, text: &str) -> Result<Self, String> {
        let (code, wild) = match text.split_once('/') {
            None => (text, 0),
            Some((code, wild)) => {
                let wild = wild.parse().ok().filter(|wild| u32::from(*wild) <= plan.bits());
                let most = plan.bits();
                (
                    code,
                    wild.ok_or_else(|| {
                        format!("`{text}`: behind `/` stands 0 to {most}, the bits that are wild")
                    })?,
                )
            }
        };
        let code = plan.parse(code).map_err(|error| error.to_string())?;
        Ok(Self { code, wild: 0 }.widened(wild))
    }

    /// The cluster of messages of ANSI about one: point codes that differ in their member (T1.111.8).
    pub(crate) const fn of_ansi(code: PointCode) -> Self {
        Self { code, wild: 0 }.widened(Self::MEMBER_BITS)
    }

    /// Whether the plan has messages about it: ANSI about clusters of this size.
    pub(crate) const fn is_of(self, plan: Plan) -> bool {
        matches!(plan, Plan::Ansi) && self.wild == Self::MEMBER_BITS
    }

    const fn widened(self, wild: u8) -> Self {
        Self {
            code: PointCode(self.code.0 >> wild << wild),
            wild,
        }
    }

    /// The clusters that have this one, itself first and the widest last.
    pub(crate) fn around(self) -> impl Iterator<Item = Self> {
        (self.wild..=MOST_WILD).map(move |wild| self.widened(wild))
    }

    pub(crate) const fn covers(&self, code: PointCode) -> bool {
        self.code.0 >> self.wild == code.0 >> self.wild
    }

    /// Whether all point codes of another one are within it.
    pub(crate) const fn has(&self, other: Self) -> bool {
        self.wild >= other.wild && self.covers(other.code)
    }

    pub(crate) fn show(&self, plan: Plan) -> String {
        match self.wild {
            0 => plan.show(self.code).to_string(),
            wild => format!("{}/{wild}", plan.show(self.code)),
        }
    }
}
