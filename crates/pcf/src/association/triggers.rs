//! The data that a consumer provides with a trigger that is met. No IO.

use serde_json::{Map, Value};

/// A trigger, and the members of an update of which one comes with it.
pub(crate) type Data = (&'static str, &'static [&'static str]);

/// Triggers of SMFs (TS 29.512 §4.2.4, §5.6.2.19). Not here: those whose data may be absent, since what they say has ended.
const SM: &[Data] = &[
    ("AC_TY_CH", &["accessType"]),
    ("AN_CH_COR", &["accNetChIds"]),
    ("APP_STA", &["appDetectionInfos"]),
    ("APP_STO", &["appDetectionInfos"]),
    ("AUTH_PROF_CH", &["authProfIndex"]),
    ("DEF_QOS_CH", &["subsDefQos"]),
    ("NUM_OF_PACKET_FILTER", &["numOfPackFilter"]),
    ("PRA_CH", &["repPraInfos"]),
    ("PS_DA_OFF", &["3gppPsDataOffStatus"]),
    ("QOS_MONITORING", &["qosMonReports"]),
    ("QOS_NOTIF", &["qncReports"]),
    ("REF_QOS_IND_CH", &["refQosIndication"]),
    ("SAREA_CH", &["userLocationInfo"]),
    ("SCELL_CH", &["userLocationInfo"]),
    ("USER_LOCATION_CH", &["userLocationInfo"]),
    // An AMF's name for it, which SMFs use as well.
    ("LOC_CH", &["userLocationInfo"]),
    ("SAT_CATEGORY_CHG", &["satBackhaulCategory"]),
    ("SCNN_CH", &["servNfId"]),
    ("SE_AMBR_CH", &["subsSessAmbr"]),
    ("UE_TZ_CH", &["ueTimeZone"]),
    ("US_RE", &["accuUsageReports"]),
];

/// Triggers of AMFs for AM policies (TS 29.507 §4.2.3.2, §5.6.2.4).
pub(crate) const AM: &[Data] = &[
    ("ACCESS_TYPE_CH", &["accessTypes", "ratTypes"]),
    ("ALLOWED_NSSAI_CH", &["allowedSnssais", "n3gAllowedSnssais"]),
    ("LOC_CH", &["userLoc"]),
    ("PRA_CH", &["praStatuses"]),
    ("SMF_SELECT_CH", &["smfSelInfo"]),
];

/// Triggers of AMFs for UE policies (TS 29.525 §4.2.3.2, §5.6.2.4).
pub(crate) const UE: &[Data] = &[
    ("LOC_CH", &["userLoc"]),
    ("PLMN_CH", &["plmnId"]),
    ("PRA_CH", &["praStatuses"]),
    (
        "UE_POLICY",
        &["uePolDelResult", "uePolReq", "uePolTransFailNotif"],
    ),
];

/// Triggers of an SMF's update without their data.
pub(crate) fn of_sm(update: &Map<String, Value>) -> impl Iterator<Item = Data> + '_ {
    lacking(update, "repPolicyCtrlReqTriggers", SM)
}

/// Triggers of an AMF's update without their data.
pub(crate) fn of_amf<'a>(
    update: &'a Map<String, Value>,
    table: &'a [Data],
) -> impl Iterator<Item = Data> + 'a {
    lacking(update, "triggers", table)
}

fn lacking<'a>(
    update: &'a Map<String, Value>,
    member: &'a str,
    table: &'a [Data],
) -> impl Iterator<Item = Data> + 'a {
    let triggers = update.get(member).and_then(Value::as_array).into_iter().flatten();
    let known = triggers.filter_map(|trigger| table.iter().find(|(name, _)| trigger == name));
    known
        .copied()
        .filter(|(_, members)| !members.iter().any(|name| update.contains_key(*name)))
}
