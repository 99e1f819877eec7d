//! What consumers send of a subscriber, and what the SMF must receive.

use std::net::Ipv4Addr;

use serde_json::{Map, Value, json};

/// A subscriber and the address of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ue {
    /// Digits of the SUPI.
    pub(crate) imsi: u64,
    pub(crate) address: Ipv4Addr,
    /// Distinguishes calls: it is in the paths of notifications.
    pub(crate) call: u64,
}

/// The data network of the session.
pub(crate) const DNN: &str = "ims";
/// 5QI of conversational voice and of conversational video (TS 23.501 table 5.7.4-1).
pub(crate) const VOICE: u64 = 1;
pub(crate) const VIDEO: u64 = 2;

impl Ue {
    pub(crate) fn supi(&self) -> String {
        format!("imsi-{:015}", self.imsi)
    }

    /// `PolicyAssociationRequest` of the AMF (TS 29.507 §5.6.2.3, TS 29.525 §5.6.2.3); `of`: `am` or `ue`.
    pub(crate) fn registration(&self, of: &str, consumers: &str) -> String {
        json!({
            "notificationUri": format!("{consumers}/amf/{of}/{}", self.call), "supi": self.supi(),
            "accessType": "3GPP_ACCESS", "ratType": "NR", "rfsp": 1,
            "servingPlmn": {"mcc": "001", "mnc": "01"},
            "guami": {"plmnId": {"mcc": "001", "mnc": "01"}, "amfId": "010041"},
            "suppFeat": "0",
        })
        .to_string()
    }

    /// `SmPolicyContextData` of the SMF (TS 29.512 §5.6.2.3).
    pub(crate) fn session(&self, consumers: &str) -> String {
        json!({
            "supi": self.supi(), "pduSessionId": 5, "pduSessionType": "IPV4", "dnn": DNN,
            "notificationUri": format!("{consumers}{}", self.smf()),
            "accessType": "3GPP_ACCESS", "ratType": "NR", "servingNetwork": {"mcc": "001", "mnc": "01"},
            "ipv4Address": self.address, "sliceInfo": {"sst": 1},
            "subsSessAmbr": {"uplink": "2 Mbps", "downlink": "2 Mbps"},
            "subsDefQos": {"5qi": 5, "arp": {
                "priorityLevel": 1, "preemptCap": "NOT_PREEMPT", "preemptVuln": "NOT_PREEMPTABLE"}},
            "suppFeat": "0",
        })
        .to_string()
    }

    /// Path at which the SMF takes notifications of this session.
    pub(crate) fn smf(&self) -> String {
        format!("/smf/{}", self.call)
    }

    /// `AppSessionContext` of an AF that adds video (TS 29.514 §5.6.2.2).
    pub(crate) fn application(&self, consumers: &str) -> String {
        let address = self.address;
        json!({"ascReqData": {
            "notifUri": format!("{consumers}/af/{}", self.call), "suppFeat": "0", "ueIpv4": address, "dnn": DNN,
            "afAppId": "video", "medComponents": {"1": {
                "medCompN": 1, "medType": "VIDEO", "fStatus": "ENABLED", "marBwUl": "384 Kbps", "marBwDl": "384 Kbps",
                "medSubComps": {"1": {"fNum": 1, "fDescs": [
                    format!("permit in 17 from {address} 51000 to 192.0.2.99 41000"),
                    format!("permit out 17 from 192.0.2.99 41000 to {address} 51000"),
                ]}},
            }},
        }})
        .to_string()
    }

    /// AVPs of an AAR beside those of every request, as text (TS 29.214 §5.6.1).
    pub(crate) fn media(&self) -> String {
        let address = self.address;
        format!(
            r#"AF-Application-Identifier = 0x494d53
Media-Component-Description = {{
  Media-Component-Number = 1
  Media-Sub-Component = {{
    Flow-Number = 1
    Flow-Description = "permit in 17 from {address} 50000 to 192.0.2.99 40000"
    Flow-Description = "permit out 17 from 192.0.2.99 40000 to {address} 50000"
  }}
  Media-Type = AUDIO
  Max-Requested-Bandwidth-UL = 64000
  Max-Requested-Bandwidth-DL = 64000
}}
Specific-Action = INDICATION_OF_RELEASE_OF_BEARER
Subscription-Id = {{ Subscription-Id-Type = END_USER_IMSI Subscription-Id-Data = "{:015}" }}
Framed-IP-Address = 0x{:08x}
Called-Station-Id = "{DNN}"
Rx-Request-Type = INITIAL_REQUEST"#,
            self.imsi,
            address.to_bits()
        )
    }
}

/// The identifiers of the rules that a notification installs; an error if the media has another 5QI or no guaranteed rate.
pub(crate) fn installed(notification: &[u8], five_qi: u64) -> Result<Vec<String>, String> {
    let decision = decision(notification)?;
    let rules = members(&decision, "pccRules")?;
    if let Some((id, _)) = rules.iter().find(|(_, rule)| rule.is_null()) {
        return Err(format!("the notification removes rule {id}"));
    }
    for (id, rule) in &rules {
        let qos = rule["refQosData"][0].as_str().unwrap_or_default();
        let qos = &decision["qosDecs"][qos];
        if qos["5qi"] != five_qi || qos["gbrDl"].is_null() {
            return Err(format!(
                "rule {id} has not 5QI {five_qi} with a guaranteed rate: {qos}"
            ));
        }
    }
    Ok(rules.into_iter().map(|(id, _)| id).collect())
}

/// Whether a notification removes these rules and no other.
pub(crate) fn removed(notification: &[u8], ids: &[String]) -> Result<(), String> {
    let decision = decision(notification)?;
    let rules = members(&decision, "pccRules")?;
    let is_removed = |id: &String| rules.get(id).is_some_and(Value::is_null);
    match rules.len() == ids.len() && ids.iter().all(is_removed) {
        true => Ok(()),
        false => Err(format!("the rules {ids:?} are to be removed: {rules:?}")),
    }
}

fn decision(notification: &[u8]) -> Result<Value, String> {
    let mut body: Value = serde_json::from_slice(notification).map_err(|error| error.to_string())?;
    Ok(body["smPolicyDecision"].take())
}

fn members(decision: &Value, name: &str) -> Result<Map<String, Value>, String> {
    let found = decision[name].as_object().filter(|found| !found.is_empty());
    found
        .cloned()
        .ok_or_else(|| format!("the notification has no {name}: {decision}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_is_judged_by_rules_and_qos() {
        let with = |five_qi: u64, gbr: Value| {
            json!({"smPolicyDecision": {
                "pccRules": {"af-1": {"pccRuleId": "af-1", "refQosData": ["q"]}},
                "qosDecs": {"q": {"qosId": "q", "5qi": five_qi, "gbrDl": gbr}},
            }})
            .to_string()
        };
        let right = with(1, json!("64 Kbps"));
        assert_eq!(installed(right.as_bytes(), VOICE), Ok(vec!["af-1".to_owned()]));
        for wrong in [with(2, json!("64 Kbps")), with(1, Value::Null), "{}".to_owned()] {
            assert!(installed(wrong.as_bytes(), VOICE).is_err(), "{wrong}");
        }
        let removal = json!({"smPolicyDecision": {"pccRules": {"af-1": null}}}).to_string();
        assert!(installed(removal.as_bytes(), VOICE).is_err());
        assert_eq!(removed(removal.as_bytes(), &["af-1".to_owned()]), Ok(()));
        assert!(removed(removal.as_bytes(), &["af-2".to_owned()]).is_err());
        assert!(removed(right.as_bytes(), &["af-1".to_owned()]).is_err());
    }
}
