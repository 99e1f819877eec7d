//! Two sites with a router and a database each, which replicate to one another, are cut off from one another under load: both serve,
//! and bind subscribers to different PCRFs. Afterwards each conflict is counted, and none is left.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::pdra::{Gateways, LATE, unknown, wrong};
use super::{Asking, MOST_NODES, await_connections, config, start_function, start_serving_pcrfs, traffic_of};
use crate::run::Options;
use crate::run::admin::ask;
use crate::run::bsf::Servers;
use crate::run::drill::{Act, Drill, Judgement, Outcome, Part};
use crate::run::figure;
use crate::run::rig::{Place, Rig, RigError, free_address};
use ::report::Check;
use callmodel::Load;
use callmodel::dsr::{Cut, DsrModel};
use loadgen::OperationRecord;
use loadgen::diameter::Habits;
use report::measure::Metrics;
use workload::dsr::REALM;
use workload::pcrf::{Counts, imsi};

/// Sites.
const SITES: u32 = 2;
/// Time that replication and checks may take when the load is over.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at what is not settled.
const PAUSE: Duration = Duration::from_millis(200);
/// What a router counts for each session of a binding that has lost.
const YOUNGER: &str = "signalbox_dsr_pdra_binding_conflicts_younger_total";

/// Starts the databases, the routers and the PCRFs, at which a subscriber may have sessions at several.
pub(super) fn start(
    model: &DsrModel,
    cut: &Cut,
    load: &Load,
    options: &Options,
    place: &Place,
) -> Result<Rig, RigError> {
    let mut pcrfs = start_serving_pcrfs(model, place)?;
    let servers = Servers::sites(SITES)?;
    let over = options.function_config.as_deref();
    let (mut routers, mut at) = (Vec::new(), Vec::new());
    for site in 0..SITES {
        let own = (free_address()?, free_address()?);
        let mut made = config(model, place, own, &pcrfs.addresses)?;
        belong(&mut made["dsr"], site, servers.settings(site));
        let name = format!("dsr-{}", site + 1);
        routers.push(start_function(place, ("dsr", &name), made, over, own.0)?);
        at.push(own);
    }
    await_connections(&mut pcrfs, model.hss * SITES as u16)?;

    let gateways = model.pdra.as_ref().map(Gateways::at_sites);
    let gateways = gateways.ok_or_else(|| RigError::Settings("the model has no `pdra`".to_owned()))?;
    let subscribers = model.pdra.as_ref().map_or(0, |own| own.subscribers);
    let drill = SitesCut {
        cut: cut.clone(),
        commands: [servers.at_each("cut"), servers.at_each("join")],
        admins: at.iter().map(|(_, admin)| *admin).collect(),
        subscribers,
        counts: gateways.counts.clone(),
    };
    let nodes = options
        .connections
        .unwrap_or(load.connections)
        .clamp(SITES, MOST_NODES as u32);
    let asking = Asking::Sessions(gateways);
    let first = at.first().map(|(address, _)| *address);
    let first = first.ok_or_else(|| RigError::Settings("the drill names no site".to_owned()))?;
    let router = |number: u16| {
        let own = at.get(usize::from(number) % at.len().max(1));
        (own.map_or(first, |(address, _)| *address), None)
    };
    let workloads = traffic_of(
        &asking,
        &router,
        nodes,
        options.generators,
        load.timeout.duration(),
        &Habits::default(),
    );
    let mut routers = routers.into_iter();
    Ok(Rig {
        function: routers.next(),
        sites: routers.collect(),
        simulators: vec![pcrfs],
        notes: vec![format!(
            "{SITES} sites with a router and a database each; {}, half of the nodes at each site",
            asking.note(nodes, model.hss)
        )],
        drill: Some(Box::new(drill)),
        servers: Some(servers),
        ..Rig::new("dsr", first, workloads)
    })
}

/// Makes a router that of a site: it has a database of its own, and prefers other PCRFs for new subscribers than the other sites, so
/// that those who begin sessions at several of them are bound to several.
fn belong(dsr: &mut Value, site: u32, store: Value) {
    dsr["localNodes"][0]["host"] = json!(format!("dsr{}.{REALM}", site + 1));
    let policy = &mut dsr["applications"][0]["pdra"];
    policy["repository"]["store"] = store;
    policy["repository"]["sweep"] = json!({ "pause": "100ms" });
    if let Some(pcrfs) = policy["pools"][0]["pcrfs"].as_array_mut() {
        for (number, pcrf) in (0..).zip(pcrfs) {
            pcrf["weight"] = json!(u8::from(number % SITES == site));
        }
    }
}

/// The drill.
struct SitesCut {
    cut: Cut,
    /// What cuts the sites and what joins them.
    commands: [Vec<Command>; 2],
    admins: Vec<SocketAddr>,
    subscribers: u32,
    counts: Arc<Counts>,
}

impl Drill for SitesCut {
    fn parts(&self) -> Vec<Part> {
        // Each is called once, before the load: the commands cannot be cloned.
        let again = |commands: &[Command]| -> Vec<Command> { commands.iter().map(copy).collect() };
        let [cut, join] = self.commands.each_ref().map(|commands| doing(again(commands)));
        let (after, until) = (self.cut.after.fraction(), self.cut.until.fraction());
        vec![
            Part::new("the sites are joined", after, 1.0),
            Part {
                begin: Some(cut),
                ..Part::new("they are cut off", until - after, 1.0)
            },
            Part {
                begin: Some(join),
                ..Part::new("they are joined again", 1.0 - until, 1.0)
            },
        ]
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let seen = self.settle();
        let stats = outcome.simulators().next();
        let (begun, stray_media) = stats.map_or((0, u64::MAX), |stats| (stats.sessions, stats.stray_media));
        let mut all = OperationRecord::default();
        for part in outcome.parts {
            all.merge(&part.record.total());
        }
        Judgement {
            checks: vec![
                served(&all),
                unknown(&self.counts),
                Check::new(
                    "AARs find their PCRF",
                    "none at a PCRF that has not the session of its address",
                    format!("{stray_media} such AARs"),
                    stray_media == 0,
                ),
                counted(&seen, begun, self.younger()),
                Check::new(
                    "conflicts that are left",
                    "no subscriber with two bindings, and the same sessions at both sites",
                    format!("{} of {} subscribers", seen.unsettled, seen.subscribers),
                    seen.unsettled == 0 && seen.subscribers > 0,
                ),
            ],
            notes: vec![format!(
                "{} PCRFs of {} subscribers lost a binding to an older one",
                seen.marked, seen.subscribers
            )],
            spares_bounds: true,
            ..Judgement::default()
        }
    }
}

/// A command as it was made.
fn copy(command: &Command) -> Command {
    let mut copy = Command::new(command.get_program());
    copy.args(command.get_args()).stdin(std::process::Stdio::null());
    copy
}

/// What does something at each site.
fn doing(mut commands: Vec<Command>) -> Act {
    Box::new(move |_| {
        for command in &mut commands {
            let done = command.output().map_err(RigError::io("the databases"))?;
            if !done.status.success() {
                let why = String::from_utf8_lossy(&done.stderr);
                return Err(RigError::Settings(format!("the databases: {}", why.trim())));
            }
        }
        Ok(())
    })
}

/// What the sites have in the end.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Subscribers with sessions.
    subscribers: u64,
    /// Those of them with two bindings, or of which the sites have not the same.
    unsettled: u64,
    /// Sessions.
    sessions: u64,
    /// Those of them of a binding that has lost.
    marked: u64,
}

impl SitesCut {
    /// Waits until no subscriber has two bindings.
    fn settle(&self) -> Seen {
        let begun = Instant::now();
        let mut seen = Seen::default();
        let mut left: Vec<u32> = (0..self.subscribers).collect();
        loop {
            left.retain(|subscriber| !self.is_settled(*subscriber, &mut seen));
            if left.is_empty() || begun.elapsed() > PATIENCE {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        seen.unsettled = left.len() as u64;
        seen
    }

    /// Whether a subscriber has one binding, the same at all sites; then its sessions count.
    fn is_settled(&self, subscriber: u32, seen: &mut Seen) -> bool {
        let path = format!("/dsr/pdra/binding/{}", imsi(u64::from(subscriber)));
        let page = |admin: &SocketAddr| {
            let (status, body) = ask(*admin, "GET", &path)?;
            rows(&body).filter(|_| status == 200)
        };
        let pages: Option<Vec<Sessions>> = self.admins.iter().map(page).collect();
        let Some([first, others @ ..]) = pages.as_deref() else {
            return false;
        };
        if !others.iter().all(|other| other == first) || !has_one_binding(first) {
            return false;
        }
        let marked = first.values().filter(|(_, is_marked)| *is_marked).count();
        seen.subscribers += u64::from(!first.is_empty());
        seen.sessions += first.len() as u64;
        seen.marked += marked as u64;
        true
    }

    /// Sessions that the routers have counted as those of bindings that have lost.
    fn younger(&self) -> f64 {
        let count =
            |admin: &SocketAddr| Metrics::read(*admin).map_or(f64::NAN, |seen| seen.sum(YOUNGER, &[]));
        self.admins.iter().map(count).sum()
    }
}

/// The PCRF of each session of a subscriber by its Session-Id, and whether its binding has lost.
type Sessions = BTreeMap<String, (String, bool)>;

/// The sessions on a page.
fn rows(body: &str) -> Option<Sessions> {
    let rows: Vec<Value> = serde_json::from_str(body).ok()?;
    let text = |row: &Value, key: &str| Some(row.get(key)?.as_str()?.to_owned());
    let row = |row: &Value| {
        let is_marked = !text(row, "conflict")?.is_empty();
        Some((text(row, "session")?, (text(row, "pcrf")?, is_marked)))
    };
    rows.iter().map(row).collect()
}

/// Whether all sessions whose binding has not lost are at one PCRF.
fn has_one_binding(sessions: &Sessions) -> bool {
    let mut leading = sessions.values().filter(|(_, is_marked)| !is_marked);
    let first = leading.next();
    leading.all(|(pcrf, _)| first.is_some_and(|(other, _)| other == pcrf))
}

/// That each site has served its clients. Subscribers for whom the other site was choosing at the moment of the cut are refused.
fn served(all: &OperationRecord) -> Check {
    let wrong = wrong(all, &LATE);
    Check::new(
        "both sites serve",
        "at most 1 % of the requests refused or answered wrongly",
        format!("{wrong} of {}", all.offered),
        all.succeeded > 0 && wrong * 100 <= all.offered,
    )
}

/// That each session of a binding that has lost was counted once: those that stand, and at most those that have ended.
fn counted(seen: &Seen, begun: u64, younger: f64) -> Check {
    let ended = begun.saturating_sub(seen.sessions);
    let (least, most) = (seen.marked as f64, (seen.marked + ended) as f64);
    Check::new(
        "conflicts that are counted",
        format!("{} to {}, and some", figure(least), figure(most)),
        figure(younger),
        seen.marked > 0 && younger >= least && younger <= most,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(of: &[(&str, bool)]) -> Sessions {
        let named = of.iter().zip(0..);
        let named =
            named.map(|((pcrf, is_marked), id)| (format!("pgw;{id}"), ((*pcrf).to_owned(), *is_marked)));
        named.collect()
    }

    #[test]
    fn a_page_has_the_binding_of_each_session() {
        let body = r#"[{"session": "pgw;0", "pcrf": "a", "conflict": ""},
                       {"session": "pgw;1", "pcrf": "b", "conflict": "an older binding has won"}]"#;
        let found = rows(body).unwrap();
        assert_eq!(found, sessions(&[("a", false), ("b", true)]));
        assert!(has_one_binding(&found) && has_one_binding(&Sessions::new()));
        assert!(!has_one_binding(&sessions(&[("a", false), ("b", false)])));
        assert!(has_one_binding(&sessions(&[
            ("a", false),
            ("b", true),
            ("a", false)
        ])));
        assert_eq!(
            rows(r#"{"error": "the repository does not answer in time"}"#),
            None
        );
    }

    #[test]
    fn conflicts_are_as_many_as_stand_and_have_ended() {
        let seen = |marked, sessions| Seen {
            subscribers: 9,
            unsettled: 0,
            sessions,
            marked,
        };
        assert!(counted(&seen(5, 20), 20, 5.0).pass);
        assert!(counted(&seen(5, 18), 20, 7.0).pass);
        for (marked, younger) in [(5, 4.0), (5, 8.0), (0, 0.0), (5, f64::NAN)] {
            assert!(
                !counted(&seen(marked, 18), 20, younger).pass,
                "{marked} {younger}"
            );
        }
    }
}
