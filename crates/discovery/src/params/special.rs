//! Parameters of analytics, exposure, multicast, proxies and storage.

use std::net::Ipv4Addr;

use model::nf_profile::{AfEventExposureData, MbsSessionId, MlAnalyticsInfo, NsacfCapability, PfdData};
use model::{Ipv6Prefix, NfType, PlmnId, PlmnIdNid};

use super::{all_or, block_or, capability, exactly, must, open_or};
use crate::fault::ParamFault;
use crate::test::{Param, Test};
use crate::view::View;

pub(super) fn test_of(param: Param<'_>) -> Result<Option<Test>, ParamFault> {
    match param.name {
        "event-id-list" => {
            let wanted = param.list()?;
            must(move |p| block_or(p.nwdaf_infos(), |b| all_or(&b.event_ids, &wanted)))
        }
        "nwdaf-event-list" => {
            let wanted = param.list()?;
            must(move |p| block_or(p.nwdaf_infos(), |b| all_or(&b.nwdaf_events, &wanted)))
        }
        "analytics-aggregation-ind" => exactly(param, |p| {
            p.nwdaf_infos().any(|b| b.nwdaf_capability.analytics_aggregation)
        }),
        "analytics-metadata-prov-ind" => exactly(param, |p| {
            p.nwdaf_infos()
                .any(|b| b.nwdaf_capability.analytics_metadata_provisioning)
        }),
        "ml-analytics-info-list" => {
            let wanted: Vec<MlAnalyticsInfo> = param.json_list()?;
            must(move |p| {
                p.nwdaf_infos()
                    .flat_map(|b| &b.ml_analytics_list)
                    .any(|known| wanted.iter().any(|one| known.covers(one)))
            })
        }
        "serving-nf-set-id" => {
            let set = param.text()?;
            must(move |p| {
                let fits = |list: &[String]| open_or(list, |known| *known == set);
                block_or(p.nwdaf_infos(), |b| fits(&b.serving_nf_set_id_list))
                    && open_or(&p.mfaf_info, |b| fits(&b.serving_nf_set_id_list))
                    && open_or(&p.dccf_info, |b| fits(&b.serving_nf_set_id_list))
            })
        }
        "serving-nf-type" => {
            let nf_type = NfType::from(param.text()?);
            must(move |p| {
                let fits = |list: &[NfType]| open_or(list, |known| *known == nf_type);
                block_or(p.nwdaf_infos(), |b| fits(&b.serving_nf_type_list))
                    && open_or(&p.mfaf_info, |b| fits(&b.serving_nf_type_list))
                    && open_or(&p.dccf_info, |b| fits(&b.serving_nf_type_list))
            })
        }
        "nef-id" => {
            let id = param.text()?;
            must(move |p| {
                p.nef_info
                    .as_ref()
                    .is_some_and(|b| b.nef_id.as_deref() == Some(&*id))
            })
        }
        "pfd-data" => {
            let wanted: PfdData = param.json()?;
            must(move |p| {
                open_or(&p.nef_info, |b| {
                    open_or(&b.pfd_data, |known| {
                        shares(&known.app_ids, &wanted.app_ids) && shares(&known.af_ids, &wanted.af_ids)
                    })
                })
            })
        }
        "af-ee-data" => {
            let wanted: AfEventExposureData = param.json()?;
            if wanted.af_events.is_empty() {
                return Err(param.fault("expected `afEvents` with at least one event"));
            }
            must(move |p| {
                let nef = p.nef_info.as_ref().and_then(|b| b.af_ee_data.as_ref());
                let nef_fits = open_or(nef, |known| {
                    shares(&known.af_events, &wanted.af_events)
                        && shares(&known.af_ids, &wanted.af_ids)
                        && shares(&known.app_ids, &wanted.app_ids)
                });
                nef_fits
                    && open_or(&p.trust_af_info, |known| {
                        shares(&known.af_events, &wanted.af_events) && shares(&known.app_ids, &wanted.app_ids)
                    })
            })
        }
        "uas-nf-functionality-ind" => exactly(param, |p| {
            p.nef_info.as_ref().is_some_and(|b| b.uas_nf_functionality_ind)
        }),
        "nsacf-capability" => {
            let wanted: NsacfCapability = param.json()?;
            must(move |p| p.nsacf_infos().any(|b| b.nsacf_capability.covers(&wanted)))
        }
        "mbs-session-id-list" => {
            let wanted: Vec<MbsSessionId> = param.json_list()?;
            must(move |p| {
                p.mb_smf_infos().any(|b| {
                    wanted.iter().any(|id| {
                        let listed = b
                            .mbs_session_list
                            .values()
                            .any(|known| known.mbs_session_id == *id);
                        let in_range = id.tmgi.as_ref().is_some_and(|tmgi| {
                            b.tmgi_range_list
                                .values()
                                .any(|range| range.contains(tmgi, id.nid))
                        });
                        listed || in_range
                    })
                })
            })
        }
        "area-session-id" => {
            let id: u16 = param.number("expected a number from 0 to 65535")?;
            must(move |p| {
                let sessions = p.mb_smf_infos().flat_map(|b| b.mbs_session_list.values());
                sessions
                    .into_iter()
                    .any(|session| session.mbs_area_sessions.contains_key(&id.to_string()))
            })
        }
        "notification-type" => {
            let kind = param.text()?;
            must(move |p| notifies(p, |one| one.notification_type == kind))
        }
        "n1-msg-class" => {
            let class = param.text()?;
            must(move |p| notifies(p, |one| one.n1_message_class.as_deref() == Some(&*class)))
        }
        "n2-info-class" => {
            let class = param.text()?;
            must(move |p| notifies(p, |one| one.n2_information_class.as_deref() == Some(&*class)))
        }
        "address-domain" => {
            let domain = param.host()?;
            must(move |p| {
                open_or(&p.scp_info, |b| {
                    open_or(&b.address_domains, |known| known.matches(&domain))
                })
            })
        }
        "ipv4-addr" => {
            let address: Ipv4Addr = param.number("expected an IPv4 address")?;
            must(move |p| open_or(&p.scp_info, |b| b.reaches_ipv4(address)))
        }
        "ipv6-prefix" => {
            let prefix: Ipv6Prefix = param.number("expected an IPv6 prefix such as 2001:db8::/64")?;
            must(move |p| open_or(&p.scp_info, |b| b.reaches_ipv6(&prefix)))
        }
        "served-nf-set-id" => {
            let set = param.text()?;
            must(move |p| {
                open_or(&p.scp_info, |b| {
                    open_or(&b.served_nf_set_id_list, |known| *known == set)
                })
            })
        }
        "remote-plmn-id" => {
            let plmn: PlmnId = param.json()?;
            must(move |p| {
                p.scp_info
                    .as_ref()
                    .is_some_and(|b| b.remote_plmn_list.contains(&plmn))
                    || sepp(p, &plmn)
            })
        }
        "remote-snpn-id" => {
            let snpn: PlmnIdNid = param.json()?;
            must(move |p| {
                p.scp_info
                    .as_ref()
                    .is_some_and(|b| b.remote_snpn_list.contains(&snpn))
                    || p.sepp_info
                        .as_ref()
                        .is_some_and(|b| b.remote_snpn_list.contains(&snpn))
            })
        }
        "realm-id" => {
            let realm = param.text()?;
            must(move |p| {
                block_or(p.udsf_infos(), |b| {
                    open_or(b.storage_id_ranges.keys(), |known| *known == realm)
                })
            })
        }
        "storage-id" => {
            let id = param.text()?;
            must(move |p| {
                block_or(p.udsf_infos(), |b| {
                    open_or(b.storage_id_ranges.values().flatten(), |range| {
                        range.contains(&id)
                    })
                })
            })
        }
        // The consumer's own network resolves this by DNS; the NRF does not.
        "target-nw-resolution" => capability(param, |_| true),
        _ => Ok(None),
    }
}

fn shares(known: &[String], wanted: &[String]) -> bool {
    wanted.is_empty() || open_or(known, |one| wanted.contains(one))
}

fn notifies(
    profile: &View<'_>,
    fits: impl Fn(&model::nf_profile::DefaultNotificationSubscription) -> bool,
) -> bool {
    let own = &profile.default_notification_subscriptions;
    let services = profile
        .services()
        .flat_map(|service| &service.default_notification_subscriptions);
    own.iter().chain(services).any(fits)
}

/// A SEPP that names no networks reaches all (TS 29.510 §6.1.6.2.72), an SCP that names none reaches none.
fn sepp(profile: &View<'_>, plmn: &PlmnId) -> bool {
    profile
        .sepp_info
        .as_ref()
        .is_some_and(|b| open_or(&b.remote_plmn_list, |known| known == plmn))
}
