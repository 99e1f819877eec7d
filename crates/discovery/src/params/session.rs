//! What the session is about: data networks, addresses of the UE, SMF, UPF, PCF, BSF, CHF.

use std::net::Ipv4Addr;

use model::address::IpAddrChoice;
use model::nf_profile::{
    AtsssCapability, EndpointInfo, ProSeCapability, SliceDnnItem, SmfInfo, V2xCapability,
};
use model::{Ipv6Prefix, PlmnId, Snssai};
use serde_json::Value;

use super::{all_or, block_or, exactly, must, open_or, unless_contradicted};
use crate::fault::ParamFault;
use crate::test::{Param, Test};
use crate::view::View;

/// Every list of slices and data networks a profile may have.
fn offers<'a>(view: &View<'a>) -> impl Iterator<Item = &'a SliceDnnItem> + use<'a> {
    let profile = view.profile();
    let smf = view.smf_infos().flat_map(|b| &b.snssais);
    let upf = view.upf_infos().flat_map(|b| &b.snssais);
    let easdf = view.easdf_infos().flat_map(|b| &b.snssais);
    let mb_smf = view.mb_smf_infos().flat_map(|b| b.snssais.values());
    let mb_upf = view.mb_upf_infos().flat_map(|b| &b.snssais);
    let tsctsf = view.tsctsf_infos().flat_map(|b| b.snssai_info_list.values());
    let trusted = profile.trust_af_info.iter().flat_map(|b| &b.snssais);
    let untrusted = profile
        .nef_info
        .iter()
        .flat_map(|b| &b.un_trust_af_info_list)
        .flat_map(|b| &b.snssais);
    smf.chain(upf)
        .chain(easdf)
        .chain(mb_smf)
        .chain(mb_upf)
        .chain(tsctsf)
        .chain(trusted)
        .chain(untrusted)
}

/// Whether one of the slices is in an offer; a profile without offers restricts nothing.
pub(super) fn offers_slices(profile: &View<'_>, slices: &[Snssai]) -> bool {
    open_or(offers(profile), |item| {
        slices.iter().any(|slice| item.serves_slice(slice))
    })
}

/// What a session needs from one and the same offer: a data network, at an access point, in a slice.
#[derive(Debug, Default)]
pub struct Session {
    /// `dnn`.
    pub dnn: Option<String>,
    /// `dnai-list`.
    pub dnais: Vec<String>,
    /// `redundant-transport`.
    pub redundant: Option<bool>,
}

impl Session {
    /// The names of the parameters that are given.
    pub(crate) fn names(&self) -> String {
        let given = [
            ("dnn", self.dnn.is_some()),
            ("dnai-list", !self.dnais.is_empty()),
            ("redundant-transport", self.redundant.is_some()),
        ];
        let names: Vec<&str> = given
            .iter()
            .filter(|(_, given)| *given)
            .map(|(name, _)| *name)
            .collect();
        names.join(", ")
    }

    /// The test that these parameters stand for together, with the slices of `snssais`.
    pub fn into_test(self, slices: &[Snssai]) -> Option<Test> {
        if self.dnn.is_none() && self.dnais.is_empty() && self.redundant.is_none() {
            return None;
        }
        let slices = slices.to_vec();
        Some(Test::new(move |profile| {
            self.dnn.as_deref().is_none_or(|dnn| lists_dnn(profile, dnn))
                && self.is_offered(profile, &slices)
                && self.is_transported(profile, &slices)
                && (self.dnais.is_empty()
                    || open_or(&profile.nef_info, |b| any_or(&b.dnai_list, &self.dnais)))
        }))
    }

    /// Whether a UPF has redundant transport, or has not, as it is asked for, in one of the slices.
    fn is_transported(&self, profile: &View<'_>, slices: &[Snssai]) -> bool {
        let Some(wanted) = self.redundant else { return true };
        open_or(profile.upf_infos().flat_map(|b| &b.snssais), |item| {
            let in_slice = slices.is_empty() || slices.iter().any(|slice| item.serves_slice(slice));
            in_slice && item.redundant_transport == wanted
        })
    }

    fn is_offered(&self, profile: &View<'_>, slices: &[Snssai]) -> bool {
        open_or(offers(profile), |item| {
            let in_slice = slices.is_empty() || slices.iter().any(|slice| item.serves_slice(slice));
            in_slice
                && match &self.dnn {
                    Some(dnn) => item.dnn(dnn).any(|entry| any_or(&entry.dnai_list, &self.dnais)),
                    None => open_or(&item.dnns, |entry| any_or(&entry.dnai_list, &self.dnais)),
                }
        })
    }
}

/// Whether one of what is wanted is offered, the wildcard offering all; who names no offer offers everything.
fn any_or(offered: &[String], wanted: &[String]) -> bool {
    wanted.is_empty() || open_or(offered, |one| one == "*" || wanted.contains(one))
}

/// Whether the data network is in the lists of PCF, BSF and P-CSCF.
fn lists_dnn(profile: &View<'_>, dnn: &str) -> bool {
    let listed = |list: &[String]| open_or(list, |known| model::nf_profile::dnn_matches(known, dnn));
    block_or(profile.pcf_infos(), |b| listed(&b.dnn_list))
        && block_or(profile.bsf_infos(), |b| listed(&b.dnn_list))
        && open_or(profile.pcscf_infos(), |b| listed(&b.dnn_list))
}

pub(super) fn test_of(param: Param<'_>) -> Result<Option<Test>, ParamFault> {
    match param.name {
        // In a query these belong together, see `Session`; alone they are atoms of complex queries.
        "dnn" => {
            let dnn = Some(param.text()?);
            Ok(Session {
                dnn,
                ..Session::default()
            }
            .into_test(&[]))
        }
        "dnai-list" => {
            let dnais = param.list()?;
            Ok(Session {
                dnais,
                ..Session::default()
            }
            .into_test(&[]))
        }
        "ipv4-index" => index(param, |item| &item.ipv4_index_list),
        "ipv6-index" => index(param, |item| &item.ipv6_index_list),
        "pdu-session-types" => {
            let wanted = param.list()?;
            must(move |p| {
                block_or(p.upf_infos(), |b| all_or(&b.pdu_session_types, &wanted))
                    && open_or(offers(p).flat_map(|item| &item.dnns), |dnn| {
                        all_or(&dnn.pdu_session_types, &wanted)
                    })
            })
        }
        "redundant-transport" => {
            let redundant = Some(param.boolean()?);
            Ok(Session {
                redundant,
                ..Session::default()
            }
            .into_test(&[]))
        }
        "smf-serving-area" => {
            let area = param.text()?;
            must(move |p| {
                block_or(p.upf_infos(), |b| {
                    open_or(&b.smf_serving_area, |known| *known == area)
                })
            })
        }
        "mbsmf-serving-area" => {
            let area = param.text()?;
            must(move |p| {
                open_or(p.mb_upf_infos(), |b| {
                    open_or(&b.mb_smf_serving_area, |known| *known == area)
                })
            })
        }
        "pgw-ind" => exactly(param, |p| p.smf_infos().any(model::nf_profile::SmfInfo::is_pgw)),
        "pgw" => {
            let name = param.host()?;
            must(move |p| {
                p.smf_infos().any(|b| {
                    let names = b.pgw_fqdn.iter().chain(&b.pgw_fqdn_list);
                    names.into_iter().any(|known| known.eq_ignore_ascii_case(&name))
                })
            })
        }
        "pgw-ip" => {
            let address: IpAddrChoice = param.json()?;
            must(move |p| p.smf_infos().any(|b| b.pgw_ip_addr_list.contains(&address)))
        }
        // An SMF of an earlier release says nothing and may serve (table 6.2.3.2.3.1-1 note 15).
        "vsmf-support-ind" => unless_contradicted(param, |p| said(p, |b| b.vsmf_support_ind)),
        "ismf-support-ind" => unless_contradicted(param, |p| said(p, |b| b.ismf_support_ind)),
        "upf-iwk-eps-ind" => exactly(param, |p| p.upf_infos().any(|b| b.iwk_eps_ind)),
        "upf-ue-ip-addr-ind" => exactly(param, |p| p.upf_infos().any(|b| b.ue_ip_addr_ind)),
        "redundant-gtpu" => exactly(param, |p| p.upf_infos().any(|b| b.redundant_gtpu)),
        "ipups" => exactly(param, |p| p.upf_infos().any(|b| b.ipups)),
        "data-forwarding" => exactly(param, |p| p.upf_infos().any(|b| b.data_forwarding)),
        "required-pfcp-features" => {
            let wanted = pfcp_bits(param.value)
                .ok_or_else(|| param.fault("expected hexadecimal digits, two for each octet"))?;
            must(move |p| {
                let upf = p.upf_infos().filter_map(|b| b.supported_pfcp_features.as_deref());
                let mb = p
                    .mb_upf_infos()
                    .filter_map(|b| b.supported_pfcp_features.as_deref());
                upf.chain(mb).filter_map(pfcp_bits).any(|known| {
                    wanted
                        .iter()
                        .enumerate()
                        .all(|(i, bits)| known.get(i).unwrap_or(&0) & bits == *bits)
                })
            })
        }
        "atsss-capability" => {
            let wanted: AtsssCapability = param.json()?;
            must(move |p| {
                p.upf_infos()
                    .any(|b| b.atsss_capability.is_some_and(|known| known.covers(&wanted)))
            })
        }
        "w-agf-info" => endpoint(param, |b| b.w_agf_info.as_ref()),
        "tngf-info" => endpoint(param, |b| b.tngf_info.as_ref()),
        "twif-info" => endpoint(param, |b| b.twif_info.as_ref()),
        "upf-n6-ip" => {
            let address: IpAddrChoice = param.json()?;
            must(move |p| {
                let lists = p.easdf_infos().map(|b| &b.upf_n6_ip_address_list);
                open_or(lists, |list| open_or(list.iter(), |known| *known == address))
            })
        }
        "ue-ipv4-address" => {
            let address: Ipv4Addr = param.number("expected an IPv4 address")?;
            must(move |p| {
                block_or(p.bsf_infos(), |b| b.serves_ipv4(address))
                    && open_or(p.pcscf_infos(), |b| {
                        open_or(&b.served_ipv4_address_ranges, |range| range.contains(address))
                    })
            })
        }
        "ue-ipv6-prefix" => {
            let prefix: Ipv6Prefix = param.number("expected an IPv6 prefix such as 2001:db8::/64")?;
            must(move |p| {
                block_or(p.bsf_infos(), |b| b.serves_ipv6(&prefix))
                    && open_or(p.pcscf_infos(), |b| {
                        open_or(&b.served_ipv6_prefix_ranges, |range| range.contains(&prefix))
                    })
            })
        }
        "ip-domain" => {
            let domain = param.text()?;
            must(move |p| {
                block_or(p.bsf_infos(), |b| {
                    open_or(&b.ip_domain_list, |known| *known == domain)
                })
            })
        }
        "chf-supported-plmn" => {
            let plmn: PlmnId = param.json()?;
            must(move |p| block_or(p.chf_infos(), |b| b.serves_plmn(&plmn)))
        }
        "v2x-support-ind" => exactly(param, |p| p.pcf_infos().any(|b| b.v2x_support_ind)),
        "prose-support-ind" => exactly(param, |p| p.pcf_infos().any(|b| b.prose_support_ind)),
        "v2x-capability" => {
            let wanted: V2xCapability = param.json()?;
            must(move |p| {
                p.pcf_infos()
                    .any(|b| b.v2x_capability.is_some_and(|known| known.covers(&wanted)))
            })
        }
        "prose-capability" => {
            let wanted: ProSeCapability = param.json()?;
            must(move |p| {
                p.pcf_infos()
                    .any(|b| b.prose_capability.is_some_and(|known| known.covers(&wanted)))
            })
        }
        _ => Ok(None),
    }
}

/// What the blocks of an SMF say of a capability: that one has it, that none has it, or nothing.
fn said(profile: &View<'_>, of: impl Fn(&SmfInfo) -> Option<bool>) -> Option<bool> {
    let blocks = profile.smf_infos().filter_map(of);
    blocks.reduce(|one, other| one || other)
}

fn index(
    param: Param<'_>,
    list: impl Fn(&model::nf_profile::DnnItem) -> &Vec<Value> + 'static,
) -> Result<Option<Test>, ParamFault> {
    const EXPECTED: &str = "expected a whole number or a text";
    let wanted: Value = match serde_json::from_str(param.value) {
        Ok(Value::Number(number)) if !number.is_i64() => return Err(param.fault(EXPECTED)),
        Ok(value @ (Value::Number(_) | Value::String(_))) => value,
        Ok(_) => return Err(param.fault(EXPECTED)),
        Err(_) if param.value.starts_with(['{', '[', '"']) => return Err(param.fault(EXPECTED)),
        // A bare text is what most consumers mean by it.
        Err(_) => Value::String(param.text()?),
    };
    must(move |p| {
        let known = offers(p).flat_map(|item| &item.dnns).flat_map(&list);
        open_or(known, |known| *known == wanted)
    })
}

fn endpoint(
    param: Param<'_>,
    info: impl Fn(&model::nf_profile::UpfInfo) -> Option<&EndpointInfo> + 'static,
) -> Result<Option<Test>, ParamFault> {
    let wanted: EndpointInfo = param.json()?;
    must(move |p| p.upf_infos().filter_map(&info).any(|known| known.shares(&wanted)))
}

/// `supportedPfcpFeatures`: the octets of the UP Function Features IE (TS 29.244 §8.2.25) in hexadecimal
/// (TS 29.510 §6.1.6.2.13).
fn pfcp_bits(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok()))
        .collect();
    let digits = digits.filter(|digits| !digits.is_empty() && digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
