//! What an update changes of the context of a PDU session (TS 29.512 §4.2.4, §5.6.2.19).

use serde_json::{Map, Value};

use super::{Association, triggers};

/// Members of `SmPolicyUpdateContextData` that report something; the context does not keep them.
const REPORTS: &[&str] = &[
    "repPolicyCtrlReqTriggers",
    "accNetChIds",
    "relAccessInfo",
    "relIpv4Address",
    "relIpv6AddressPrefix",
    "addIpv6AddrPrefixes",
    "addRelIpv6AddrPrefixes",
    "relUeMac",
    "ueMac",
    "vplmnQosNotApp",
    "accuUsageReports",
    "appDetectionInfos",
    "ruleReports",
    "sessRuleReports",
    "qncReports",
    "qosMonReports",
    "repPraInfos",
    "ueInitResReq",
    "creditManageStatus",
    "tsnBridgeInfo",
    "tsnBridgeManCont",
    "tsnPortManContDstt",
    "tsnPortManContNwtts",
    "mulAddrInfos",
    "policyDecFailureReports",
    "invalidPolicyDecs",
    "trafficDescriptors",
    "pccRuleId",
    "typesOfNotif",
    "anGwStatus",
];

/// Addresses of one kind that an association has at most.
const MOST_ADDRESSES: usize = 32;

/// An update does not fit what is known of the session (`ERROR_TRIGGER_EVENT`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoherent {
    /// The member of the update.
    pub member: &'static str,
    /// What is wrong.
    pub reason: String,
}

/// Puts an update into the context of a session.
///
/// # Errors
/// When the update contradicts the context.
pub fn update(association: &mut Association, update: &Map<String, Value>) -> Result<(), Incoherent> {
    coherent(association, update)?;
    let text = |name: &str| update.get(name).and_then(Value::as_str);
    let held = &association.addresses;
    for (list, added, released) in [
        (&held.ipv6, "addIpv6AddrPrefixes", "addRelIpv6AddrPrefixes"),
        (&held.mac, "ueMac", "relUeMac"),
    ] {
        let has =
            |name: &str| text(name).is_some_and(|one| list.iter().any(|held| held.eq_ignore_ascii_case(one)));
        let left = list.len() - usize::from(has(released));
        if text(added).is_some() && !has(added) && left >= MOST_ADDRESSES {
            return Err(Incoherent {
                member: added,
                reason: format!("a session has at most {MOST_ADDRESSES} of them"),
            });
        }
    }
    if let Some(context) = association.context.as_object_mut() {
        for (released, member) in [
            ("relIpv4Address", "ipv4Address"),
            ("relIpv6AddressPrefix", "ipv6AddressPrefix"),
        ] {
            if text(released).is_some() {
                context.shift_remove(member);
            }
        }
    }
    merge(association, update, REPORTS);
    let addresses = &mut association.addresses;
    change(
        &mut addresses.ipv6,
        text("addIpv6AddrPrefixes"),
        text("addRelIpv6AddrPrefixes"),
    );
    change(&mut addresses.mac, text("ueMac"), text("relUeMac"));
    Ok(())
}

/// Puts the values of an update into a context, but for `reports`; a null removes a member.
pub fn merge(association: &mut Association, update: &Map<String, Value>, reports: &[&str]) {
    let Some(context) = association.context.as_object_mut() else {
        return;
    };
    for (name, value) in update {
        match value {
            _ if reports.contains(&name.as_str()) => {}
            Value::Null => drop(context.shift_remove(name)),
            value => drop(context.insert(name.clone(), value.clone())),
        }
    }
}

fn change(list: &mut Vec<String>, added: Option<&str>, released: Option<&str>) {
    list.retain(|held| released.is_none_or(|released| !held.eq_ignore_ascii_case(released)));
    if let Some(added) = added
        && !list.iter().any(|held| held.eq_ignore_ascii_case(added))
    {
        list.push(added.to_owned());
    }
}

/// What policies read as `$request` of an update: the context with the reports of the update.
#[must_use]
pub fn request(association: &Association, update: &Map<String, Value>) -> Value {
    with_reports(association, update, REPORTS)
}

/// The context with these members of an update.
#[must_use]
pub fn with_reports(association: &Association, update: &Map<String, Value>, reports: &[&str]) -> Value {
    let mut request = association.context.clone();
    if let Some(members) = request.as_object_mut() {
        let reports = update.iter().filter(|(name, _)| reports.contains(&name.as_str()));
        members.extend(reports.map(|(name, value)| (name.clone(), value.clone())));
    }
    request
}

/// Whether the decision that is made of an update, in the place of the policy of before, answers the request of a UE for resources
/// that the update has (TS 29.512 §4.2.4.17, TS 29.212 §4.5.12): one that changes nothing leaves the UE waiting for what will not come.
#[must_use]
pub fn answers_request(
    before: &Map<String, Value>,
    decided: &Map<String, Value>,
    update: &Map<String, Value>,
) -> bool {
    let mut sections = ["pccRules", "qosDecs", "traffContDecs"].into_iter();
    !update.contains_key("ueInitResReq")
        || sections.any(|section| before.get(section) != decided.get(section))
}

/// Refuses a trigger whose data an update of an SMF lacks, or has as they were before (TS 29.512 §5.7.3).
///
/// # Errors
/// Which one.
pub fn triggered(association: &Association, update: &Map<String, Value>) -> Result<(), Incoherent> {
    let triggers = update.get("repPolicyCtrlReqTriggers").and_then(Value::as_array);
    let has = |wanted: &str| triggers.into_iter().flatten().any(|trigger| trigger == wanted);
    // Of a MA PDU session another access may be meant.
    let of_access = update.contains_key("addAccessInfo") || update.contains_key("relAccessInfo");
    // What has a single value in context and update (table 5.6.3.6-1).
    for (trigger, member) in [("RAT_TY_CH", "ratType"), ("PLMN_CH", "servingNetwork")] {
        if !has(trigger) {
            continue;
        }
        let now = update.get(member);
        let reason = match now {
            None if of_access => continue,
            None => format!("{trigger} without {member}"),
            Some(now) if association.context.get(member) == Some(now) => {
                format!("{trigger} with {member} as before")
            }
            Some(_) => continue,
        };
        return Err(Incoherent {
            member: "repPolicyCtrlReqTriggers",
            reason,
        });
    }
    let mut lacking = triggers::of_sm(update).filter(|(trigger, _)| *trigger != "AC_TY_CH" || !of_access);
    match lacking.next() {
        Some((trigger, members)) => Err(Incoherent {
            member: "repPolicyCtrlReqTriggers",
            reason: format!("{trigger} without {}", members.join(" or ")),
        }),
        None => Ok(()),
    }
}

fn coherent(association: &Association, update: &Map<String, Value>) -> Result<(), Incoherent> {
    let text = |name: &str| update.get(name).and_then(Value::as_str);
    for (released, member) in [
        ("relIpv4Address", "ipv4Address"),
        ("relIpv6AddressPrefix", "ipv6AddressPrefix"),
    ] {
        let Some(gone) = text(released) else { continue };
        let held = association.text_of(member);
        if !held.is_some_and(|held| held.eq_ignore_ascii_case(gone)) {
            return Err(Incoherent {
                member: released,
                reason: format!(
                    "releases {gone}; {member} of the session is {}",
                    held.unwrap_or("absent")
                ),
            });
        }
    }
    let triggers = update.get("repPolicyCtrlReqTriggers").and_then(Value::as_array);
    let has = |wanted: &str| triggers.into_iter().flatten().any(|trigger| trigger == wanted);
    const ADDRESSES: &[&str] = &[
        "ipv4Address",
        "relIpv4Address",
        "ipv6AddressPrefix",
        "relIpv6AddressPrefix",
        "addIpv6AddrPrefixes",
        "addRelIpv6AddrPrefixes",
    ];
    // TS 29.512 table 5.6.3.6-1: what goes with a trigger.
    for (trigger, members) in [
        ("UE_IP_CH", ADDRESSES),
        ("RES_MO_RE", &["ueInitResReq"][..]),
        ("UE_MAC_CH", &["ueMac", "relUeMac"]),
    ] {
        if has(trigger) && !members.iter().any(|member| update.contains_key(*member)) {
            return Err(Incoherent {
                member: "repPolicyCtrlReqTriggers",
                reason: format!("{trigger} without {}", members.join(" or ")),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;
    use serde_json::json;

    fn updated(context: Value, changes: Value) -> Result<Association, Incoherent> {
        let mut association = Association::new(Kind::Sm, context);
        update(&mut association, changes.as_object().unwrap()).map(|()| association)
    }

    #[test]
    fn values_replace_those_of_the_context_and_reports_do_not_stay() {
        let context = json!({"supi": "imsi-1", "ratType": "NR", "ipv4Address": "10.0.0.1", "vendorExtra": 1});
        let changes = json!({"ratType": "EUTRA", "relIpv4Address": "10.0.0.1", "ipv4Address": "10.0.0.2",
            "repPolicyCtrlReqTriggers": ["UE_IP_CH", "RAT_TY_CH"], "addIpv6AddrPrefixes": "2001:db8::/64",
            "ueMac": "00-1b-21-3c-9d-f0", "vendorOther": 2});
        let association = updated(context, changes.clone()).unwrap();
        let expected = json!({"supi": "imsi-1", "ratType": "EUTRA", "ipv4Address": "10.0.0.2", "vendorExtra": 1,
            "vendorOther": 2});
        assert_eq!(association.context, expected);
        assert_eq!(association.addresses.ipv6, ["2001:db8::/64"]);
        let request = request(&association, changes.as_object().unwrap());
        assert_eq!(request["repPolicyCtrlReqTriggers"][0], "UE_IP_CH");
        assert_eq!(request["supi"], "imsi-1");
    }

    #[test]
    fn an_address_too_many_is_refused_until_one_is_released() {
        let mut association = Association::new(Kind::Sm, json!({}));
        let one = |number: usize| json!({"addIpv6AddrPrefixes": format!("2001:db8:{number:x}::/64")});
        let mut put = |changes: Value| update(&mut association, changes.as_object().unwrap());
        for number in 0..MOST_ADDRESSES {
            assert_eq!(put(one(number)), Ok(()));
        }
        assert_eq!(put(one(3)), Ok(()), "it has that one");
        assert_eq!(put(one(99)).unwrap_err().member, "addIpv6AddrPrefixes");
        let mut both = one(99);
        both["addRelIpv6AddrPrefixes"] = json!("2001:db8:3::/64");
        assert_eq!(put(both), Ok(()));
        assert_eq!(association.addresses.ipv6.len(), MOST_ADDRESSES);
    }

    #[test]
    fn a_trigger_comes_with_data_that_have_changed() {
        let plmn = json!({"mcc": "001", "mnc": "01"});
        let association = Association::new(Kind::Sm, json!({"ratType": "NR", "servingNetwork": plmn}));
        for (update, good) in [
            (json!({"repPolicyCtrlReqTriggers": ["RAT_TY_CH"]}), false),
            (
                json!({"repPolicyCtrlReqTriggers": ["RAT_TY_CH"], "ratType": "NR"}),
                false,
            ),
            (
                json!({"repPolicyCtrlReqTriggers": ["RAT_TY_CH"], "ratType": "EUTRA"}),
                true,
            ),
            (
                json!({"repPolicyCtrlReqTriggers": ["PLMN_CH"], "servingNetwork": plmn}),
                false,
            ),
            (
                json!({"repPolicyCtrlReqTriggers": ["PLMN_CH"], "servingNetwork": {"mcc": "001", "mnc": "02"}}),
                true,
            ),
            (
                json!({"repPolicyCtrlReqTriggers": ["AC_TY_CH"], "ratType": "NR"}),
                false,
            ),
            (
                json!({"repPolicyCtrlReqTriggers": ["AC_TY_CH"], "accessType": "3GPP_ACCESS"}),
                true,
            ),
            (
                json!({"repPolicyCtrlReqTriggers": ["AC_TY_CH"], "addAccessInfo": {"accessType": "NON_3GPP_ACCESS"}}),
                true,
            ),
            (json!({"repPolicyCtrlReqTriggers": ["SE_AMBR_CH"]}), false),
            (json!({"repPolicyCtrlReqTriggers": ["PRA_CH"]}), false),
            (
                json!({"repPolicyCtrlReqTriggers": ["PRA_CH"], "repPraInfos": {"1": {"praId": "1", "presenceState": "IN_AREA"}}}),
                true,
            ),
            (
                json!({"repPolicyCtrlReqTriggers": ["DEF_QOS_CH"], "subsDefQos": {"5qi": 9}}),
                true,
            ),
            (json!({"ratType": "NR"}), true),
        ] {
            assert_eq!(
                triggered(&association, update.as_object().unwrap()).is_ok(),
                good,
                "{update}"
            );
        }
    }

    #[test]
    fn an_update_that_contradicts_the_session_is_refused() {
        let context = json!({"ipv4Address": "10.0.0.1"});
        for (changes, member) in [
            (json!({"relIpv4Address": "10.0.0.9"}), "relIpv4Address"),
            (
                json!({"relIpv6AddressPrefix": "2001:db8::/64"}),
                "relIpv6AddressPrefix",
            ),
            (
                json!({"repPolicyCtrlReqTriggers": ["UE_IP_CH"]}),
                "repPolicyCtrlReqTriggers",
            ),
            (
                json!({"repPolicyCtrlReqTriggers": ["RES_MO_RE"]}),
                "repPolicyCtrlReqTriggers",
            ),
        ] {
            let refused = updated(context.clone(), changes).unwrap_err();
            assert_eq!(refused.member, member);
        }
    }
}
