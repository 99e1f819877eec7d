//! Service information to rules (TS 29.513 §7.3, TS 29.213 table 6.3.1).

use pcc::media::{derive, merge};
use pcc::{Cause, Class, Mapping, RuleId};
use serde_json::{Value, json};

/// A voice call with RTP and RTCP, as a P-CSCF describes it.
pub(crate) fn call() -> Value {
    json!({
        "afAppId": "IMS", "afChargId": "icid-1", "ueIpv4": "10.45.0.1", "dnn": "ims",
        "notifUri": "http://127.0.0.1:9/af", "suppFeat": "",
        "evSubsc": {"events": [{"event": "FAILED_RESOURCES_ALLOCATION"}, {"event": "SUCCESSFUL_RESOURCES_ALLOCATION"}]},
        "medComponents": {"1": {
            "medCompN": 1, "medType": "AUDIO", "fStatus": "ENABLED",
            "marBwUl": "64 Kbps", "marBwDl": "64 Kbps", "mirBwDl": "24 Kbps", "rsBw": "800 bps", "rrBw": "2400 bps",
            "medSubComps": {
                "1": {"fNum": 1, "fDescs": [
                    "permit in 17 from 10.45.0.1 50000 to 192.0.2.99 40000",
                    "permit out 17 from 192.0.2.99 40000 to 10.45.0.1 50000",
                ]},
                "2": {"fNum": 2, "flowUsage": "RTCP", "fDescs": [
                    "permit in 17 from 10.45.0.1 50001 to 192.0.2.99 40001",
                    "permit out 17 from 192.0.2.99 40001 to any 50001",
                ]},
            },
        }},
    })
}

fn rules(request: &Value) -> Value {
    derive("s", request, &Mapping::default()).unwrap()
}

fn refusal(request: &Value, mapping: &Mapping) -> (Cause, String) {
    let refusal = derive("s", request, mapping).unwrap_err();
    (refusal.cause, refusal.at)
}

#[test]
fn a_voice_call_gets_a_rule_for_each_flow() {
    let decision = rules(&call());
    let arp = json!({"priorityLevel": 2, "preemptCap": "MAY_PREEMPT", "preemptVuln": "NOT_PREEMPTABLE"});
    let expected = json!({
        "pccRules": {
            "af-s-1-1": {
                "pccRuleId": "af-s-1-1",
                "flowInfos": [{
                    "flowDescription": "permit out 17 from 192.0.2.99 40000 to 10.45.0.1 50000",
                    "packetFilterUsage": true, "flowDirection": "BIDIRECTIONAL",
                }],
                "precedence": 51,
                "refQosData": ["af-s-1-1"], "refTcData": ["af-s-1-1"], "refChgData": ["af-s-1-1"],
            },
            "af-s-1-2": {
                "pccRuleId": "af-s-1-2",
                "flowInfos": [
                    {
                        "flowDescription": "permit out 17 from 192.0.2.99 40001 to 10.45.0.1 50001",
                        "packetFilterUsage": true, "flowDirection": "UPLINK",
                    },
                    {
                        "flowDescription": "permit out 17 from 192.0.2.99 40001 to any 50001",
                        "packetFilterUsage": true, "flowDirection": "DOWNLINK",
                    },
                ],
                "precedence": 51,
                "refQosData": ["af-s-1-2"], "refTcData": ["af-s-1-2"], "refChgData": ["af-s-1-2"],
            },
        },
        "qosDecs": {
            "af-s-1-1": {
                "qosId": "af-s-1-1", "5qi": 1, "maxbrUl": "64 Kbps", "maxbrDl": "64 Kbps",
                "gbrUl": "64 Kbps", "gbrDl": "24 Kbps", "arp": arp,
            },
            "af-s-1-2": {
                "qosId": "af-s-1-2", "5qi": 1, "maxbrUl": "3200 bps", "maxbrDl": "3200 bps",
                "gbrUl": "3200 bps", "gbrDl": "3200 bps", "arp": arp,
            },
        },
        "traffContDecs": {
            "af-s-1-1": {"tcId": "af-s-1-1", "flowStatus": "ENABLED"},
            "af-s-1-2": {"tcId": "af-s-1-2", "flowStatus": "ENABLED"},
        },
        "chgDecs": {
            "af-s-1-1": {"chgId": "af-s-1-1", "afChargId": "icid-1"},
            "af-s-1-2": {"chgId": "af-s-1-2", "afChargId": "icid-1"},
        },
        "policyCtrlReqTriggers": ["SUCC_RES_ALLO"],
        "lastReqRuleData": [{"refPccRuleIds": ["af-s-1-1", "af-s-1-2"], "reqData": ["SUCC_RES_ALLO"]}],
    });
    assert_eq!(decision, expected);
}

#[test]
fn an_update_modifies_rules_by_the_same_identifiers() {
    let mut request = call();
    let before = rules(&request);
    merge(
        &mut request,
        &json!({"medComponents": {"1": {"fStatus": "ENABLED-UPLINK", "medSubComps": null}}}),
    );
    assert!(
        request["medComponents"]["1"].get("medSubComps").is_none(),
        "null removes a member"
    );

    let mut request = call();
    let hold = json!({"medComponents": {
        "1": {"medCompN": 1, "fStatus": "ENABLED-UPLINK"},
        "2": {"medCompN": 2, "medType": "VIDEO", "marBwDl": "1 Mbps", "medSubComps": {
            "1": {"fNum": 1, "fDescs": ["permit out 17 from any to assigned 6000"]}}},
    }});
    merge(&mut request, &hold);
    let after = rules(&request);
    assert_eq!(after["pccRules"]["af-s-1-1"], before["pccRules"]["af-s-1-1"]);
    assert_eq!(after["traffContDecs"]["af-s-1-1"]["flowStatus"], "ENABLED-UPLINK");
    assert_eq!(
        after["traffContDecs"]["af-s-1-2"]["flowStatus"], "ENABLED",
        "RTCP flows both ways where the media flow one way"
    );
    let video = &after["qosDecs"]["af-s-2-1"];
    assert_eq!((&video["5qi"], &video["gbrDl"]), (&json!(2), &json!("1 Mbps")));
    assert_eq!(
        video["gbrUl"], "512 Kbps",
        "the class has a rate where the AF gives none"
    );

    merge(
        &mut request,
        &json!({"medComponents": {"2": {"fStatus": "REMOVED"}}}),
    );
    assert_eq!(rules(&request)["pccRules"].as_object().unwrap().len(), 2);
    assert!(request["medComponents"].get("2").is_none());
    merge(
        &mut request,
        &json!({"medComponents": {"1": {"medSubComps": {"2": {"fNum": 2, "fStatus": "REMOVED"}}}}}),
    );
    assert!(rules(&request)["pccRules"].get("af-s-1-2").is_none());
}

#[test]
fn rtcp_without_bandwidths_of_its_own_gets_a_twentieth() {
    for (rs, rr, expected) in [
        (None, None, "3200 bps"),
        (Some("5 Kbps"), None, "5 Kbps"),
        (None, Some("1 Kbps"), "3200 bps"),
        (Some("5 Kbps"), Some("1 Kbps"), "6 Kbps"),
    ] {
        let mut request = call();
        merge(
            &mut request,
            &json!({"medComponents": {"1": {"rsBw": rs, "rrBw": rr}}}),
        );
        assert_eq!(
            rules(&request)["qosDecs"]["af-s-1-2"]["maxbrUl"],
            expected,
            "{rs:?} {rr:?}"
        );
    }
}

#[test]
fn signalling_priorities_and_applications_choose_the_class() {
    let mut request = call();
    merge(
        &mut request,
        &json!({"resPrio": "PRIO_16", "medComponents": {
            "1": {"resPrio": "PRIO_2"},
            "0": {"medCompN": 0, "medType": "CONTROL", "medSubComps": {"1": {
                "fNum": 1, "flowUsage": "AF_SIGNALLING", "afSigProtocol": "SIP",
                "fDescs": ["permit out 17 from 192.0.2.1 5060 to assigned"]}}},
        }}),
    );
    let decision = rules(&request);
    assert_eq!(decision["qosDecs"]["af-s-0-1"]["5qi"], 5);
    assert_eq!(decision["qosDecs"]["af-s-0-1"]["arp"]["priorityLevel"], 1);
    assert!(decision["qosDecs"]["af-s-0-1"].get("gbrUl").is_none());
    assert_eq!(
        decision["pccRules"]["af-s-0-1"]["precedence"], 50,
        "signalling comes first"
    );
    assert_eq!(decision["pccRules"]["af-s-0-1"]["afSigProtocol"], "SIP");
    assert_eq!(
        decision["qosDecs"]["af-s-1-1"]["arp"]["priorityLevel"], 2,
        "never lowered below the class"
    );

    let mut mapping = Mapping::default();
    let class: Class =
        serde_json::from_value(json!({"5qi": 66, "maxBitRate": "1 Mbps", "ratingGroup": 7, "online": true}))
            .unwrap();
    mapping.applications.insert("IMS".to_owned(), class);
    let decision = derive("s", &request, &mapping).unwrap();
    assert_eq!(decision["qosDecs"]["af-s-1-1"]["5qi"], 66);
    assert_eq!(decision["chgDecs"]["af-s-1-1"]["ratingGroup"], 7);
    assert_eq!(decision["chgDecs"]["af-s-1-1"]["online"], true);
}

#[test]
fn sponsors_routing_and_usage_reach_the_rules() {
    let request = json!({
        "sponId": "shop", "aspId": "video", "afAppId": "netvideo",
        "afRoutReq": {"appReloc": true, "routeToLocs": [{"dnai": "edge-1"}]},
        "evSubsc": {"events": [{"event": "USAGE_REPORT"}], "usgThres": {"totalVolume": 5000}},
        "medComponents": {"1": {"medCompN": 1}},
    });
    let decision = rules(&request);
    let rule = &decision["pccRules"]["af-s-1-0"];
    assert_eq!(
        (&rule["appId"], &rule["appReloc"]),
        (&json!("netvideo"), &json!(true))
    );
    assert_eq!(
        decision["traffContDecs"]["af-s-1-0"]["routeToLocs"][0]["dnai"],
        "edge-1"
    );
    assert_eq!(decision["chgDecs"]["af-s-1-0"]["sponsorId"], "shop");
    assert_eq!(
        decision["chgDecs"]["af-s-1-0"]["reportingLevel"],
        "SPON_CON_LEVEL"
    );
    assert_eq!(
        decision["umDecs"]["af-s"],
        json!({"umId": "af-s", "volumeThreshold": 5000})
    );
    assert_eq!(decision["policyCtrlReqTriggers"], json!(["US_RE"]));

    let mapping = Mapping {
        sponsors: vec!["other".to_owned()],
        ..Mapping::default()
    };
    assert_eq!(
        refusal(&request, &mapping).0,
        Cause::UnauthorizedSponsoredDataConnectivity
    );
    let mut disabled = request;
    disabled["sponStatus"] = json!("SPONSOR_DISABLED");
    assert!(derive("s", &disabled, &mapping).is_ok());
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    let change = |patch: Value| {
        let mut request = call();
        merge(&mut request, &patch);
        request
    };
    let flow = |flow: Value| change(json!({"medComponents": {"1": {"medSubComps": {"1": flow}}}}));
    let mapping = Mapping::default();
    use Cause::{
        FilterRestrictions, InvalidServiceInformation as Invalid, RequestedServiceNotAuthorized as Denied,
    };
    for (request, cause, at) in [
        (
            change(json!({"medComponents": {"1": {"medCompN": null}}})),
            Invalid,
            "/medComponents/1/medCompN",
        ),
        (
            change(json!({"medComponents": {"7": {"medCompN": 1}}})),
            Invalid,
            "/medComponents/7",
        ),
        (
            change(json!({"medComponents": {"1": {"marBwUl": "fast"}}})),
            Invalid,
            "/medComponents/1/marBwUl",
        ),
        (
            change(json!({"medComponents": {"1": {"fStatus": "OPEN"}}})),
            Invalid,
            "/medComponents/1/fStatus",
        ),
        (change(json!({"sponId": "x"})), Invalid, "/aspId"),
        (
            flow(json!({"fNum": "1"})),
            Invalid,
            "/medComponents/1/medSubComps/1/fNum",
        ),
        (
            flow(json!({"fNum": 2})),
            Invalid,
            "/medComponents/1/medSubComps/2",
        ),
        (
            flow(json!({"fDescs": ["deny out ip from any to any"]})),
            FilterRestrictions,
            "/medComponents/1/medSubComps/1/fDescs/0",
        ),
        (
            change(json!({"medComponents": {"1": {"qosReference": "gold"}}})),
            Denied,
            "/medComponents/1",
        ),
    ] {
        assert_eq!(refusal(&request, &mapping), (cause, at.to_owned()));
    }
    let audio = |class: Value| Mapping {
        media: [("AUDIO".to_owned(), serde_json::from_value(class).unwrap())].into(),
        ..Mapping::default()
    };
    assert_eq!(refusal(&call(), &audio(json!({"allowed": false}))).0, Denied);
    assert_eq!(
        refusal(&call(), &audio(json!({"maxBitRate": "48 Kbps"}))).0,
        Denied
    );
    let few = Mapping {
        flows: 1,
        ..Mapping::default()
    };
    assert_eq!(refusal(&call(), &few).0, Invalid);
    assert_eq!((Denied.status(), Denied.code()), (403, 5063));
    assert_eq!(RuleId::parse("af-s-1-2").unwrap().flow, 2);
}

#[test]
fn settings_are_those_that_are_written() {
    let mapping = Mapping::default();
    let text = serde_json::to_value(&mapping).unwrap();
    assert_eq!(text["signalling"]["5qi"], 5);
    assert_eq!(serde_json::from_value::<Mapping>(text).unwrap(), mapping);
    assert!(serde_json::from_value::<Class>(json!({"defaultBitRate": "64k"})).is_err());
}

#[test]
fn a_medium_without_flows_gets_no_rule_until_they_come() {
    let mut request = call();
    request.as_object_mut().unwrap().remove("afAppId");
    let flows = request["medComponents"]["1"]["medSubComps"].clone();
    let without = json!({"1": {"fNum": 1}, "2": {"fNum": 2, "flowUsage": "RTCP", "fDescs": []}});
    for sub_components in [Value::Null, without] {
        let update = json!({"medComponents": {"1": {"medSubComps": null}}});
        merge(&mut request, &update);
        merge(
            &mut request,
            &json!({"medComponents": {"1": {"medSubComps": sub_components}}}),
        );
        let decision = rules(&request);
        for member in ["pccRules", "qosDecs", "traffContDecs", "lastReqRuleData"] {
            assert_eq!(decision.get(member), None, "{decision}");
        }
    }
    // What it may not have is refused before its flows are known.
    let mut wrong = request.clone();
    wrong["medComponents"]["1"]["marBwUl"] = json!("fast");
    assert_eq!(
        refusal(&wrong, &Mapping::default()),
        (
            Cause::InvalidServiceInformation,
            "/medComponents/1/marBwUl".to_owned()
        )
    );
    merge(
        &mut request,
        &json!({"medComponents": {"1": {"medSubComps": flows}}}),
    );
    let complete = rules(&request);
    assert_eq!(complete["pccRules"].as_object().unwrap().len(), 2);
    // An application is a filter.
    request["medComponents"] = json!({"1": {"medCompN": 1, "medType": "AUDIO", "afAppId": "app-1"}});
    assert_eq!(rules(&request)["pccRules"]["af-s-1-0"]["appId"], "app-1");
}

#[test]
fn an_operator_bounds_the_priority_pre_emption_and_bit_rate_of_afs() {
    let mapping = |settings: Value| serde_json::from_value::<Mapping>(settings).unwrap();
    let asked = json!({"medComponents": {"1": {"medCompN": 1, "resPrio": "PRIO_16", "preemptCap": "NOT_PREEMPT", "preemptVuln": "PREEMPTABLE",
        "medType": "DATA", "marBwDl": "100 Gbps", "medSubComps": {"1": {"fNum": 1,
            "fDescs": ["permit out 17 from any to assigned 5000"]}}}}});
    let arp = |settings: Value| {
        derive("s", &asked, &mapping(settings)).unwrap()["qosDecs"]["af-s-1-1"]["arp"].clone()
    };
    let expected = |level: u8, cap: &str, vuln: &str| json!({"priorityLevel": level, "preemptCap": cap, "preemptVuln": vuln});
    assert_eq!(arp(json!({})), expected(1, "NOT_PREEMPT", "PREEMPTABLE"));
    assert_eq!(
        arp(json!({"highestPriority": 5})),
        expected(5, "NOT_PREEMPT", "PREEMPTABLE")
    );
    // The class is not lowered by it.
    let signalling = json!({"highestPriority": 12, "afPreemption": false, "media": {"DATA": {"arp": {"priorityLevel": 3, "preempts": true,
        "preemptable": false}}}});
    assert_eq!(arp(signalling), expected(3, "MAY_PREEMPT", "NOT_PREEMPTABLE"));
    let limits = |settings: Value| {
        derive("s", &asked, &mapping(settings))
            .map(drop)
            .map_err(|refusal| refusal.cause)
    };
    let refused = Err(Cause::RequestedServiceNotAuthorized);
    assert_eq!(limits(json!({"maxBitRate": "1 Gbps"})), refused);
    assert_eq!(
        limits(json!({"maxBitRate": "1 Gbps", "media": {"DATA": {"maxBitRate": "200 Gbps"}}})),
        Ok(())
    );
    assert_eq!(
        limits(json!({"maxBitRate": "200 Gbps", "media": {"DATA": {"maxBitRate": "1 Gbps"}}})),
        refused
    );
}
