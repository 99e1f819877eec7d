//! The tables of a router's security application, as long as those of the benchmarking guide (table 23), and what it has found.
//!
//! Honest traffic breaks with no row. Exceptions are about subscribers, networks, hosts and realms that send nothing.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use diameter_proto::known::application::S6A;

use super::MOST_NODES;
use crate::run::figure;
use crate::run::rig::Probe;
use ::report::Check;
use callmodel::dsr::DsrModel;
use callmodel::roaming::{Country, HOME, Network, Roaming, STATEFUL, STATELESS, countries, foreign};
use report::measure::Metrics;
use workload::dsr::{FOUND, Roams, roaming_mme};

/// Rows of the guide's tables.
const PARTNERS: usize = 20;
const NETWORKS: usize = 111;
const REALMS: usize = 112;
const NETWORK_LISTS: usize = 20;
const BARRED_VALUES: usize = 58;
const INSTANCES: usize = 59;
const PLACES: usize = 225;
const EXCEPTED_COUNTRIES: usize = 164;
const DISTANCES: usize = 2000;
/// Of each of five tables of exceptions: a hundred in all.
const EXCEPTIONS: usize = 20;
/// ULR, CLR, AIR, IDR, DSR, PUR, RSR, NOR (TS 29.272 §7.2.2).
const COMMANDS: [u32; 8] = [316, 317, 318, 319, 320, 321, 322, 323];
/// AVPs that requests of S6a have once (TS 29.272 §7.2), by which commands have them.
const ONCE: [(&str, usize); 8] = [
    ("Session-Id", 8),
    ("Auth-Session-State", 8),
    ("Origin-Host", 8),
    ("Origin-Realm", 8),
    ("Destination-Realm", 8),
    ("Vendor-Specific-Application-Id", 8),
    ("Destination-Host", 8),
    ("Route-Record", 3),
];
/// A rate that no MME has.
const RATE: u32 = 1_000_000;
const CONTINENTS: [&str; 6] = [
    "africa",
    "asia",
    "europe",
    "latin-america",
    "north-america",
    "oceania",
];

/// A table of some rows.
struct Sheet {
    name: &'static str,
    text: String,
}

impl Sheet {
    fn new(name: &'static str, columns: &str) -> Self {
        let text = format!("{columns}\n");
        Self { name, text }
    }

    fn with(mut self, rows: impl IntoIterator<Item = String>) -> Self {
        for row in rows {
            // Writing to a String cannot fail.
            let _ = writeln!(self.text, "{row}");
        }
        self
    }
}

/// Writes the tables into a directory of their own.
pub(super) fn write(roaming: &Roaming, directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let sheets = [measures(roaming)].into_iter();
    let sheets = sheets.chain(networks()).chain(messages()).chain(distances());
    for sheet in sheets.chain(exceptions()) {
        std::fs::write(directory.join(format!("{}.csv", sheet.name)), &sheet.text)?;
    }
    Ok(())
}

/// The measures that are on: they only detect where no attacks are sent, and answer where some are.
fn measures(roaming: &Roaming) -> Sheet {
    let mode = if roaming.attacks.percent() > 0.0 {
        format!("Detection_And_Correction_By_Send_Answer,{FOUND},found")
    } else {
        "Detection_Only,,".to_owned()
    };
    let rows = STATELESS.iter().chain(&STATEFUL).map(|measure| {
        let status = if roaming.has(measure) { "Enable" } else { "Disable" };
        format!("{measure},{status},{mode}")
    });
    let columns = "CounterMeasure_Type,Admin_Status,Operating_Mode,Result_Code,Error_Message";
    Sheet::new("Security_Countermeasure_Config", columns).with(rows)
}

/// Foreign networks without MMEs.
fn silent() -> impl Iterator<Item = Network> {
    let of = |country: &Country| Network {
        mcc: country.mcc,
        mnc: 98,
    };
    countries().iter().map(of)
}

/// Partners, realms and networks of subscribers.
fn networks() -> [Sheet; 4] {
    let sets = (0..PARTNERS).map(|set| {
        let mmes = (set..MOST_NODES).step_by(PARTNERS);
        let hosts: Vec<String> = mmes.map(|mme| roaming_mme(mme as u16).origin.host).collect();
        format!("partner{set:02},{}", hosts.join(";"))
    });
    let all = || foreign().iter().copied().chain(silent());
    let realms = all().map(|network| format!("Foreign_Network,{}", network.realm()));
    let home = [format!("Home_Network,{}", HOME.realm())];
    let codes = all().map(|network| format!("Foreign_Network,{}", network.code()));
    let home_code = [format!("Home_Network,{}", HOME.code())];
    let lists = countries().iter().filter(|country| country.mcc != HOME.mcc);
    let lists = lists.map(|country| format!("{},01;02;03;04", country.mcc));
    let home_list = [format!("{},01;02;03;04", HOME.mcc)];
    [
        Sheet::new("Foreign_WL_Peers_Cfg_Sets", "Cfg_Set_Name,Peers").with(sets),
        Sheet::new("Realm_List", "Network_Type,Realm").with(home.into_iter().chain(realms).take(REALMS)),
        Sheet::new("MCC_MNC_List", "Network_Type,MCC_MNC")
            .with(home_code.into_iter().chain(codes).take(NETWORKS)),
        Sheet::new("RealmIMSICst_Config", "MCC,MNC_List")
            .with(home_list.into_iter().chain(lists).take(NETWORK_LISTS)),
    ]
}

/// Applications, commands, AVPs and rates.
fn messages() -> [Sheet; 6] {
    let counts = ONCE.into_iter().flat_map(|(avp, commands)| {
        let least = u8::from(
            ![
                "Destination-Host",
                "Route-Record",
                "Vendor-Specific-Application-Id",
            ]
            .contains(&avp),
        );
        let most = if avp == "Route-Record" { 16 } else { 1 };
        let commands = COMMANDS.into_iter().take(commands);
        commands.map(move |command| format!("{S6A},{command},Request,{avp},{least},{most}"))
    });
    let [update, ..] = COMMANDS;
    // RAT-Types of other radio than an MME's (TS 29.212 §5.3.31).
    let values = (0..BARRED_VALUES).map(|value| format!("{S6A},{update},Request,RAT-Type,{value}"));
    let rates = COMMANDS.map(|command| format!("{S6A},{command},{RATE}"));
    [
        Sheet::new("AppIdWL_Config", "Application_ID").with([S6A.to_string()]),
        Sheet::new("AppCmdCst_Config", "Application_ID,Command_Codes")
            .with([format!("{S6A},316;318;321;323"), format!("{S6A},317;319;320")]),
        Sheet::new("VplmnORCst_Config", "Application_ID,Command_Codes").with([format!("{S6A},316;318")]),
        Sheet::new(
            "SpecAVPScr_Config",
            "Application_ID,Command_Code,Message_Type,AVP_Name,AVP_Value",
        )
        .with(values),
        Sheet::new(
            "AVPInstChk_Config",
            "Application_ID,Command_Code,Message_Type,AVP_Name,Minimum_Instance,Maximum_Instance",
        )
        .with(counts.take(INSTANCES)),
        Sheet::new(
            "MsgRateMon_Config",
            "Application_ID,Command_Code,Messages_Per_Second",
        )
        .with(rates),
    ]
}

/// Places of countries, and times between them.
fn distances() -> [Sheet; 4] {
    let all = countries();
    let places = all
        .iter()
        .map(|country| format!("{},{},{}", country.mcc, country.place.0, country.place.1));
    // The last one that is far from a country is excepted; all others have a time.
    let excepted = |country: &Country| all.iter().rev().find(|other| !other.is_near(country));
    let exceptions: Vec<(&Country, &Country)> = all
        .iter()
        .filter_map(|country| Some((country, excepted(country)?)))
        .take(EXCEPTED_COUNTRIES)
        .collect();
    let is_excepted = |one: &Country, other: &Country| {
        let mut pairs = exceptions.iter();
        pairs.any(|(a, b)| (a.mcc, b.mcc) == (one.mcc, other.mcc) || (b.mcc, a.mcc) == (one.mcc, other.mcc))
    };
    let pairs = all.iter().enumerate().flat_map(|(index, one)| {
        let others = all.iter().skip(index + 1);
        others.map(move |other| (one, other))
    });
    let pairs = pairs.filter(|(one, other)| !one.is_near(other) && !is_excepted(one, other));
    let continents = CONTINENTS.iter().enumerate().flat_map(|(index, one)| {
        let others = CONTINENTS.iter().skip(index + 1);
        others.map(move |other| format!("{one},{other},180"))
    });
    let rows = pairs
        .take(DISTANCES)
        .map(|(one, other)| format!("{},{},60", one.mcc, other.mcc));
    [
        Sheet::new("TimeDistChk_Country_Config", "MCC,Latitude,Longitude").with(places.take(PLACES)),
        Sheet::new("TimeDistChk_Exception_List", "MCC,Exception_List_For_Country").with(
            exceptions
                .iter()
                .map(|(one, other)| format!("{},{}", one.mcc, other.mcc)),
        ),
        Sheet::new(
            "TimeDistChk_Config",
            "Node_ID_1,Node_ID_2,Minimum_Transition_Time",
        )
        .with(rows),
        Sheet::new(
            "TimeDistChk_Continent_Config",
            "Continent_1,Continent_2,Minimum_Transition_Time",
        )
        .with(continents),
    ]
}

fn exceptions() -> [Sheet; 5] {
    let numbers = || 0..EXCEPTIONS;
    let networks = || {
        silent()
            .skip(NETWORKS)
            .take(EXCEPTIONS)
            .map(|network| format!("{},*", network.code()))
    };
    [
        Sheet::new(
            "IMSI_Exception_Config",
            "Start_Address,End_Address,CounterMeasures",
        )
        .with(numbers().map(|number| format!("{}99{number:08},,*", HOME.code()))),
        Sheet::new("MCC_MNC_Exception_Config", "MCC_MNC,CounterMeasures").with(networks()),
        Sheet::new("VPLMN_ID_Exception_Config", "VPLMN_ID,CounterMeasures").with(networks()),
        Sheet::new("Origin_Host_Exception_Config", "Origin_Host,CounterMeasures")
            .with(numbers().map(|number| format!("probe{number}.monitoring.example,*"))),
        Sheet::new("Realm_Exception_Config", "Realm,CounterMeasures")
            .with(numbers().map(|number| format!("monitoring{number}.example,*"))),
    ]
}

/// Whether honest traffic has no findings, or each that was answered was an attack; and whether it was screened at all.
pub(super) fn findings(model: &DsrModel, roams: &Arc<Roams>, admin: SocketAddr) -> Probe {
    let attacks = model.dsa.as_ref().is_some_and(|dsa| dsa.attacks.percent() > 0.0);
    let roams = roams.clone();
    Box::new(move || {
        let counted = Metrics::read(admin).map(|said| {
            ["screened", "detections", "answered"]
                .map(|what| said.sum(&format!("signalbox_dsr_security_{what}_total"), &[]))
        });
        let [screened, found, answered] = counted.unwrap_or([f64::NAN; 3]);
        let (right, made) = roams.attacks();
        let (wanted, fits) = if attacks {
            // Answers that came late or with a connection that ended were not judged.
            let fits = right > 0 && (right as f64..=made as f64).contains(&answered);
            (format!("only attacks answered, {right} to {made}"), fits)
        } else {
            ("none".to_owned(), found.abs() < 0.5)
        };
        Check::new(
            "findings",
            wanted,
            format!(
                "{} in {} messages, {} answered",
                figure(found),
                figure(screened),
                figure(answered)
            ),
            fits && screened > 0.0,
        )
    })
}
