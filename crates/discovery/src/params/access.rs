//! Where the subscriber is: tracking areas, AMFs, access and radio types, positioning.

use model::{Guami, Tai, TaiRange};
use serde::Deserialize;

use super::{block_or, exactly, must, open_or};
use crate::fault::ParamFault;
use crate::test::{Param, Test};
use crate::view::View;

#[derive(Deserialize)]
struct AnyText(String);

/// Whether a block serves a tracking area; one without areas serves all.
fn serves(list: &[Tai], ranges: &[TaiRange], tai: &Tai) -> bool {
    (list.is_empty() && ranges.is_empty())
        || list.contains(tai)
        || ranges.iter().any(|range| range.contains(tai))
}

/// Whether the profile serves a tracking area in every kind of block it has.
pub(super) fn serves_tai(p: &View<'_>, tai: &Tai) -> bool {
    block_or(p.amf_infos(), |b| serves(&b.tai_list, &b.tai_range_list, tai))
        && block_or(p.smf_infos(), |b| serves(&b.tai_list, &b.tai_range_list, tai))
        && block_or(p.upf_infos(), |b| serves(&b.tai_list, &b.tai_range_list, tai))
        && block_or(p.nwdaf_infos(), |b| serves(&b.tai_list, &b.tai_range_list, tai))
        && open_or(&p.lmf_info, |b| serves(&b.tai_list, &b.tai_range_list, tai))
        && open_or(&p.nef_info, |b| serves(&b.tai_list, &b.tai_range_list, tai))
        && open_or(&p.mfaf_info, |b| serves(&b.tai_list, &b.tai_range_list, tai))
        && open_or(&p.dccf_info, |b| serves(&b.tai_list, &b.tai_range_list, tai))
        && open_or(p.nsacf_infos(), |b| serves(&b.tai_list, &b.tai_range_list, tai))
        && open_or(p.mb_smf_infos(), |b| serves(&b.tai_list, &b.tai_range_list, tai))
        && open_or(p.mb_upf_infos(), |b| serves(&b.tai_list, &b.tai_range_list, tai))
        && open_or(&p.iwmsc_info, |b| serves(&[], &b.tai_range_list, tai))
}

pub(super) fn test_of(param: Param<'_>) -> Result<Option<Test>, ParamFault> {
    match param.name {
        "tai" => {
            let tai: Tai = param.json()?;
            must(move |p| serves_tai(p, &tai))
        }
        "tai-list" => {
            let tais: Vec<Tai> = param.json_list()?;
            must(move |p| tais.iter().any(|tai| serves_tai(p, tai)))
        }
        "amf-region-id" => {
            let region = hex(param, 2)?;
            must(move |p| {
                p.amf_infos()
                    .any(|b| b.amf_region_id.eq_ignore_ascii_case(&region))
            })
        }
        "amf-set-id" => {
            let set = param.text()?;
            model::shape::rules::amf_set(&set).map_err(|expected| param.fault(expected))?;
            must(move |p| p.amf_infos().any(|b| b.amf_set_id.eq_ignore_ascii_case(&set)))
        }
        "guami" => {
            let guami: Guami = param.json()?;
            // An atom of a complex query; who stands in for an AMF is asked of the whole registry.
            must(move |p| p.amf_infos().any(|b| b.guami_list.contains(&guami)))
        }
        // The only value the OpenAPI file has is true.
        "high-latency-com" => match param.boolean()? {
            true => must(|p| p.amf_infos().any(|b| b.high_latency_com)),
            false => Err(param.fault("expected `true`")),
        },
        "support-onboarding-capability" => exactly(param, |p| {
            p.amf_infos().any(|b| b.amf_onboarding_capability)
                || p.smf_infos().any(|b| b.smf_onboarding_capability)
        }),
        "access-type" => {
            let access = param.text()?;
            model::shape::rules::access_type(&access).map_err(|expected| param.fault(expected))?;
            must(move |p| {
                block_or(p.smf_infos(), |b| {
                    open_or(&b.access_type, |known| *known == access)
                }) && open_or(p.pcscf_infos(), |b| {
                    open_or(&b.access_type, |known| *known == access)
                }) && open_or(&p.lmf_info, |b| {
                    open_or(&b.serving_access_types, |known| *known == access)
                })
            })
        }
        "rat-type" => {
            let rat = word(param)?;
            must(move |p| {
                open_or(&p.lmf_info, |b| {
                    open_or(&b.serving_rat_types, |known| *known == rat)
                })
            })
        }
        "an-node-type" => {
            let node = word(param)?;
            must(move |p| {
                open_or(&p.lmf_info, |b| {
                    open_or(&b.serving_an_node_types, |known| *known == node)
                })
            })
        }
        "client-type" => {
            let client = word(param)?;
            must(move |p| {
                open_or(&p.lmf_info, |b| {
                    open_or(&b.serving_client_types, |known| *known == client)
                }) && open_or(&p.gmlc_info, |b| {
                    open_or(&b.serving_client_types, |known| *known == client)
                })
            })
        }
        "lmf-id" => {
            let id = text(param)?;
            must(move |p| {
                p.lmf_info
                    .as_ref()
                    .is_some_and(|b| b.lmf_id.as_deref() == Some(&*id))
            })
        }
        "gmlc-number" => {
            let number = param.text()?;
            model::shape::rules::number5to15(&number).map_err(|expected| param.fault(expected))?;
            must(move |p| {
                p.gmlc_info
                    .as_ref()
                    .is_some_and(|b| b.gmlc_numbers.contains(&number))
            })
        }
        "nsac-sai" => {
            let area = param.text()?;
            must(move |p| {
                open_or(p.nsacf_infos(), |b| {
                    open_or(&b.nsac_sai_list, |known| *known == area)
                })
            })
        }
        _ => Ok(None),
    }
}

/// A text that the OpenAPI file wants as JSON (`"E_UTRAN"`) and many send plain.
fn text(param: Param<'_>) -> Result<String, ParamFault> {
    if let Ok(AnyText(text)) = serde_json::from_str(param.value) {
        return Ok(text);
    }
    let is_other_json = param.value.starts_with(['{', '[', '"']) || param.value == "null";
    match is_other_json {
        true => Err(param.fault("expected a text")),
        false => param.text(),
    }
}

/// One word of an enumeration, in the same two forms.
fn word(param: Param<'_>) -> Result<String, ParamFault> {
    let word = text(param)?;
    match word.starts_with(|first: char| first.is_ascii_alphabetic()) {
        true => Ok(word),
        false => Err(param.fault("expected a word of letters, digits and underscores")),
    }
}

fn hex(param: Param<'_>, len: usize) -> Result<String, ParamFault> {
    let fits = param.value.len() == len && param.value.bytes().all(|b| b.is_ascii_hexdigit());
    fits.then(|| param.value.to_owned())
        .ok_or_else(|| param.fault(format!("expected {len} hexadecimal digits")))
}
