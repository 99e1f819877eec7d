//! Event-Trigger (TS 29.212 §5.3.7) and `PolicyControlRequestTrigger` (TS 29.512 §5.6.3.6).

/// Where several events have one trigger, the first is the one that we subscribe to.
const TRIGGERS: &[(i32, &str)] = &[
    (1, "SE_AMBR_CH"),
    (2, "RAT_TY_CH"),
    (4, "PLMN_CH"),
    (5, "QOS_NOTIF"),
    (6, "QOS_NOTIF"),
    (7, "AC_TY_CH"),
    (12, "RAI_CH"),
    (13, "USER_LOCATION_CH"),
    (15, "NO_CREDIT"),
    (16, "REALLO_OF_CREDIT"),
    (17, "RE_TIMEOUT"),
    (18, "UE_IP_CH"),
    (19, "UE_IP_CH"),
    (20, "DEF_QOS_CH"),
    (21, "SCNN_CH"),
    (0, "SCNN_CH"),
    (22, "SUCC_RES_ALLO"),
    (23, "RES_MO_RE"),
    (25, "UE_TZ_CH"),
    (26, "SAREA_CH"),
    (27, "SCELL_CH"),
    (28, "AN_CH_COR"),
    (33, "US_RE"),
    (39, "APP_STA"),
    (40, "APP_STO"),
    (45, "AN_INFO"),
    (46, "CM_SES_FAIL"),
    (48, "PRA_CH"),
    (53, "RES_RELEASE"),
    (55, "PS_DA_OFF"),
];

/// NO_EVENT_TRIGGERS: the PCEF is to report none.
pub(super) const NONE: i32 = 14;

/// The trigger of an event.
pub(super) fn trigger(event: i32) -> Option<&'static str> {
    TRIGGERS
        .iter()
        .find(|(code, _)| *code == event)
        .map(|(_, trigger)| *trigger)
}

/// The events of a trigger.
pub(super) fn events(trigger: &str) -> impl Iterator<Item = i32> {
    let matching = TRIGGERS.iter().filter(move |(_, known)| *known == trigger);
    matching.map(|(code, _)| *code)
}
