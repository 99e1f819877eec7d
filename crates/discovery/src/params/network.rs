//! Which network, instance, set or service: names and places of network functions.

use model::{ExtSnssai, NfInstanceId, PlmnId, PlmnIdNid, PlmnSnssai, Snssai};

use super::{must, open_or};
use crate::fault::ParamFault;
use crate::test::{Param, Test};
use crate::view::View;

pub(super) fn test_of(param: Param<'_>) -> Result<Option<Test>, ParamFault> {
    match param.name {
        "target-nf-instance-id" => {
            let id = param.parsed(NfInstanceId::parse)?;
            must(move |p| p.nf_instance_id == id)
        }
        "target-nf-fqdn" => {
            let name = param.host()?;
            must(move |p| {
                let services = p.services().filter_map(|service| service.fqdn.as_deref());
                p.fqdn
                    .as_deref()
                    .into_iter()
                    .chain(services)
                    .any(|fqdn| fqdn.eq_ignore_ascii_case(&name))
            })
        }
        "target-nf-set-id" => {
            let set = param.text()?;
            must(move |p| p.nf_set_id_list.contains(&set))
        }
        "target-nf-service-set-id" => {
            let set = param.text()?;
            must(move |p| {
                p.services()
                    .any(|service| service.nf_service_set_id_list.contains(&set))
            })
        }
        "target-plmn-list" => {
            let plmns: Vec<PlmnId> = param.json_list()?;
            must(move |p| open_or(&p.plmn_list, |plmn| plmns.contains(plmn)))
        }
        "target-snpn" => {
            let snpn: PlmnIdNid = param.json()?;
            must(move |p| p.snpn_list.contains(&snpn))
        }
        "target-hni" => {
            let name = param.host()?;
            must(move |p| p.hni_list.iter().any(|hni| hni.eq_ignore_ascii_case(&name)))
        }
        "snssais" => {
            let slices: Vec<Snssai> = param.json_list()?;
            must(move |p| serves_slices(p, &slices))
        }
        "plmn-specific-snssai-list" => {
            let wanted: Vec<PlmnSnssai> = param.json_list()?;
            must(move |p| {
                wanted.iter().any(|one| {
                    let network = one.network();
                    let listed = p
                        .per_plmn_snssai_list
                        .iter()
                        .find(|known| known.network() == network);
                    let slices: &[ExtSnssai] = listed.map_or(&p.snssais, |known| &known.snssais);
                    open_or(slices, |known| {
                        one.snssais.iter().any(|slice| slice.overlaps(known))
                    })
                })
            })
        }
        "nsi-list" => {
            let wanted = param.list()?;
            must(move |p| open_or(&p.nsi_list, |nsi| wanted.contains(nsi)))
        }
        "serving-scope" => {
            let wanted = param.list()?;
            must(move |p| open_or(&p.serving_scope, |scope| wanted.contains(scope)))
        }
        "scp-domain-list" => {
            let wanted = param.list()?;
            must(move |p| {
                // One that connects the domains belongs to each of them.
                wanted
                    .iter()
                    .all(|domain| p.scp_domains.contains(domain) || has_domain(p, domain))
            })
        }
        "exclude-nfinst-list" => {
            let ids: Result<Vec<NfInstanceId>, _> =
                param.list()?.iter().map(|id| NfInstanceId::parse(id)).collect();
            let ids = ids.map_err(|expected| param.fault(expected))?;
            must(move |p| !ids.contains(&p.nf_instance_id))
        }
        "exclude-nfset-list" => {
            let sets = param.list()?;
            must(move |p| !p.nf_set_id_list.iter().any(|set| sets.contains(set)))
        }
        "exclude-nfserviceset-list" => {
            let sets = param.list()?;
            must(move |p| {
                let excluded =
                    |s: &model::NfService| s.nf_service_set_id_list.iter().any(|x| sets.contains(x));
                p.services().count() == 0 || !p.services().all(excluded)
            })
        }
        "exclude-nfservinst-list" => {
            let instances = crate::service_instance::list(param)?;
            must(move |p| {
                let excluded =
                    |s: &model::NfService| instances.iter().any(|one| one.names(&p.nf_instance_id, s));
                p.services().count() == 0 || !p.services().all(excluded)
            })
        }
        _ => Ok(None),
    }
}

/// Whether one of the slices is served: by the profile, for any of its networks, or by a service.
fn serves_slices(profile: &View<'_>, slices: &[Snssai]) -> bool {
    let own = profile
        .snssais
        .iter()
        .chain(profile.per_plmn_snssai_list.iter().flat_map(|one| &one.snssais));
    open_or(own, |known| slices.iter().any(|slice| known.contains(slice)))
        && super::session::offers_slices(profile, slices)
}

fn has_domain(profile: &View<'_>, domain: &str) -> bool {
    let info = profile
        .scp_info
        .iter()
        .flat_map(|info| info.scp_domain_info_list.keys());
    info.into_iter().any(|known| known == domain)
}
