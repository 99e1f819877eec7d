//! Answers as bytes: assembled from pieces that were serialised when the profiles were written.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use model::{ExtSnssai, NfService, PlmnSnssai, Snssai};
use registry::{Entry, Visible, fingerprint};
use serde_json::Value;

use super::priorities::{Altered, Tier};
use super::select::{Extent, Policy};
use ::discovery::Query;
use sbi::json::text;

/// Feature `Service-Map` (TS 29.510 §6.2.9): services as a map in `nfServiceList`.
const SERVICE_MAP: usize = 6;
/// Features of Nnrf_NFDiscovery that this NRF supports (TS 29.510 §6.2.9): Complex-Query, Query-Params-Ext1,
/// Query-Param-Analytics, MAPDU, Query-Params-Ext2, Service-Map, Query-Params-Ext3, Query-Params-Ext4,
/// Query-Param-vSmf-Capability, Query-SBIProtoc17.
pub fn supported_features() -> model::SupportedFeatures {
    model::SupportedFeatures::of(FEATURES)
}

const FEATURES: &[usize] = &[1, 2, 3, 4, 5, SERVICE_MAP, 7, 8, 9, 11];
/// Approximate bytes of an answer beside its profiles.
const FRAME: usize = 64;

/// A `SearchResult` (TS 29.510 §6.2.6.2.2), ready to be sent any number of times.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The JSON text.
    pub body: Bytes,
    /// Its entity tag, with quotes.
    pub etag: http::HeaderValue,
    /// `max-age` of `Cache-Control`, the same as `validityPeriod`.
    pub freshness: http::HeaderValue,
    /// Number of its profiles.
    pub profiles: usize,
    /// Compressed for the first consumer that accepts gzip.
    pub(super) packed: OnceCell<Option<Packed>>,
}

/// An answer packed with gzip: another representation, with an entity tag of its own (RFC 9110 §8.8.3).
#[derive(Clone, Debug)]
pub struct Packed {
    /// The gzip stream.
    pub body: Bytes,
    /// Its entity tag, with quotes.
    pub etag: http::HeaderValue,
}

impl Answer {
    /// The answer packed with gzip, made once; `None` when that would not be smaller.
    pub fn packed(&self) -> Option<&Packed> {
        let pack = || {
            let body = sbi::coding::pack(&self.body.clone().into())?;
            let plain = self.etag.to_str().ok()?.trim_end_matches('"');
            let etag = http::HeaderValue::from_str(&format!("{plain}-gzip\"")).ok()?;
            Some(Packed { body, etag })
        };
        self.packed.get_or_init(pack).as_ref()
    }
}

/// Why the answer is empty, the most specific reason last (`NoProfileMatchReason`, TS 29.510 §6.2.6.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    NoMatch,
    RequesterPlmn,
    Undiscoverable,
    Suspended,
}

impl Reason {
    fn as_str(self) -> &'static str {
        match self {
            Self::NoMatch => "QUERY_PARAMS_COMBINATION_NO_MATCH",
            Self::RequesterPlmn => "REQUESTER_PLMN_NOT_ALLOWED",
            Self::Undiscoverable => "TARGET_NF_UNDISCOVERABLE",
            Self::Suspended => "TARGET_NF_SUSPENDED",
        }
    }
}

/// A profile of an answer and which of its services are shown.
pub(super) struct Chosen {
    pub(super) entry: Arc<Entry>,
    /// Bits in the order of the profile's services.
    pub(super) services: u128,
}

/// Drops profiles that are larger than an answer of `bytes` bytes: they must not hide the others.
pub(super) fn leave_out_oversized(chosen: &mut Vec<Chosen>, bytes: usize) {
    chosen.retain(|one| FRAME + one.size() < bytes);
}

/// Number of the first profiles that fit into an answer of `bytes` bytes.
pub(super) fn how_many_fit(chosen: &[Chosen], bytes: usize) -> usize {
    let mut size = FRAME;
    let fit = chosen.iter().take_while(|one| {
        size += one.size() + 1;
        size <= bytes
    });
    fit.count()
}

/// Result of a selection, before it is rendered.
pub(super) struct Result<'a> {
    pub(super) query: &'a Query,
    pub(super) validity: u32,
    pub(super) chosen: Vec<Chosen>,
    /// Profiles that fit, in the answer or not.
    pub(super) total: usize,
    pub(super) preferred: Vec<(&'static str, bool)>,
    /// Priorities that replace the registered ones in the answer.
    pub(super) altered: Option<Altered>,
    /// Why nothing was found, if nothing was.
    pub(super) reason: Reason,
    pub(super) policy: &'a Policy,
}

impl Result<'_> {
    /// The text, and what goes with it.
    pub(super) fn render(&self, extent: &Extent) -> Answer {
        let size: usize = self.chosen.iter().map(Chosen::size).sum();
        let mut out = BytesMut::with_capacity(size + 512);
        match extent {
            Extent::Page(_) => {
                out.put_slice(format!("{{\"validityPeriod\":{},\"nfInstances\":[", self.validity).as_bytes());
            }
            Extent::Stored | Extent::Complete => out.put_slice(b"{\"nfInstances\":["),
        }
        for (i, one) in self.chosen.iter().enumerate() {
            if i > 0 {
                out.put_u8(b',');
            }
            let abroad = self
                .query
                .requester
                .is_abroad(self.policy.plmns_of(&one.entry.profile));
            let altered = self.altered.as_ref().and_then(|altered| altered.tier(i));
            one.write(self.query, abroad, altered, &mut out);
        }
        out.put_u8(b']');
        if let Extent::Page(search) = extent {
            self.write_remarks(search.as_deref(), &mut out);
        }
        out.put_u8(b'}');
        let body = out.freeze();
        // Hexadecimal digits and quotes, and digits, are always header values.
        let header = |text: String| {
            http::HeaderValue::from_str(&text).unwrap_or(http::HeaderValue::from_static("\"0\""))
        };
        Answer {
            etag: header(format!("\"{:016x}\"", fingerprint(&[&body]))),
            freshness: header(format!("max-age={}", self.validity)),
            profiles: self.chosen.len(),
            body,
            packed: OnceCell::new(),
        }
    }

    fn write_remarks(&self, search: Option<&str>, out: &mut BytesMut) {
        if self.chosen.len() < self.total {
            out.put_slice(format!(",\"numNfInstComplete\":{}", self.total).as_bytes());
            if let Some(search) = search {
                out.put_slice(format!(",\"searchId\":{}", Value::from(search)).as_bytes());
            }
        }
        if !self.preferred.is_empty() {
            let members = self
                .preferred
                .iter()
                .map(|(name, met)| format!("\"{name}\":{met}"));
            let members = members.collect::<Vec<_>>().join(",");
            out.put_slice(format!(",\"preferredSearch\":{{{members}}}").as_bytes());
        }
        if self.altered.is_some() {
            out.put_slice(b",\"alteredPriorityInd\":true");
        }
        if self.total == 0 {
            let reason = self.reason.as_str();
            out.put_slice(format!(",\"noProfileMatchInfo\":{{\"reason\":\"{reason}\"}}").as_bytes());
        }
        // TS 29.510 table 6.2.6.2.2-1.
        let features = supported_features();
        out.put_slice(format!(",\"nrfSupportedFeatures\":\"{features}\"").as_bytes());
    }
}

impl Chosen {
    pub(super) fn shown(&self) -> impl Iterator<Item = (&Visible, &model::NfService)> {
        let texts = self.entry.visible_services().iter();
        let services = texts.zip(self.entry.profile.services()).enumerate();
        services
            .filter(|(at, _)| self.services >> at & 1 == 1)
            .map(|(_, service)| service)
    }

    /// Length of the JSON text, to a few bytes.
    fn size(&self) -> usize {
        let services: usize = self.shown().map(|(service, _)| service.text.len() + 1).sum();
        self.entry.moving().len() + self.entry.visible().text.len() + services + 24
    }

    /// Writes the `NFProfile` of the answer. `abroad`: for a requester of another network, which gets `interPlmnFqdn` as
    /// `fqdn` (TS 29.510 §6.2.6.2.3 note 3, §6.2.6.2.4 note 3). `altered`: other priorities.
    fn write(&self, query: &Query, abroad: bool, altered: Option<&Tier>, out: &mut BytesMut) {
        let profile = &self.entry.profile;
        out.put_u8(b'{');
        out.put_slice(self.entry.moving());
        let mut visible = Cow::Borrowed(self.entry.visible());
        if let Some(name) = profile.inter_plmn_fqdn.as_ref().filter(|_| abroad) {
            visible = Cow::Owned(visible.with_fqdn(name));
        }
        if let Some(priority) = altered.and_then(|tier| tier.of_profile(profile.priority)) {
            visible = Cow::Owned(visible.with_priority(priority));
        }
        if !visible.text.is_empty() {
            out.put_u8(b',');
            narrowed(
                &visible,
                &profile.snssais,
                &profile.per_plmn_snssai_list,
                query,
                out,
            );
        }
        if self.services != 0 {
            let map = query.requester_features.has(SERVICE_MAP);
            out.put_slice(if map {
                b",\"nfServiceList\":{"
            } else {
                b",\"nfServices\":["
            });
            for (i, (text, service)) in self.shown().enumerate() {
                if i > 0 {
                    out.put_u8(b',');
                }
                if map {
                    out.put_slice(Value::from(&*service.service_instance_id).to_string().as_bytes());
                    out.put_u8(b':');
                }
                let mut text = Cow::Borrowed(text);
                if let Some(name) = service.inter_plmn_fqdn.as_ref().filter(|_| abroad) {
                    text = Cow::Owned(text.with_fqdn(name));
                }
                if let Some(priority) = altered.and_then(|tier| tier.of_service(service.priority)) {
                    text = Cow::Owned(text.with_priority(priority));
                }
                if let Some(required) = token_required(service, query) {
                    text = Cow::Owned(text.with_oauth2(required));
                }
                narrowed(&text, &service.snssais, &service.per_plmn_snssai_list, query, out);
            }
            out.put_u8(if map { b'}' } else { b']' });
        }
        out.put_u8(b'}');
    }
}

/// Whether a requester of these networks needs a token, where the service says so for one of them and otherwise for all
/// (TS 29.510 §6.1.6.2.3, `perPlmnOauth2ReqList`).
fn token_required(service: &NfService, query: &Query) -> Option<bool> {
    let lists = &service.per_plmn_oauth2_req_list;
    let own = &query.requester.plmns;
    let named = |list: &[model::PlmnId]| own.iter().any(|plmn| list.contains(plmn));
    let required = if named(&lists.oauth2_required_plmn_id_list) {
        true
    } else if named(&lists.oauth2_not_required_plmn_id_list) {
        false
    } else {
        return None;
    };
    (service.oauth2_required != Some(required)).then_some(required)
}

/// Writes a text with the slices it names narrowed to those asked for: the answer has the intersection
/// (TS 29.510 table 6.2.3.2.3.1, `snssais` and `plmn-specific-snssai-list`).
fn narrowed(
    visible: &Visible,
    slices: &[ExtSnssai],
    per_plmn: &[PlmnSnssai],
    query: &Query,
    out: &mut BytesMut,
) {
    if query.slices.is_empty() && query.plmn_slices.is_empty() {
        out.put_slice(&visible.text);
        return;
    }
    // Text was made of a string, and is cut where JSON values begin and end.
    let text = std::str::from_utf8(&visible.text).unwrap_or_default();
    let mut cuts: Vec<(std::ops::Range<usize>, String)> = Vec::with_capacity(2);
    if let Some(span) = visible.snssais.clone().filter(|_| !query.slices.is_empty()) {
        let kept: Vec<&str> = text::items(text, span.clone())
            .zip(slices)
            .filter(|(_, family)| any_in(family, &query.slices))
            .map(|(item, _)| &text[item.value])
            .collect();
        // Slices per PLMN may be what made the profile fit; then the general ones stay as they are.
        if !kept.is_empty() {
            cuts.push((span, format!("[{}]", kept.join(","))));
        }
    }
    if let Some(span) = visible.per_plmn.clone() {
        let kept: Vec<String> = per_plmn
            .iter()
            .filter_map(|one| narrow_plmn(one, query))
            .collect();
        if !kept.is_empty() {
            cuts.push((span, format!("[{}]", kept.join(","))));
        }
    }
    cuts.sort_by_key(|(span, _)| span.start);
    let mut at = 0;
    for (span, paste) in cuts {
        out.put_slice(&visible.text[at..span.start]);
        out.put_slice(paste.as_bytes());
        at = span.end;
    }
    out.put_slice(&visible.text[at..]);
}

fn any_in(family: &ExtSnssai, slices: &[Snssai]) -> bool {
    slices.iter().any(|slice| family.contains(slice))
}

fn narrow_plmn(one: &PlmnSnssai, query: &Query) -> Option<String> {
    let asked = query
        .plmn_slices
        .iter()
        .find(|asked| asked.network() == one.network());
    if !query.plmn_slices.is_empty() && asked.is_none() {
        return None;
    }
    let mut kept = one.clone();
    kept.snssais.retain(|family| {
        (query.slices.is_empty() || any_in(family, &query.slices))
            && asked.is_none_or(|asked| asked.snssais.iter().any(|slice| slice.overlaps(family)))
    });
    // Serialising numbers and texts cannot fail.
    let text = serde_json::to_string(&kept).ok()?;
    (!kept.snssais.is_empty()).then_some(text)
}
