//! NFs that are registered with other NRFs, as these say in their own profiles (`nrfInfo`, TS 29.510 §6.1.6.2.31): a
//! discovery that finds nothing here goes to the NRF that has a match (§5.2.2.2.3, §5.3.2.2.3).

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use ::discovery::{Query, Whom};
use model::{NfInstanceId, NfProfile, NfStatus, NfType, pattern};
use registry::{Entry, Snapshot};
use sbi::headers::TargetApiRoot;
use serde_json::{Map, Value, json};

use crate::slf::api_root;

/// The NRFs that have registered, as of a state of their profiles. One per worker.
#[derive(Default)]
pub(crate) struct Served(RefCell<(u64, Rc<[Elsewhere]>)>);

/// Another NRF, and what is registered with it.
struct Elsewhere {
    targets: Arc<[TargetApiRoot]>,
    /// Of each NF what `nrfInfo` has of it.
    profiles: Vec<NfProfile>,
}

impl Served {
    /// The discovery service of an NRF with which an NF is registered that matches: those of its API roots that are
    /// `allowed`. An NRF that has none gives way to the next one. `own` is this NRF.
    pub(crate) fn find(
        &self,
        snapshot: &Snapshot,
        own: &str,
        query: &Query,
        supi: Option<&str>,
        gpsi: Option<&str>,
        allowed: impl Fn(&TargetApiRoot) -> bool,
    ) -> Option<Arc<[TargetApiRoot]>> {
        let table = snapshot.of_type(&NfType::Nrf)?;
        let mut known = self.0.borrow_mut();
        if known.0 != table.generation() {
            let others = table.iter().filter(|entry| entry.id.to_string() != own);
            *known = (
                table.generation(),
                others.filter_map(|entry| elsewhere(entry)).collect(),
            );
        }
        let whom = Whom {
            supi,
            gpsi,
            group: None,
        };
        let fits = |profile: &NfProfile| {
            Some(&profile.nf_type) == query.target.as_ref()
                && match &query.guami {
                    Some(guami) => query.matches_with_guami(profile, whom, guami, |entry| &entry.guami_list),
                    None => query.matches(profile, whom),
                }
        };
        let matching = known.1.iter().filter(|other| other.profiles.iter().any(fits));
        let mut reachable = matching.map(|other| {
            let targets = other.targets.iter().filter(|root| allowed(root));
            targets.cloned().collect::<Arc<[TargetApiRoot]>>()
        });
        reachable.find(|targets| !targets.is_empty())
    }
}

fn elsewhere(entry: &Entry) -> Option<Elsewhere> {
    if entry.status != NfStatus::Registered {
        return None;
    }
    let services = entry.profile.services();
    let discovery = services.filter(|service| service.service_name.as_str() == "nnrf-disc");
    let targets: Arc<[TargetApiRoot]> = discovery
        .filter_map(|service| api_root(&entry.profile, service))
        .collect();
    let document: Value = serde_json::from_slice(&entry.document()).ok()?;
    let info = document.get("nrfInfo")?.as_object()?;
    // The text is no longer than a profile may be, and its expressions no more than those of one.
    let (profiles, _) = pattern::within(pattern::Limits::default(), || served(info));
    (!targets.is_empty() && !profiles.is_empty()).then_some(Elsewhere { targets, profiles })
}

/// What `nrfInfo` has of each NF, as a profile.
fn served(info: &Map<String, Value>) -> Vec<NfProfile> {
    let mut profiles = Vec::new();
    for (name, by_instance) in info {
        let Some(block) = name.strip_prefix("served") else {
            continue;
        };
        let nf_type = type_of(block);
        for (id, value) in by_instance.as_object().into_iter().flatten() {
            if NfInstanceId::parse(id).is_err() {
                continue;
            }
            let named = value.get("nfType").filter(|_| block == "NfInfo");
            let nf_type = named.cloned().unwrap_or_else(|| nf_type.clone().into());
            let mut profile = json!({"nfInstanceId": id, "nfType": nf_type, "nfStatus": "REGISTERED"});
            if let Some(profile) = profile.as_object_mut().filter(|_| block != "NfInfo") {
                profile.insert(member_of(block), value.clone());
            }
            // One that cannot be read serves no query here.
            profiles.extend(serde_json::from_value(profile).ok());
        }
    }
    profiles
}

/// The NF type of `UdmInfo`, `MbSmfInfoList` …
fn type_of(block: &str) -> String {
    let name = block.trim_end_matches("List").trim_end_matches("Info");
    match name {
        "MbSmf" => "MB_SMF".to_owned(),
        "MbUpf" => "MB_UPF".to_owned(),
        "TrustAf" => "AF".to_owned(),
        other => other.to_ascii_uppercase(),
    }
}

/// The member of a profile: `udmInfo`, `mbSmfInfoList` …
fn member_of(block: &str) -> String {
    let mut letters = block.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_name_types_and_members() {
        let of = |block| (type_of(block), member_of(block));
        assert_eq!(of("UdmInfo"), ("UDM".to_owned(), "udmInfo".to_owned()));
        assert_eq!(
            of("PcscfInfoList"),
            ("PCSCF".to_owned(), "pcscfInfoList".to_owned())
        );
        assert_eq!(
            of("MbSmfInfoList"),
            ("MB_SMF".to_owned(), "mbSmfInfoList".to_owned())
        );
        assert!(model::NfType::from(&*type_of("MbSmfInfoList")).is_known());
    }
}
