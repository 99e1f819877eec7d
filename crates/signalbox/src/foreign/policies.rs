//! Policies of Open5GS' PCF and PCRF as a policy project: which subscriber, slice and DNN gets which session.
//!
//! The first policy whose ranges and network fit the subscriber counts, and within it the first session of the slice and DNN;
//! without either the session is refused, as there.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::source::Part;

/// Open5GS writes a slice without SD as this one (TS 23.003 §28.4.2).
const NO_SD: &str = "ffffff";
const UNITS: [&str; 5] = ["bps", "Kbps", "Mbps", "Gbps", "Tbps"];

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    /// Number of policies.
    count: usize,
    policies: Vec<Row>,
    /// Rows of the table of sessions: policy, SST, SD, DNN, name.
    sessions: Vec<Value>,
    cases: Vec<Value>,
    tests: Vec<Value>,
}

/// The policy that sessions belong to, and an IMSI that gets it.
struct Policy {
    name: String,
    example: Option<String>,
}

/// The interface of sessions: those over N7 have a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    N7,
    Gx,
}

/// A row of the table of policies.
#[derive(Debug)]
struct Row {
    over: Over,
    /// Numbers of IMSIs; absent: any.
    range: Option<(u64, u64)>,
    /// The home network, with which IMSIs begin.
    prefix: String,
    policy: String,
}

impl Row {
    fn fits(&self, imsi: &str, over: Over) -> bool {
        let number = imsi.parse::<u64>().unwrap_or(0);
        let is_within = |(first, last): (u64, u64)| (first..=last).contains(&number);
        self.over == over && self.range.is_none_or(is_within) && imsi.starts_with(&self.prefix)
    }

    /// Whether no IMSI of `other` comes to it.
    fn covers(&self, other: &Self) -> bool {
        let is_wider = match (self.range, other.range) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some((first, last)), Some((other_first, other_last))) => {
                first <= other_first && other_last <= last
            }
        };
        self.over == other.over && is_wider && other.prefix.starts_with(&self.prefix)
    }

    fn cells(&self) -> Value {
        let sst = match self.over {
            Over::N7 => json!({"from": 0, "to": 255}),
            // An absent one.
            Over::Gx => Value::Null,
        };
        let number = match self.range {
            Some((first, last)) => json!({"from": first, "to": last}),
            None => "*".into(),
        };
        let supi = match self.prefix.as_str() {
            "" => "*".to_owned(),
            prefix => format!("imsi-{prefix}*"),
        };
        json!([sst, number, supi, self.policy])
    }
}

/// The slice of a session; sessions over Gx have none.
struct Slice {
    sst: Value,
    sd: Value,
    example: Option<Value>,
}

impl Policies {
    /// Reads policies of a PCF.
    pub(crate) fn read(&mut self, list: &Part<'_>) {
        for part in list.items() {
            let Some(policy) = self.policy(&part, Over::N7) else {
                part.get("slice").mark();
                continue;
            };
            let mut seen = BTreeSet::new();
            for slice in part.get("slice").items() {
                let sst = slice.get("sst").number().unwrap_or(1);
                let sd = slice.get("sd").text().unwrap_or(NO_SD).to_lowercase();
                let sd = format!("{sd:0>6}");
                slice
                    .get("default_indicator")
                    .refuse_if_there("which slice is the default is for the UDM to say");
                let mut example = json!({ "sst": sst });
                if sd != NO_SD {
                    example["sd"] = sd.as_str().into();
                }
                let slice_of = Slice {
                    sst: sst.into(),
                    sd: sd.into(),
                    example: Some(example),
                };
                for session in slice.get("session").items() {
                    self.session(&policy, &slice_of, &session, &mut seen);
                }
            }
        }
    }

    /// Reads policies of a PCRF.
    pub(crate) fn read_4g(&mut self, list: &Part<'_>) {
        for part in list.items() {
            let Some(policy) = self.policy(&part, Over::Gx) else {
                part.get("session").mark();
                continue;
            };
            let slice = Slice {
                sst: Value::Null,
                sd: NO_SD.into(),
                example: None,
            };
            let mut seen = BTreeSet::new();
            for session in part.get("session").items() {
                self.session(&policy, &slice, &session, &mut seen);
            }
        }
    }

    /// Reads whom a policy is for; none where earlier policies leave it no subscriber.
    fn policy(&mut self, part: &Part<'_>, over: Over) -> Option<Policy> {
        self.count += 1;
        let name = format!("policy-{}", self.count);
        let plmn = part.get("plmn_id");
        let prefix = match (plmn.get("mcc").text(), plmn.get("mnc").text()) {
            (Some(mcc), Some(mnc)) => format!("{mcc:0>3}{mnc:0>2}"),
            _ => String::new(),
        };
        let row = |range| Row {
            over,
            range,
            prefix: prefix.clone(),
            policy: name.clone(),
        };
        let (mut rows, mut examples) = (Vec::new(), Vec::new());
        let ranges = part.get("supi_range").items();
        for range in &ranges {
            let Some(text) = range.text() else { continue };
            let (from, to) = text.split_once('-').unwrap_or((text, text));
            let (Ok(first), Ok(last)) = (from.trim().parse(), to.trim().parse()) else {
                range.refuse("it is not a range of numbers");
                continue;
            };
            examples.extend([from.trim().to_owned(), to.trim().to_owned()]);
            rows.push((range.clone(), row(Some((first, last)))));
        }
        if ranges.is_empty() {
            examples.push(format!("{prefix:0<15}"));
            rows.push((part.clone(), row(None)));
        }
        let mut is_reached = false;
        for (part, row) in rows {
            if self.policies.iter().any(|earlier| earlier.covers(&row)) {
                part.refuse("an earlier policy has all its subscribers");
            } else {
                is_reached = true;
                self.policies.push(row);
            }
        }
        let is_of_this = |imsi: &String| {
            let row = self.policies.iter().find(|row| row.fits(imsi, over));
            row.is_some_and(|row| row.policy == name)
        };
        let example = examples.into_iter().find(is_of_this);
        is_reached.then_some(Policy { name, example })
    }

    fn session(&mut self, policy: &Policy, slice: &Slice, part: &Part<'_>, seen: &mut BTreeSet<String>) {
        let Some(dnn) = part.get("name").text().map(str::to_lowercase) else {
            return part.refuse("a session needs the name of its DNN");
        };
        if !seen.insert(format!("{} {} {dnn}", slice.sst, slice.sd)) {
            return part.refuse("an earlier session has this slice and DNN");
        }
        part.get("type")
            .refuse_if_there("the type of a session is for the UDM and SMF to say");
        let name = format!("{} {}", policy.name, part.path());
        self.sessions
            .push(json!([policy.name, slice.sst, slice.sd, dnn, name]));
        let mut expected = json!({});
        let mut blocks = vec![json!({"block": "session", "sessionRule": session_rule(part, &mut expected)})];
        let mut number = 0;
        for rule in part.get("pcc_rule").items() {
            if !rule.get("flow").is_there() {
                rule.refuse("a rule without flows stands for media of AFs, whose QoS is pcf.media");
                continue;
            }
            number += 1;
            blocks.extend(pcc_rule(&rule, &dnn, number, &mut expected));
        }
        // SMFs take a session AMBR and default QoS that these triggers name.
        blocks.push(json!({"triggers": ["SE_AMBR_CH", "DEF_QOS_CH"]}));
        expected["policyCtrlReqTriggers"] = json!(["SE_AMBR_CH", "DEF_QOS_CH"]);
        self.cases.push(json!({"is": name, "do": blocks}));
        if let Some(imsi) = &policy.example {
            let mut request = json!({"supi": format!("imsi-{imsi}"), "pduSessionId": 1, "dnn": dnn});
            if let Some(slice) = &slice.example {
                request["sliceInfo"] = slice.clone();
            }
            self.tests
                .push(json!({"name": name, "request": request, "expect": expected}));
        }
    }

    /// The project with its test cases, if there are policies.
    pub(crate) fn project(&self) -> Option<(Value, Value)> {
        if self.sessions.is_empty() {
            return None;
        }
        let number = json!({"$number": {"$slice": ["$request.supi", 5]}});
        let sd = json!({"$lower": {"$first": ["$request.sliceInfo.sd", NO_SD]}});
        let project = json!({
            "name": "open5gs",
            "service": "sm",
            "tables": {
                "policies": {
                    "keys": {"sst": "$request.sliceInfo.sst", "number": number, "supi": "$request.supi"},
                    "columns": ["name"],
                    "rows": self.policies.iter().map(Row::cells).collect::<Vec<_>>(),
                },
                "sessions": {
                    "keys": {
                        "policy": "$policy.name",
                        "sst": "$request.sliceInfo.sst",
                        "sd": sd,
                        "dnn": {"$lower": "$request.dnn"},
                    },
                    "columns": ["name"],
                    "rows": self.sessions,
                },
            },
            "blocks": [
                {"block": "subscriber", "lookup": "policies", "as": "policy", "otherwise": [
                    {"reject": {"cause": "USER_UNKNOWN", "detail": "no policy is for this subscriber"}},
                ]},
                {"block": "slice and DNN", "lookup": "sessions", "as": "found", "otherwise": [
                    {"reject": {"cause": "POLICY_CONTEXT_DENIED", "detail": "the policy has no session of this slice and DNN"}},
                ]},
                {"block": "decision", "switch": "$found.name", "cases": self.cases},
            ],
        });
        Some((project, Value::Array(self.tests.clone())))
    }
}

fn session_rule(part: &Part<'_>, expected: &mut Value) -> Value {
    let mut rule = json!({"sessRuleId": "default"});
    let rates = part.get("ambr");
    if let (Some(uplink), Some(downlink)) = (rate(&rates.get("uplink")), rate(&rates.get("downlink"))) {
        rule["authSessAmbr"] = json!({"uplink": uplink, "downlink": downlink});
    }
    if let Some(index) = part.at(&["qos", "index"]).number() {
        rule["authDefQos"] = json!({"5qi": index, "arp": arp(&part.at(&["qos", "arp"]))});
    }
    expected["sessRules"]["default"] = rule.clone();
    rule
}

/// The blocks of a PCC rule, with the identifiers that Open5GS gives.
fn pcc_rule(part: &Part<'_>, dnn: &str, number: u64, expected: &mut Value) -> [Value; 2] {
    let id = format!("{dnn}-n{number}");
    let mut flows = Vec::new();
    for flow in part.get("flow").items() {
        let direction = match flow.get("direction").text() {
            Some("1") => "DOWNLINK",
            Some("2") => "UPLINK",
            Some(_) => {
                flow.refuse("a direction is 1 (downlink) or 2 (uplink)");
                continue;
            }
            None => "BIDIRECTIONAL",
        };
        if let Some(description) = flow.get("description").text() {
            flows.push(json!({"flowDescription": description, "flowDirection": direction}));
        }
    }
    let qos = part.get("qos");
    let mut data =
        json!({"qosId": id, "5qi": qos.get("index").number().unwrap_or(9), "arp": arp(&qos.get("arp"))});
    for (theirs, uplink, downlink) in [("mbr", "maxbrUl", "maxbrDl"), ("gbr", "gbrUl", "gbrDl")] {
        let rates = qos.get(theirs);
        for (name, value) in [(uplink, rates.get("uplink")), (downlink, rates.get("downlink"))] {
            if let Some(rate) = rate(&value) {
                data[name] = rate.into();
            }
        }
    }
    let rule = json!({"pccRuleId": id, "precedence": number, "flowInfos": flows, "refQosData": [id]});
    expected["pccRules"][&id] = rule.clone();
    expected["qosDecs"][&id] = data.clone();
    [json!({"qosData": data}), json!({"pccRule": rule})]
}

/// Open5GS counts 1 as disabled and 2 as enabled.
fn arp(part: &Part<'_>) -> Value {
    let is_enabled = |key: &str| part.get(key).text() == Some("2");
    json!({
        "priorityLevel": part.get("priority_level").number().unwrap_or(15),
        "preemptCap": if is_enabled("pre_emption_capability") { "MAY_PREEMPT" } else { "NOT_PREEMPT" },
        "preemptVuln": if is_enabled("pre_emption_vulnerability") { "PREEMPTABLE" } else { "NOT_PREEMPTABLE" },
    })
}

/// A bit rate as TS 29.571 writes it.
fn rate(part: &Part<'_>) -> Option<String> {
    let value = part.get("value").number()?;
    let unit = part.get("unit").number().unwrap_or(0);
    let Some(unit) = usize::try_from(unit).ok().and_then(|unit| UNITS.get(unit)) else {
        part.get("unit").refuse("a unit is 0 (bps) to 4 (Tbps)");
        return None;
    };
    Some(format!("{value} {unit}"))
}
