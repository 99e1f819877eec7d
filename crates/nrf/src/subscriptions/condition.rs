//! Subscription conditions (TS 29.510 §6.1.6.2.35 and what it lists).

use model::nf_profile::{MlAnalyticsInfo, PfdData};
use model::shape::{TextRule, rules};
use model::{Guami, IdentityRange, NfInstanceId, NfProfile, NfType, ServiceName, Snssai, Tai, TaiRange};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Condition of a subscription (`subscrCond`).
#[derive(Clone, Debug)]
pub enum Condition {
    /// Every NF instance (no `subscrCond`).
    Everything,
    /// `NfInstanceIdCond`, `NfInstanceIdListCond`.
    Instances(Vec<NfInstanceId>),
    /// `NfTypeCond`.
    Type(NfType),
    /// `ServiceNameCond`, `ServiceNameListCond`.
    Services(Vec<ServiceName>),
    /// `AmfCond`: set and region.
    Amf(Option<String>, Option<String>),
    /// `GuamiListCond`.
    Guamis(Vec<Guami>),
    /// `NetworkSliceCond`: slices and network slice instances.
    Slices(Vec<Snssai>, Vec<String>),
    /// `NfGroupCond`, `NfGroupListCond`: type and group ids.
    Groups(NfType, Vec<String>),
    /// `NfSetCond`.
    Set(String),
    /// `NfServiceSetCond`, with the NF set it is in where named.
    ServiceSet(String, Option<String>),
    /// `UpfCond`: SMF serving areas and tracking areas.
    Upf(Vec<String>, Vec<Tai>),
    /// `ScpDomainCond`: domains and NF types.
    ScpDomains(Vec<String>, Vec<NfType>),
    /// `NwdafCond`.
    Nwdaf(Box<Analytics>),
    /// `NefCond`.
    Nef(Box<Exposure>),
    /// `DccfCond`.
    Dccf(Box<Analytics>),
}

/// Members of `NwdafCond` and `DccfCond`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)] // Member for member the tables of the standard.
pub struct Analytics {
    pub analytics_ids: Vec<String>,
    pub snssai_list: Vec<Snssai>,
    pub tai_list: Vec<Tai>,
    pub tai_range_list: Vec<TaiRange>,
    pub serving_nf_type_list: Vec<NfType>,
    pub serving_nf_set_id_list: Vec<String>,
    pub ml_analytics_list: Vec<MlAnalyticsInfo>,
}

/// Members of `NefCond`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)] // Member for member the table of the standard.
pub struct Exposure {
    pub af_events: Vec<String>,
    pub snssai_list: Vec<Snssai>,
    pub pfd_data: Option<PfdData>,
    pub gpsi_ranges: Vec<IdentityRange>,
    pub external_group_identifiers_ranges: Vec<IdentityRange>,
    pub served_fqdn_list: Vec<String>,
}

/// An invalid condition: JSON pointer, and what was expected.
pub type Fault = (String, String);

/// Index key of a condition, so that a change is tested only by subscriptions that may match it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FileKey {
    /// By instance.
    Instance(NfInstanceId),
    /// By type.
    Type(NfType),
    /// By set.
    Set(String),
    /// By service name.
    Service(ServiceName),
    /// All other conditions; they are tested for every change.
    Other,
}

impl Condition {
    /// Reads `subscrCond`.
    ///
    /// # Errors
    /// The JSON pointer of what is wrong and what was expected.
    pub fn parse(value: &Value) -> Result<Self, Fault> {
        let Some(members) = value.as_object() else {
            return Err(("/subscrCond".to_owned(), "expected an object".to_owned()));
        };
        let has = |name: &str| members.contains_key(name);
        let kind = members.get("conditionType").and_then(Value::as_str);
        match kind {
            Some("SERVICE_NAME_LIST_COND") => return list(members, "serviceNameList").map(Self::Services),
            Some("NF_GROUP_LIST_COND") => {
                return Ok(Self::Groups(
                    one(members, "nfType")?,
                    list(members, "nfGroupIdList")?,
                ));
            }
            Some("UPF_COND") => {
                return Ok(Self::Upf(
                    any_list(members, "smfServingArea")?,
                    any_list(members, "taiList")?,
                ));
            }
            Some("NWDAF_COND") => return whole(value).map(|cond| Self::Nwdaf(Box::new(cond))),
            Some("NEF_COND") => return whole(value).map(|cond| Self::Nef(Box::new(cond))),
            Some("DCCF_COND") => return whole(value).map(|cond| Self::Dccf(Box::new(cond))),
            Some(_) => {
                return Err((
                    "/subscrCond/conditionType".to_owned(),
                    "expected SERVICE_NAME_LIST_COND, NF_GROUP_LIST_COND, UPF_COND, NWDAF_COND, NEF_COND or \
                     DCCF_COND"
                        .to_owned(),
                ));
            }
            None => {}
        }
        if has("nfInstanceId") {
            Ok(Self::Instances(vec![one(members, "nfInstanceId")?]))
        } else if has("nfInstanceIdList") {
            list(members, "nfInstanceIdList").map(Self::Instances)
        } else if has("nfGroupId") {
            Ok(Self::Groups(
                one(members, "nfType")?,
                vec![one(members, "nfGroupId")?],
            ))
        } else if has("nfType") {
            one(members, "nfType").map(Self::Type)
        } else if has("serviceName") {
            Ok(Self::Services(vec![one(members, "serviceName")?]))
        } else if has("amfSetId") || has("amfRegionId") {
            Ok(Self::Amf(
                text(members, "amfSetId", rules::amf_set)?,
                text(members, "amfRegionId", rules::hex2)?,
            ))
        } else if has("guamiList") {
            list(members, "guamiList").map(Self::Guamis)
        } else if has("snssaiList") {
            Ok(Self::Slices(
                list(members, "snssaiList")?,
                any_list(members, "nsiList")?,
            ))
        } else if has("nfServiceSetId") {
            Ok(Self::ServiceSet(
                one(members, "nfServiceSetId")?,
                optional(members, "nfSetId")?,
            ))
        } else if has("nfSetId") {
            one(members, "nfSetId").map(Self::Set)
        } else if has("scpDomains") {
            Ok(Self::ScpDomains(
                list(members, "scpDomains")?,
                any_list(members, "nfTypeList")?,
            ))
        } else {
            Err((
                "/subscrCond".to_owned(),
                "expected one of the conditions of TS 29.510".to_owned(),
            ))
        }
    }

    /// Returns the index keys of the condition; several if it names several items.
    #[must_use]
    pub fn file_keys(&self) -> Vec<FileKey> {
        match self {
            Self::Instances(ids) => ids.iter().copied().map(FileKey::Instance).collect(),
            Self::Type(nf_type) | Self::Groups(nf_type, _) => vec![FileKey::Type(nf_type.clone())],
            Self::Services(names) => names.iter().cloned().map(FileKey::Service).collect(),
            Self::Set(set) => vec![FileKey::Set(set.clone())],
            Self::Amf(..) | Self::Guamis(_) => vec![FileKey::Type(NfType::Amf)],
            Self::Upf(..) => vec![FileKey::Type(NfType::Upf)],
            Self::Nwdaf(_) => vec![FileKey::Type(NfType::Nwdaf)],
            Self::Nef(_) => vec![FileKey::Type(NfType::Nef)],
            Self::Dccf(_) => vec![FileKey::Type(NfType::Dccf)],
            Self::Everything | Self::Slices(..) | Self::ServiceSet(..) | Self::ScpDomains(..) => {
                vec![FileKey::Other]
            }
        }
    }

    /// Returns the index keys of the subscriptions that may match this profile.
    pub fn keys_of(profile: &NfProfile) -> Vec<FileKey> {
        let mut keys = vec![
            FileKey::Other,
            FileKey::Instance(profile.nf_instance_id),
            FileKey::Type(profile.nf_type.clone()),
        ];
        keys.extend(profile.nf_set_id_list.iter().cloned().map(FileKey::Set));
        for service in profile.services() {
            let key = FileKey::Service(service.service_name.clone());
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// Whether a profile matches the condition.
    #[must_use]
    pub fn holds(&self, p: &NfProfile) -> bool {
        match self {
            Self::Everything => true,
            Self::Instances(ids) => ids.contains(&p.nf_instance_id),
            Self::Type(nf_type) => p.nf_type == *nf_type,
            Self::Services(names) => names.iter().any(|name| p.has_service(name)),
            Self::Amf(set, region) => {
                p.nf_type == NfType::Amf
                    && p.amf_infos().any(|info| {
                        set.as_ref()
                            .is_none_or(|set| info.amf_set_id.eq_ignore_ascii_case(set))
                            && region
                                .as_ref()
                                .is_none_or(|region| info.amf_region_id.eq_ignore_ascii_case(region))
                    })
            }
            Self::Guamis(guamis) => {
                p.nf_type == NfType::Amf
                    && p.amf_infos()
                        .any(|info| info.guami_list.iter().any(|guami| guamis.contains(guami)))
            }
            Self::Slices(slices, nsis) => {
                let known = p
                    .snssais
                    .iter()
                    .chain(p.per_plmn_snssai_list.iter().flat_map(|one| &one.snssais));
                known
                    .into_iter()
                    .any(|known| slices.iter().any(|slice| known.contains(slice)))
                    && (nsis.is_empty() || p.nsi_list.iter().any(|nsi| nsis.contains(nsi)))
            }
            Self::Groups(nf_type, groups) => {
                p.nf_type == *nf_type && p.group_ids().any(|group| groups.iter().any(|one| one == group))
            }
            Self::Set(set) => p.nf_set_id_list.contains(set),
            Self::ServiceSet(service_set, nf_set) => {
                p.services()
                    .any(|service| service.nf_service_set_id_list.contains(service_set))
                    && nf_set.as_ref().is_none_or(|set| p.nf_set_id_list.contains(set))
            }
            Self::Upf(areas, tais) => {
                p.nf_type == NfType::Upf
                    && p.upf_infos().any(|info| {
                        (areas.is_empty() || info.smf_serving_area.iter().any(|area| areas.contains(area)))
                            && serves_any(&info.tai_list, &info.tai_range_list, tais)
                    })
            }
            Self::ScpDomains(domains, types) => {
                let in_domain = p.scp_domains.iter().any(|domain| domains.contains(domain))
                    || p.scp_info.as_ref().is_some_and(|info| {
                        info.scp_domain_info_list.keys().any(|key| domains.contains(key))
                    });
                in_domain && (types.is_empty() || types.contains(&p.nf_type))
            }
            Self::Nwdaf(wanted) => {
                p.nf_type == NfType::Nwdaf
                    && p.nwdaf_infos().any(|info| {
                        (common(&info.event_ids, &wanted.analytics_ids)
                            || is_offered(&info.nwdaf_events, &wanted.analytics_ids))
                            && wanted.serves_slices(p)
                            && wanted.serves_areas(&info.tai_list, &info.tai_range_list)
                            && common(&info.serving_nf_type_list, &wanted.serving_nf_type_list)
                            && common(&info.serving_nf_set_id_list, &wanted.serving_nf_set_id_list)
                            && (wanted.ml_analytics_list.is_empty()
                                || info.ml_analytics_list.iter().any(|known| {
                                    wanted.ml_analytics_list.iter().any(|one| known.covers(one))
                                }))
                    })
            }
            Self::Dccf(wanted) => {
                p.nf_type == NfType::Dccf
                    && p.dccf_info.as_ref().is_none_or(|info| {
                        wanted.serves_areas(&info.tai_list, &info.tai_range_list)
                            && common(&info.serving_nf_type_list, &wanted.serving_nf_type_list)
                            && common(&info.serving_nf_set_id_list, &wanted.serving_nf_set_id_list)
                    })
            }
            Self::Nef(wanted) => p.nf_type == NfType::Nef && wanted.holds(p),
        }
    }
}

impl Analytics {
    fn serves_slices(&self, p: &NfProfile) -> bool {
        self.snssai_list.is_empty()
            || p.snssais.is_empty()
            || p.snssais
                .iter()
                .any(|known| self.snssai_list.iter().any(|slice| known.contains(slice)))
    }

    fn serves_areas(&self, tais: &[Tai], ranges: &[TaiRange]) -> bool {
        let ranges_fit = self.tai_range_list.is_empty()
            || (tais.is_empty() && ranges.is_empty())
            || ranges
                .iter()
                .any(|range| self.tai_range_list.iter().any(|wanted| wanted.overlaps(range)))
            || tais
                .iter()
                .any(|tai| self.tai_range_list.iter().any(|range| range.contains(tai)));
        ranges_fit && serves_any(tais, ranges, &self.tai_list)
    }
}

impl Exposure {
    fn holds(&self, p: &NfProfile) -> bool {
        let slices_fit = self.snssai_list.is_empty()
            || p.snssais.is_empty()
            || p.snssais
                .iter()
                .any(|known| self.snssai_list.iter().any(|slice| known.contains(slice)));
        let Some(info) = &p.nef_info else {
            return slices_fit;
        };
        let events = info.af_ee_data.as_ref().map_or(&[][..], |data| &data.af_events);
        let pfd_fits = self.pfd_data.as_ref().is_none_or(|wanted| {
            info.pfd_data.as_ref().is_none_or(|known| {
                common(&known.app_ids, &wanted.app_ids) && common(&known.af_ids, &wanted.af_ids)
            })
        });
        slices_fit
            && pfd_fits
            && common(events, &self.af_events)
            && overlap(&info.gpsi_ranges, &self.gpsi_ranges)
            && overlap(
                &info.external_group_identifiers_ranges,
                &self.external_group_identifiers_ranges,
            )
            && common(&info.served_fqdn_list, &self.served_fqdn_list)
    }
}

/// Whether the lists have an item in common; an empty one restricts nothing.
fn common<T: PartialEq>(known: &[T], wanted: &[T]) -> bool {
    known.is_empty() || wanted.is_empty() || known.iter().any(|one| wanted.contains(one))
}

/// Whether ranges have identities in common; an empty list restricts nothing.
fn overlap(known: &[IdentityRange], wanted: &[IdentityRange]) -> bool {
    let overlaps = |one: &IdentityRange| wanted.iter().any(|other| one.overlaps(other));
    known.is_empty() || wanted.is_empty() || known.iter().any(overlaps)
}

/// Whether an item that is wanted is among those that are offered.
fn is_offered(offered: &[String], wanted: &[String]) -> bool {
    offered.iter().any(|one| wanted.contains(one))
}

fn serves_any(list: &[Tai], ranges: &[TaiRange], wanted: &[Tai]) -> bool {
    let open = list.is_empty() && ranges.is_empty();
    let serves = |tai: &Tai| open || list.contains(tai) || ranges.iter().any(|range| range.contains(tai));
    wanted.is_empty() || wanted.iter().any(serves)
}

fn whole<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, Fault> {
    T::deserialize(value).map_err(|error| ("/subscrCond".to_owned(), error.to_string()))
}

fn one<T: serde::de::DeserializeOwned>(members: &Map<String, Value>, name: &str) -> Result<T, Fault> {
    let value = members.get(name).unwrap_or(&Value::Null);
    T::deserialize(value).map_err(|error| (format!("/subscrCond/{name}"), error.to_string()))
}

fn optional<T: serde::de::DeserializeOwned>(
    members: &Map<String, Value>,
    name: &str,
) -> Result<Option<T>, Fault> {
    members.contains_key(name).then(|| one(members, name)).transpose()
}

/// An optional text of a form.
fn text(members: &Map<String, Value>, name: &str, rule: TextRule) -> Result<Option<String>, Fault> {
    let text: Option<String> = optional(members, name)?;
    match text.as_deref().map_or(Ok(()), rule) {
        Ok(()) => Ok(text),
        Err(expected) => Err((format!("/subscrCond/{name}"), expected.into_owned())),
    }
}

fn list<T: serde::de::DeserializeOwned>(members: &Map<String, Value>, name: &str) -> Result<Vec<T>, Fault> {
    let items: Vec<T> = one(members, name)?;
    match items.is_empty() {
        true => Err((
            format!("/subscrCond/{name}"),
            "expected at least one item".to_owned(),
        )),
        false => Ok(items),
    }
}

fn any_list<T: serde::de::DeserializeOwned>(
    members: &Map<String, Value>,
    name: &str,
) -> Result<Vec<T>, Fault> {
    Ok(optional(members, name)?.unwrap_or_default())
}
