//! Who the subscriber is: `supi`, `gpsi`, groups, identities of the IMS, routing indicators.

use model::NfProfile;
use model::identity::{Digits, IdentityRange};
use model::nf_profile::SuciInfo;
use model::shape::rules::group_id;
use smallvec::SmallVec;

use super::{block_or, must, open_or};
use crate::fault::ParamFault;
use crate::test::{Param, Test};
use crate::view::View;

/// What a block of any subscriber-related kind says of subscribers.
struct Served<'a> {
    group: Option<&'a str>,
    supi: &'a [IdentityRange],
    gpsi: &'a [IdentityRange],
}

fn served<'a>(view: &View<'a>) -> SmallVec<[Served<'a>; 2]> {
    let profile = view.profile();
    let mut blocks = SmallVec::new();
    macro_rules! each {
        ($blocks:expr, $group:ident, $supi:ident, $gpsi:ident) => {
            blocks.extend($blocks.map(|b| Served {
                group: b.$group.as_deref(),
                supi: &b.$supi,
                gpsi: &b.$gpsi,
            }))
        };
    }
    each!(view.udm_infos(), group_id, supi_ranges, gpsi_ranges);
    each!(view.udr_infos(), group_id, supi_ranges, gpsi_ranges);
    each!(view.pcf_infos(), group_id, supi_ranges, gpsi_ranges);
    each!(view.bsf_infos(), group_id, supi_ranges, gpsi_ranges);
    each!(view.chf_infos(), group_id, supi_range_list, gpsi_range_list);
    each!(view.hss_infos(), group_id, imsi_ranges, msisdn_ranges);
    blocks.extend(view.ausf_infos().map(|b| Served {
        group: b.group_id.as_deref(),
        supi: &b.supi_ranges,
        gpsi: &[],
    }));
    blocks.extend(view.udsf_infos().map(|b| Served {
        group: b.group_id.as_deref(),
        supi: &b.supi_ranges,
        gpsi: &[],
    }));
    let tsctsf = view.tsctsf_infos();
    blocks.extend(tsctsf.map(|b| Served {
        group: None,
        supi: &b.supi_ranges,
        gpsi: &b.gpsi_ranges,
    }));
    blocks.extend(profile.nssaaf_info.iter().map(|b| Served {
        group: None,
        supi: &b.supi_ranges,
        gpsi: &[],
    }));
    let iwmsc = profile.iwmsc_info.iter();
    blocks.extend(iwmsc.map(|b| Served {
        group: None,
        supi: &b.supi_ranges,
        gpsi: &b.msisdn_ranges,
    }));
    blocks.extend(profile.mnpf_info.iter().map(|b| Served {
        group: None,
        supi: &[],
        gpsi: &b.msisdn_ranges,
    }));
    blocks
}

/// Calls `each` with every range of SUPIs of the profile.
pub fn supi_ranges<'a>(profile: &'a NfProfile, each: &mut dyn FnMut(&'a IdentityRange)) {
    served(&View::whole(profile))
        .iter()
        .flat_map(|block| block.supi)
        .for_each(each);
}

/// Calls `each` with every range of GPSIs of the profile.
pub fn gpsi_ranges<'a>(profile: &'a NfProfile, each: &mut dyn FnMut(&'a IdentityRange)) {
    served(&View::whole(profile))
        .iter()
        .flat_map(|block| block.gpsi)
        .for_each(each);
}

/// Whether these entries of the profile serve this SUPI; `group` is what a location function says of the subscriber:
/// `None` without a lookup, `Some(None)` when the lookup found no group.
pub(crate) fn fits_supi_in(view: &View<'_>, supi: &str, group: Option<Option<&str>>) -> bool {
    fits(view, supi, group, |block| block.supi)
}

/// Whether these entries of the profile serve this GPSI; `group` as in [`fits_supi_in`].
pub(crate) fn fits_gpsi_in(view: &View<'_>, gpsi: &str, group: Option<Option<&str>>) -> bool {
    fits(view, gpsi, group, |block| block.gpsi)
}

/// Whether the profile names a group and no ranges, so that only a subscriber location function can decide which
/// subscribers it serves.
#[must_use]
pub fn serves_a_group_only(profile: &NfProfile) -> bool {
    let blocks = served(&View::whole(profile));
    blocks
        .iter()
        .any(|block| block.group.is_some() && block.supi.is_empty() && block.gpsi.is_empty())
}

fn fits<'a>(
    view: &View<'a>,
    identity: &str,
    group: Option<Option<&str>>,
    ranges: impl Fn(&Served<'a>) -> &'a [IdentityRange],
) -> bool {
    let blocks = served(view);
    let digits = Digits::of_identity(identity);
    blocks.is_empty()
        || blocks.iter().any(|block| {
            let ranges = ranges(block);
            let in_range = ranges.iter().any(|range| range.contains_parsed(identity, digits));
            match (block.group, group) {
                (Some(mine), Some(Some(resolved))) => mine == resolved || in_range,
                // The location function knows no group: a profile of a group is not the subscriber's.
                (Some(_), Some(None)) => in_range,
                _ => ranges.is_empty() || in_range,
            }
        })
}

pub(super) fn test_of(param: Param<'_>) -> Result<Option<Test>, ParamFault> {
    match param.name {
        "group-id-list" => {
            let wanted = param.list()?;
            must(move |p| p.group_ids().any(|group| wanted.iter().any(|one| one == group)))
        }
        "routing-indicator" => {
            let value = digits(param, 1..=4)?;
            must(move |p| {
                let fits = |list: &[String]| open_or(list, |indicator| *indicator == value);
                let serves = |indicators: &[String], sucis: &[SuciInfo]| {
                    fits(indicators) && open_or(sucis, |suci| fits(&suci.routing_inds))
                };
                block_or(p.udm_infos(), |b| serves(&b.routing_indicators, &b.suci_infos))
                    && block_or(p.ausf_infos(), |b| serves(&b.routing_indicators, &b.suci_infos))
                    && open_or(p.aanf_infos(), |b| fits(&b.routing_indicators))
            })
        }
        "home-pub-key-id" => {
            let id: i64 = param.number("expected a number from 0 to 255")?;
            must(move |p| {
                let udm = p.udm_infos().flat_map(|b| &b.suci_infos);
                open_or(udm.chain(p.ausf_infos().flat_map(|b| &b.suci_infos)), |suci| {
                    open_or(&suci.home_network_public_key_ids, |known| *known == id)
                })
            })
        }
        "external-group-identity" => {
            let value = param.text()?;
            // TS 29.503 ExtGroupId
            let is_group = value
                .strip_prefix("extgroupid-")
                .and_then(|group| group.split_once('@'))
                .is_some_and(|(name, domain)| {
                    !name.is_empty() && !domain.is_empty() && !domain.contains('@')
                });
            if !is_group {
                return Err(param.fault("expected a group such as extgroupid-name@domain"));
            }
            must(move |p| {
                let fits = |ranges: &[IdentityRange]| open_or(ranges, |range| range.contains(&value));
                block_or(p.udm_infos(), |b| fits(&b.external_group_identifiers_ranges))
                    && block_or(p.udr_infos(), |b| fits(&b.external_group_identifiers_ranges))
                    && open_or(p.hss_infos(), |b| fits(&b.external_group_identifiers_ranges))
                    && open_or(p.tsctsf_infos(), |b| fits(&b.external_group_identifiers_ranges))
                    && open_or(&p.nef_info, |b| fits(&b.external_group_identifiers_ranges))
            })
        }
        "internal-group-identity" => {
            let value = param.text()?;
            group_id(&value).map_err(|expected| param.fault(expected))?;
            must(move |p| {
                let fits =
                    |ranges: &[model::nf_profile::GroupIdRange]| open_or(ranges, |r| r.contains(&value));
                block_or(p.udm_infos(), |b| fits(&b.internal_group_identifiers_ranges))
                    && open_or(p.tsctsf_infos(), |b| fits(&b.internal_group_identifiers_ranges))
                    && open_or(&p.nssaaf_info, |b| fits(&b.internal_group_identifiers_ranges))
            })
        }
        "imsi" => hss(param, |b| &b.imsi_ranges),
        "msisdn" => hss(param, |b| &b.msisdn_ranges),
        "ims-private-identity" => hss(param, |b| &b.ims_private_identity_ranges),
        "ims-public-identity" => hss(param, |b| &b.ims_public_identity_ranges),
        "shared-data-id" => {
            let value = param.text()?;
            // TS 29.503 SharedDataId: MCC and MNC, and a name.
            let is_id = value.split_once('-').is_some_and(|(plmn, name)| {
                matches!(plmn.len(), 5 | 6) && plmn.bytes().all(|b| b.is_ascii_digit()) && !name.is_empty()
            });
            if !is_id {
                return Err(param.fault("expected an identity such as 00101-name"));
            }
            must(move |p| {
                block_or(p.udr_infos(), |b| {
                    open_or(&b.shared_data_id_ranges, |r| {
                        r.pattern.as_ref().is_some_and(|x| x.matches(&value))
                    })
                })
            })
        }
        "data-set" => {
            let wanted = model::DataSetId::from(param.text()?);
            let whole = whole_of(&wanted);
            must(move |p| {
                block_or(p.udr_infos(), |b| {
                    open_or(&b.supported_data_sets, |set| {
                        *set == wanted || Some(set) == whole.as_ref()
                    })
                })
            })
        }
        _ => Ok(None),
    }
}

/// The data set that a subset belongs to (TS 29.510 §6.1.6.3.8): a UDR of the whole set has the subset.
fn whole_of(subset: &model::DataSetId) -> Option<model::DataSetId> {
    let text = subset.as_str();
    if text.starts_with("A_") {
        Some(model::DataSetId::Application)
    } else if text.starts_with("P_") {
        Some(model::DataSetId::Policy)
    } else {
        None
    }
}

fn hss(
    param: Param<'_>,
    ranges: impl Fn(&model::nf_profile::HssInfo) -> &[IdentityRange] + 'static,
) -> Result<Option<Test>, ParamFault> {
    let value = match param.name {
        // The OpenAPI file has a pattern for it.
        "imsi" => digits(param, 5..=15)?,
        _ => param.text()?,
    };
    must(move |p| {
        open_or(p.hss_infos(), |b| {
            open_or(ranges(b), |range| range.contains(&value))
        })
    })
}

fn digits(param: Param<'_>, len: std::ops::RangeInclusive<usize>) -> Result<String, ParamFault> {
    let fits = len.contains(&param.value.len()) && param.value.bytes().all(|b| b.is_ascii_digit());
    let expected = || param.fault(format!("expected {} to {} digits", len.start(), len.end()));
    fits.then(|| param.value.to_owned()).ok_or_else(expected)
}
