//! Events of AFs (TS 29.514 `AfEvent`; Rx Specific-Action in the same names): what they need of the SMF, and what of an
//! SMF's report an AF hears.

use serde_json::{Value, json};

use crate::json::{self, Object};
use crate::rule_id::RuleId;

/// Specific actions of Rx that have no event on N5 keep their names (TS 29.214 §5.3.13).
pub(crate) const LOSS: &str = "INDICATION_OF_LOSS_OF_BEARER";
pub(crate) const RECOVERY: &str = "INDICATION_OF_RECOVERY_OF_BEARER";
pub(crate) const RELEASE: &str = "INDICATION_OF_RELEASE_OF_BEARER";

/// Event, trigger of the SMF, data that the SMF is to report of the rules (`RequestedRuleDataType`).
const NEEDS: &[(&str, &[&str], Option<&str>)] = &[
    ("ACCESS_TYPE_CHANGE", &["AC_TY_CH", "RAT_TY_CH"], None),
    ("ANI_REPORT", &["AN_INFO"], None),
    ("APP_DETECTION", &["APP_STA", "APP_STO"], None),
    ("CHARGING_CORRELATION", &["AN_CH_COR"], Some("CH_ID")),
    ("EPS_FALLBACK", &["EPS_FALLBACK"], Some("EPS_FALLBACK")),
    ("OUT_OF_CREDIT", &["NO_CREDIT"], None),
    ("PLMN_CHG", &["PLMN_CH"], None),
    ("QOS_MONITORING", &["QOS_MONITORING"], None),
    ("QOS_NOTIF", &["QOS_NOTIF"], None),
    ("RAN_NAS_CAUSE", &["RES_RELEASE"], Some("RES_RELEASE")),
    ("REALLOCATION_OF_CREDIT", &["REALLO_OF_CREDIT"], None),
    ("SAT_CATEGORY_CHG", &["SAT_CATEGORY_CHG"], None),
    ("SUCCESSFUL_QOS_UPDATE", &["SUCC_QOS_UPDATE"], None),
    (
        "SUCCESSFUL_RESOURCES_ALLOCATION",
        &["SUCC_RES_ALLO"],
        Some("SUCC_RES_ALLO"),
    ),
    ("USAGE_REPORT", &["US_RE"], None),
    (LOSS, &["QOS_NOTIF"], None),
    (RECOVERY, &["QOS_NOTIF"], None),
];

/// The events that an AF session is subscribed to.
pub fn subscribed(request: &Value) -> impl Iterator<Item = &str> {
    let subscription = request.get("evSubsc").unwrap_or(&Value::Null);
    let events = json::items(subscription, "events").iter();
    events.filter_map(|event| json::text(event, "event"))
}

/// Whether an AF session is subscribed to an event.
#[must_use]
pub fn subscribes(request: &Value, event: &str) -> bool {
    subscribed(request).any(|subscribed| subscribed == event)
}

/// Triggers that the SMF needs for these events.
pub(crate) fn triggers(request: &Value) -> Vec<&'static str> {
    let mut triggers = Vec::new();
    for (event, needed, _) in NEEDS {
        if subscribes(request, event) {
            for trigger in *needed {
                if !triggers.contains(trigger) {
                    triggers.push(*trigger);
                }
            }
        }
    }
    triggers
}

/// `reqData` of `RequestedRuleData`: what the SMF is to report with the rules.
pub(crate) fn requested_rule_data(request: &Value) -> Vec<&'static str> {
    let wanted = NEEDS.iter().filter(|(event, ..)| subscribes(request, event));
    let mut data: Vec<&str> = wanted.filter_map(|(_, _, data)| *data).collect();
    if subscribes(request, "ANI_REPORT") {
        let subscription = request.get("evSubsc").unwrap_or(&Value::Null);
        for information in json::texts(subscription, "reqAnis") {
            match information {
                "USER_LOCATION" => data.push("USER_LOC_INFO"),
                "UE_TIME_ZONE" => data.push("MS_TIME_ZONE"),
                _ => {}
            }
        }
    }
    data
}

/// What an AF hears of an SMF's or PCEF's report (`SmPolicyUpdateContextData`), as `EventsNotification` without
/// `evSubsUri`; `None`: nothing that it is subscribed to. `session` is the one that [`crate::media::derive`] was given,
/// `request` the AF's stored request.
#[must_use]
pub fn notification(session: &str, request: &Value, report: &Value) -> Option<Value> {
    let mut notification = Notification {
        session,
        request,
        report,
        events: Vec::new(),
        members: Object::new(),
    };
    notification.rules();
    notification.access();
    notification.charging();
    notification.finish()
}

struct Notification<'a> {
    session: &'a str,
    request: &'a Value,
    report: &'a Value,
    events: Vec<Value>,
    members: Object,
}

impl Notification<'_> {
    fn wants(&self, event: &str) -> bool {
        subscribes(self.request, event)
    }

    fn has_trigger(&self, trigger: &str) -> bool {
        json::texts(self.report, "repPolicyCtrlReqTriggers").any(|reported| reported == trigger)
    }

    fn event(&mut self, event: &str, flows: Option<Value>) {
        let mut entry = json!({"event": event});
        json::put(json::object(&mut entry), "flows", flows);
        self.events.push(entry);
    }

    /// Copies members that the report and the notification share.
    fn copy(&mut self, members: &[(&str, &str)]) {
        for (from, to) in members {
            json::put(&mut self.members, to, self.report.get(from).cloned());
        }
    }

    /// Reports on rules of this AF session.
    fn rules(&mut self) {
        for report in json::items(self.report, "ruleReports") {
            let Some(flows) = flows(self.session, json::texts(report, "pccRuleIds")) else {
                continue;
            };
            let status = json::text(report, "ruleStatus");
            let active = status == Some("ACTIVE");
            // Rules that are neither are lost for a time (`guarantees`), or wait for credit (`charging`).
            if !active && !is_lost(self.report, report) {
                continue;
            }
            let (status, member, events): (_, _, &[&str]) = if active {
                (
                    "ACTIVE",
                    "succResourcAllocReports",
                    &["SUCCESSFUL_RESOURCES_ALLOCATION"],
                )
            } else {
                let failed = &["FAILED_RESOURCES_ALLOCATION", RELEASE];
                ("INACTIVE", "failedResourcAllocReports", failed)
            };
            let wanted: Vec<&str> = events.iter().copied().filter(|event| self.wants(event)).collect();
            for event in &wanted {
                self.event(event, Some(flows.clone()));
            }
            if !wanted.is_empty() {
                let reports = self.members.entry(member).or_insert_with(|| json!([]));
                if let Value::Array(reports) = reports {
                    reports.push(json!({"mcResourcStatus": status, "flows": flows}));
                }
            }
            if !active && (self.wants("RAN_NAS_CAUSE") || self.wants(RELEASE)) {
                json::put(
                    &mut self.members,
                    "ranNasRelCauses",
                    report.get("ranNasRelCauses").cloned(),
                );
            }
        }
        self.guarantees();
    }

    /// Whether guaranteed bit rates hold (`QosNotificationControlInfo`).
    fn guarantees(&mut self) {
        let mut reports = Vec::new();
        for report in json::items(self.report, "qncReports") {
            let Some(flows) = flows(self.session, json::texts(report, "refPccRuleIds")) else {
                continue;
            };
            let kind = json::text(report, "notifType").unwrap_or("NOT_GUARANTEED");
            let on_rx = if kind == "GUARANTEED" { RECOVERY } else { LOSS };
            for event in ["QOS_NOTIF", on_rx] {
                if self.wants(event) {
                    self.event(event, Some(flows.clone()));
                }
            }
            reports.push(json!({"notifType": kind, "flows": flows}));
        }
        if !reports.is_empty() && self.wants("QOS_NOTIF") {
            self.members
                .insert("qncReports".to_owned(), Value::Array(reports));
        }
    }

    /// The access, its network and where the UE is.
    fn access(&mut self) {
        let changed = self.has_trigger("AC_TY_CH") || self.has_trigger("RAT_TY_CH");
        if changed && self.wants("ACCESS_TYPE_CHANGE") {
            self.event("ACCESS_TYPE_CHANGE", None);
            self.copy(&[("accessType", "accessType"), ("ratType", "ratType")]);
        }
        if self.has_trigger("PLMN_CH") && self.wants("PLMN_CHG") {
            self.event("PLMN_CHG", None);
            self.copy(&[("servingNetwork", "plmnId")]);
        }
        let known = ["userLocationInfo", "ueTimeZone", "servingNetwork"];
        let reported = self.has_trigger("AN_INFO") || !json::items(self.report, "ruleReports").is_empty();
        if reported
            && self.wants("ANI_REPORT")
            && known.iter().any(|member| self.report.get(member).is_some())
        {
            self.event("ANI_REPORT", None);
            self.copy(&[
                ("userLocationInfo", "ueLoc"),
                ("userLocationInfoTime", "ueLocTime"),
                ("ueTimeZone", "ueTimeZone"),
                ("servingNetwork", "plmnId"),
            ]);
        }
        if self.has_trigger("EPS_FALLBACK") && self.wants("EPS_FALLBACK") {
            self.event("EPS_FALLBACK", None);
        }
        if self.has_trigger("SAT_CATEGORY_CHG") && self.wants("SAT_CATEGORY_CHG") {
            self.event("SAT_CATEGORY_CHG", None);
            self.copy(&[("satBackhaulCategory", "satBackhaulCategory")]);
        }
    }

    /// Charging identifiers, credit, usage.
    fn charging(&mut self) {
        if self.wants("CHARGING_CORRELATION") && !json::items(self.report, "accNetChIds").is_empty() {
            let identifiers: Vec<Value> = json::items(self.report, "accNetChIds")
                .iter()
                .filter_map(|identifier| self.charging_identifier(identifier))
                .collect();
            if !identifiers.is_empty() {
                self.event("CHARGING_CORRELATION", None);
                self.members
                    .insert("anChargIds".to_owned(), Value::Array(identifiers));
            }
        }
        for (trigger, event) in [
            ("NO_CREDIT", "OUT_OF_CREDIT"),
            ("REALLO_OF_CREDIT", "REALLOCATION_OF_CREDIT"),
        ] {
            if self.has_trigger(trigger) && self.wants(event) {
                self.event(event, None);
            }
        }
        let account = format!("af-{}", self.session);
        let usage = json::items(self.report, "accuUsageReports")
            .iter()
            .find(|report| json::text(report, "refUmIds") == Some(&account));
        if let Some(usage) = usage
            && self.wants("USAGE_REPORT")
        {
            let mut report = Object::new();
            for (from, to) in [
                ("volUsage", "totalVolume"),
                ("volUsageUplink", "uplinkVolume"),
                ("volUsageDownlink", "downlinkVolume"),
                ("timeUsage", "duration"),
            ] {
                json::put(&mut report, to, usage.get(from).cloned());
            }
            self.event("USAGE_REPORT", None);
            self.members.insert("usgRep".to_owned(), Value::Object(report));
        }
    }

    /// `AccessNetworkChargingIdentifier`; one for rules of other AF sessions alone is `None`.
    fn charging_identifier(&self, identifier: &Value) -> Option<Value> {
        let mut out = Object::new();
        let named = json::texts(identifier, "refPccRuleIds").next().is_some();
        let flows = flows(self.session, json::texts(identifier, "refPccRuleIds"));
        if named && flows.is_none() {
            return None;
        }
        match identifier.get("accNetChaIdValue") {
            Some(number) => out.insert("accNetChaIdValue".to_owned(), number.clone()),
            None => out.insert(
                "accNetChargIdString".to_owned(),
                identifier.get("accNetChargId")?.clone(),
            ),
        };
        json::put(&mut out, "flows", flows);
        Some(Value::Object(out))
    }

    fn finish(mut self) -> Option<Value> {
        if self.events.is_empty() {
            return None;
        }
        self.members
            .insert("evNotifs".to_owned(), Value::Array(self.events));
        Some(Value::Object(self.members))
    }
}

/// `Flows` of the rules that belong to an AF session, by media component; `None` where none does.
pub(crate) fn flows<'a>(session: &str, rules: impl Iterator<Item = &'a str>) -> Option<Value> {
    let mut components: Vec<(u32, Vec<u32>)> = Vec::new();
    for id in rules.filter_map(RuleId::parse).filter(|id| id.session == session) {
        let known = components.iter().position(|(number, _)| *number == id.component);
        let at = known.unwrap_or_else(|| {
            components.push((id.component, Vec::new()));
            components.len() - 1
        });
        if id.flow != 0 && !components[at].1.contains(&id.flow) {
            components[at].1.push(id.flow);
        }
    }
    let flows = components.into_iter().map(|(component, flows)| {
        let mut entry = json!({"medCompN": component});
        let flows = (!flows.is_empty()).then(|| json::list(flows));
        json::put(json::object(&mut entry), "fNums", flows);
        entry
    });
    let flows: Vec<Value> = flows.collect();
    (!flows.is_empty()).then_some(Value::Array(flows))
}

/// Rules that a report says are not enforced, of any origin (`ruleReports` with `INACTIVE`).
pub fn inactive_rules(report: &Value) -> impl Iterator<Item = &str> {
    lost_reports(report).flat_map(|one| json::texts(one, "pccRuleIds"))
}

/// Why rules of an AF session are not enforced any more, as `TerminationCause` (TS 29.514 §5.6.3.10): the call has gone to the circuit
/// switched domain, or else there are no resources.
#[must_use]
pub fn termination_cause(session: &str, report: &Value) -> &'static str {
    let is_own = |one: &&Value| flows(session, json::texts(one, "pccRuleIds")).is_some();
    let mut own = lost_reports(report).filter(is_own).peekable();
    let handed_over = |one: &Value| json::text(one, "failureCode") == Some("PS_TO_CS_HAN");
    match own.peek().is_some() && own.all(handed_over) {
        true => "PS_TO_CS_HO",
        false => "INSUFFICIENT_QOS_FLOW_RESOURCES",
    }
}

fn lost_reports(report: &Value) -> impl Iterator<Item = &Value> {
    let reports = json::items(report, "ruleReports").iter();
    reports.filter(|one| is_lost(report, one))
}

/// Whether a `RuleReport` says that its rules have ended. Those that wait for credit stand until it is there again (TS 29.212 §4.5.11, TS
/// 29.512 §4.2.4.7): they have a final unit action, or come with the trigger of credit and without a failure.
fn is_lost(report: &Value, one: &Value) -> bool {
    let mut triggers = json::texts(report, "repPolicyCtrlReqTriggers");
    let out_of_credit = triggers.any(|trigger| trigger == "NO_CREDIT");
    let waits = one.get("finUnitAct").is_some() || out_of_credit && one.get("failureCode").is_none();
    json::text(one, "ruleStatus") == Some("INACTIVE") && !waits
}
