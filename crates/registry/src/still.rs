//! The text of a profile, split once.

use std::ops::Range;

use bytes::Bytes;
use model::{NfProfile, NfService};
use sbi_proto::json::text;

use crate::fingerprint::fingerprint;
use crate::visible::{Visible, push_joined};

/// Members that say who may discover and use an NF: the NRF's business alone (TS 29.510 §5.2.2.6, §6.2.6.2.3).
pub(crate) const ALLOWED: &[&str] = &[
    "allowedPlmns",
    "allowedSnpns",
    "allowedNfTypes",
    "allowedNfDomains",
    "allowedNssais",
];
/// Members that `NFProfile` and `NFService` of Nnrf_NFManagement have, and those of discovery lack (TS 29.510
/// §6.2.6.2.3, §6.2.6.2.4).
pub(crate) const RESERVED: &[&str] = &["nrfInfo", "perPlmnOauth2ReqList"];
/// Members that only requests have (`writeOnly` of OpenAPI).
pub(crate) const WRITE_ONLY: &[&str] = &["nfProfileChangesSupportInd"];
pub(crate) const SERVICES: &[&str] = &["nfServices", "nfServiceList"];
/// Members the entry writes itself.
pub(crate) const OWN: &[&str] = &[
    "nfInstanceId",
    "nfType",
    "nfStatus",
    "load",
    "loadTimeStamp",
    "heartBeatTimer",
];

/// The text of a profile that heart-beats do not change.
#[derive(Debug)]
pub(crate) struct Still {
    /// `"nfInstanceId":"…","nfType":"…"`.
    pub(crate) head: String,
    /// All other members, as their owner wrote them, joined by commas.
    pub(crate) rest: Bytes,
    /// Of these, what a discoverer may see, without services.
    pub(crate) visible: Visible,
    /// The services a discoverer may see, in the order of [`NfProfile::services`].
    pub(crate) services: Vec<Visible>,
    /// Whether notifications show more than discovery does.
    pub(crate) reserved: bool,
    pub(crate) hash: u64,
}

impl Still {
    /// Of a text in which each member comes once.
    pub(crate) fn new(body: &str, profile: &NfProfile) -> Self {
        let whole = text::root(body);
        let mut rest = String::with_capacity(body.len());
        let (mut id, mut nf_type, mut reserved) = ("", "", false);
        for item in text::items(body, whole.clone()) {
            let key = text::unescaped(&body[item.key.clone()]);
            let key = key.as_ref();
            match key {
                "nfInstanceId" => id = &body[item.value.clone()],
                "nfType" => nf_type = &body[item.value.clone()],
                _ => {}
            }
            reserved |= RESERVED.contains(&key);
            // An empty map of services means none, and is not valid in an answer.
            let empty = key == "nfServiceList" && text::items(body, item.value.clone()).next().is_none();
            if !OWN.contains(&key) && !WRITE_ONLY.contains(&key) && !empty {
                push_joined(&mut rest, &body[item.whole]);
            }
        }
        let hidden = |key: &str| ALLOWED.contains(&key) || RESERVED.contains(&key);
        let others = |key: &str| OWN.contains(&key) || SERVICES.contains(&key) || WRITE_ONLY.contains(&key);
        let visible = Visible::of(body, whole.clone(), |key| !hidden(key) && !others(key));
        let head = format!("\"nfInstanceId\":{id},\"nfType\":{nf_type}");
        let services = Self::services(body, whole, profile, |key| {
            reserved |= RESERVED.contains(&key);
            !hidden(key)
        });
        let hash = fingerprint(&[rest.as_bytes()]);
        Self {
            head,
            rest: rest.into(),
            visible,
            services,
            reserved,
            hash,
        }
    }

    /// The texts of the services, in the order of [`NfProfile::services`].
    pub(crate) fn services(
        body: &str,
        whole: Range<usize>,
        profile: &NfProfile,
        mut shown: impl FnMut(&str) -> bool,
    ) -> Vec<Visible> {
        let listed = text::member(body, whole.clone(), "nfServices").map(|item| item.value);
        let mapped = text::member(body, whole, "nfServiceList").map(|item| item.value);
        let spans = |container: &Option<Range<usize>>| -> Vec<Range<usize>> {
            container
                .iter()
                .flat_map(|span| text::items(body, span.clone()))
                .map(|item| item.value)
                .collect()
        };
        let (listed, mapped_spans) = (spans(&listed), spans(&mapped));
        let from_map = |service: &NfService| {
            mapped_spans.iter().find(|span| {
                text::member(body, (*span).clone(), "serviceInstanceId").is_some_and(|id| {
                    serde_json::from_str::<String>(&body[id.value])
                        .is_ok_and(|id| id == service.service_instance_id)
                })
            })
        };
        profile
            .services()
            .enumerate()
            .filter_map(|(i, service)| listed.get(i).or_else(|| from_map(service)))
            .map(|span| Visible::service(&body[span.clone()], &mut shown))
            .collect()
    }
}
