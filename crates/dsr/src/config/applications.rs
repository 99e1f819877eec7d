//! Applications inside the router: what application route rules lead to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsr_app::Installed;
use dsr_app::appended::one_name;
use dsr_dsa::config::Dsa;
use dsr_eir::config::Eir;
use dsr_fabr::config::Fabr;
use dsr_ocdra::config::Ocdra;
use dsr_pdra::config::Pdra;
use dsr_rbar::config::Rbar;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period};

/// An application inside the router.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Application {
    /// Name by which application route rules refer to it.
    pub name: String,
    /// Range based address resolution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rbar: Option<Rbar>,
    /// Equipment identity register: the server of S13 and S13' (TS 29.272).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eir: Option<Eir>,
    /// Full address based resolution: destinations of single subscribers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabr: Option<Fabr>,
    /// Security application: counter-measures against what roaming partners send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dsa: Option<Dsa>,
    /// Policy DRA: all sessions of a subscriber at one PCRF (TS 29.213 §7).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdra: Option<Pdra>,
    /// Online charging DRA: each credit-control session at one OCS (RFC 8506).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ocdra: Option<Ocdra>,
    /// An application that the program brings which embeds the router; it is in no file.
    #[serde(skip)]
    pub ready: Option<Ready>,
}

impl Application {
    /// `lifetime` is that of requests in the router.
    pub(super) fn validate_at(&self, at: &str, lifetime: Period, faults: &mut Faults) {
        faults.within(format!("{at}.rbar"), &self.rbar);
        faults.within(format!("{at}.eir"), &self.eir);
        faults.within(format!("{at}.fabr"), &self.fabr);
        faults.within(format!("{at}.dsa"), &self.dsa);
        faults.within(format!("{at}.pdra"), &self.pdra);
        faults.within(format!("{at}.ocdra"), &self.ocdra);
        // Else another PCRF is chosen for a subscriber while a request that begins a session has no answer.
        if let Some(pdra) = &self.pdra
            && pdra.repository.reservation <= lifetime
        {
            faults.at(format!("{at}.pdra.repository.reservation")).say(
                format!("is {}", pdra.repository.reservation),
                format!("more than routing.transaction.lifetime ({lifetime})"),
            );
        }
        // Else what comes again may be at another OCS while the first one has the request.
        if self.ocdra.is_some() && lifetime.duration() >= dsr_ocdra::HOLD {
            faults.at(format!("{at}.ocdra")).say(
                format!("holds a session for less than routing.transaction.lifetime ({lifetime})"),
                format!("a lifetime below {} s", dsr_ocdra::HOLD.as_secs()),
            );
        }
        let kinds = [
            self.rbar.is_some(),
            self.eir.is_some(),
            self.fabr.is_some(),
            self.dsa.is_some(),
            self.pdra.is_some(),
            self.ocdra.is_some(),
        ];
        if kinds.into_iter().filter(|is_there| *is_there).count() > 1 {
            faults.at(at).say(
                "is of several kinds",
                "one of rbar, eir, fabr, dsa, pdra and ocdra",
            );
        }
    }
}

/// Reports mistakes in the files of applications that say what is wrong with them.
pub fn check_files(config: &super::Config, faults: &mut Faults) {
    let (mut all_changes, mut stores) = (BTreeMap::new(), BTreeMap::new());
    for (index, application) in config.applications.iter().enumerate() {
        let at = format!("dsr.applications[{index}]");
        let mut judge = |at: String, judged: Result<(), String>, expected: &str| {
            if let Err(mistakes) = judged {
                faults.at(at).say(mistakes, expected);
            }
        };
        let dsa = application.dsa.as_ref();
        if let Some(dsa) = dsa {
            let tables = dsr_dsa::check_tables(dsa);
            judge(format!("{at}.dsa.tables"), tables, "tables without mistakes");
            let samples = dsr_dsa::check_samples(dsa);
            let expected = "a directory, or a path where one can be created";
            judge(format!("{at}.dsa.samples.directory"), samples, expected);
            let findings = dsr_dsa::check_findings(dsa);
            judge(
                format!("{at}.dsa.findings"),
                findings,
                "a file in a directory that is there",
            );
        }
        let pdra = application.pdra.as_ref();
        let ocdra = application.ocdra.as_ref();
        let repositories = [
            dsa.and_then(|dsa| Some(("dsa.store", Some(dsa.directory()?), PathBuf::new()))),
            pdra.map(|pdra| ("pdra.repository", pdra.directory(), pdra.repository_name())),
            ocdra.map(|ocdra| ("ocdra.repository", ocdra.directory(), ocdra.repository_name())),
        ];
        for (kind, directory, name) in repositories.into_iter().flatten() {
            // Kinds have tables of their own in a database, and a directory each.
            let (store, key, part) = match directory {
                Some(directory) if kind == "dsa.store" => ("directory", one_name(directory), ".directory"),
                Some(directory) => ("directory", one_name(directory), ".store.embedded.directory"),
                None => ("database", Path::new(kind).join(name), ""),
            };
            let (first, other) = *stores.entry(key).or_insert((index, application));
            let judged = match std::ptr::eq(other, application) || share_repository(other, application) {
                true => Ok(()),
                false => Err(format!("is the {store} of dsr.applications[{first}] too")),
            };
            judge(
                format!("{at}.{kind}{part}"),
                judged,
                &format!(
                    "a {store} of its own; two `pdra` or two `ocdra` with the same `repository` may share one"
                ),
            );
        }
        let Some(fabr) = &application.fabr else { continue };
        let files = dsr_fabr::check_files(fabr);
        judge(format!("{at}.fabr"), files, "files without mistakes");
        if let Some(changes) = &fabr.changes
            && let Some(other) = all_changes.insert(one_name(changes), index)
        {
            let both = Err(format!("is the file of dsr.applications[{other}] too"));
            judge(format!("{at}.fabr.changes"), both, "a file of its own");
        }
    }
}

/// Whether two applications with one store have one repository: they are of one kind, with the same settings of it.
fn share_repository(one: &Application, other: &Application) -> bool {
    let is_pdra = one
        .pdra
        .as_ref()
        .zip(other.pdra.as_ref())
        .is_some_and(|(one, other)| dsr_pdra::Pdra::may_replace(one, other).is_ok());
    let is_ocdra = one
        .ocdra
        .as_ref()
        .zip(other.ocdra.as_ref())
        .is_some_and(|(one, other)| dsr_ocdra::Ocdra::may_replace(one, other).is_ok());
    is_pdra || is_ocdra
}

/// An application that was made already.
#[derive(Clone, Debug)]
pub struct Ready(pub Arc<dyn Installed>);

impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
