//! What an entry of a list describes goes together (TS 29.510 §6.1.6.2.2): a query matches a profile exactly if it matches
//! the profile with one of the entries alone.

use std::borrow::Cow;

use discovery::{Query, Whom};
use model::NfProfile;
use serde_json::{Map, Value, json};

/// One kind of information: members of the single information and of the list, pieces that entries are made of, and
/// parameters that they answer.
struct Kind {
    one: Option<&'static str>,
    list: &'static str,
    nf_type: &'static str,
    base: Value,
    pieces: Vec<Value>,
    parameters: &'static [(&'static str, &'static str)],
}

fn tai(number: &str) -> Value {
    json!({"plmnId": {"mcc": "001", "mnc": "01"}, "tac": number})
}

const TAI_1: &str = r#"{"plmnId":{"mcc":"001","mnc":"01"},"tac":"000001"}"#;
const TAI_2: &str = r#"{"plmnId":{"mcc":"001","mnc":"01"},"tac":"000002"}"#;

fn kinds() -> Vec<Kind> {
    let tais = |number| json!({"taiList": [tai(number)]});
    let slice = |list: &str, dnns: &str, sst: u8, dnn: &str| json!({list: [{"sNssai": {"sst": sst}, dnns: [{"dnn": dnn}]}]});
    let ranges = |list: &str, digit: &str| json!({list: [{"start": format!("00101000{digit}"), "end": format!("00101000{digit}")}]});
    let smf = |sst, dnn| slice("sNssaiSmfInfoList", "dnnSmfInfoList", sst, dnn);
    let upf = |sst, dnn| slice("sNssaiUpfInfoList", "dnnUpfInfoList", sst, dnn);
    let subscribers: &[(&str, &str)] = &[
        ("supi", "imsi-001010001"),
        ("supi", "imsi-001010002"),
        ("gpsi", "msisdn-001010001"),
        ("gpsi", "msisdn-001010002"),
        ("group-id-list", "g1"),
        ("routing-indicator", "1"),
        ("data-set", "POLICY"),
        ("dnn", "a"),
        ("dnn", "b"),
        ("v2x-support-ind", "true"),
        ("v2x-support-ind", "false"),
        ("ip-domain", "d1"),
        ("chf-supported-plmn", r#"{"mcc":"001","mnc":"01"}"#),
        ("external-group-identity", "extgroupid-001010001@a"),
        ("imsi", "001010001"),
        ("msisdn", "001010002"),
        (
            "complex-query",
            r#"{"cnfUnits":[{"cnfUnit":[{"attr":"supi","value":"imsi-001010001"}]},{"cnfUnit":[{"attr":"dnn","value":"b"}]}]}"#,
        ),
    ];
    let sessions: &[(&str, &str)] = &[
        ("tai", TAI_1),
        ("tai", TAI_2),
        ("dnn", "a"),
        ("dnn", "b"),
        ("snssais", r#"[{"sst":1}]"#),
        ("snssais", r#"[{"sst":2}]"#),
        ("access-type", "3GPP_ACCESS"),
        ("access-type", "NON_3GPP_ACCESS"),
        ("pgw-ind", "true"),
        ("pgw-ind", "false"),
        ("pgw", "pgw.example.com"),
        ("smf-serving-area", "one"),
        ("upf-iwk-eps-ind", "true"),
        ("ipups", "false"),
        ("mbsmf-serving-area", "one"),
        ("amf-set-id", "001"),
        ("amf-region-id", "02"),
        ("event-id-list", "NF_LOAD"),
        ("serving-nf-type", "AMF"),
        ("nsac-sai", "one"),
        ("area-session-id", "1"),
        ("ue-ipv4-address", "10.0.0.1"),
        (
            "complex-query",
            r#"{"dnfUnits":[{"dnfUnit":[{"attr":"dnn","value":"a"},{"attr":"pgw-ind","value":true,"negative":true}]}]}"#,
        ),
    ];
    // Few of the parameters above are about analytics.
    let analytics: &[(&str, &str)] = &[
        ("tai", TAI_1),
        ("tai", TAI_2),
        ("event-id-list", "NF_LOAD"),
        ("event-id-list", "QOS"),
        ("serving-nf-type", "AMF"),
        ("serving-nf-type", "SMF"),
    ];
    let kind = |one, list, nf_type, base, pieces, parameters| Kind {
        one,
        list,
        nf_type,
        base,
        pieces,
        parameters,
    };
    let people = |supi: &str, gpsi: &str| {
        let mut pieces = vec![json!({"groupId": "g1"}), json!({"groupId": "g2"})];
        for digit in ["1", "2"] {
            pieces.extend([ranges(supi, digit), ranges(gpsi, digit)]);
        }
        pieces
    };
    let with = |mut pieces: Vec<Value>, more: &[Value]| {
        pieces.extend_from_slice(more);
        pieces
    };
    let usual = || people("supiRanges", "gpsiRanges");
    let routing = [
        json!({"routingIndicators": ["1"]}),
        json!({"routingIndicators": ["2"]}),
    ];
    let dnns = [json!({"dnnList": ["a"]}), json!({"dnnList": ["b"]})];
    let areas = [tais("000001"), tais("000002")];
    let nothing = json!({});
    vec![
        kind(
            Some("smfInfo"),
            "smfInfoList",
            "SMF",
            smf(1, "x"),
            with(
                vec![
                    smf(1, "a"),
                    smf(2, "b"),
                    json!({"accessType": ["3GPP_ACCESS"]}),
                    json!({"pgwFqdn": "pgw.example.com"}),
                ],
                &areas,
            ),
            sessions,
        ),
        kind(
            Some("upfInfo"),
            "upfInfoList",
            "UPF",
            upf(1, "x"),
            with(
                vec![
                    upf(1, "a"),
                    upf(2, "b"),
                    json!({"smfServingArea": ["one"]}),
                    json!({"smfServingArea": ["two"]}),
                    json!({"iwkEpsInd": true}),
                    json!({"ipups": true}),
                ],
                &areas,
            ),
            sessions,
        ),
        kind(
            Some("amfInfo"),
            "amfInfoList",
            "AMF",
            json!({"amfSetId": "002", "amfRegionId": "01", "guamiList": []}),
            with(
                vec![json!({"amfSetId": "001"}), json!({"amfRegionId": "02"})],
                &areas,
            ),
            sessions,
        ),
        kind(
            Some("nwdafInfo"),
            "nwdafInfoList",
            "NWDAF",
            nothing.clone(),
            with(
                vec![
                    json!({"eventIds": ["NF_LOAD"]}),
                    json!({"eventIds": ["QOS"]}),
                    json!({"servingNfTypeList": ["AMF"]}),
                    json!({"servingNfTypeList": ["SMF"]}),
                ],
                &areas,
            ),
            analytics,
        ),
        kind(
            None,
            "nsacfInfoList",
            "NSACF",
            json!({"nsacfCapability": {}}),
            with(
                vec![json!({"nsacSaiList": ["one"]}), json!({"nsacSaiList": ["two"]})],
                &areas,
            ),
            sessions,
        ),
        kind(
            None,
            "mbSmfInfoList",
            "MB_SMF",
            nothing.clone(),
            with(
                vec![
                    json!({"sNssaiInfoList": {"s": {"sNssai": {"sst": 1}, "dnnInfoList": [{"dnn": "a"}]}}}),
                    json!({"sNssaiInfoList": {"s": {"sNssai": {"sst": 2}, "dnnInfoList": [{"dnn": "b"}]}}}),
                    json!({"mbsSessionList": {"m": {"mbsSessionId": {"tmgi": {"mbsServiceId": "000001", "plmnId": {"mcc": "001", "mnc": "01"}}}, "mbsAreaSessions": {"1": {}}}}}),
                ],
                &areas,
            ),
            sessions,
        ),
        kind(
            None,
            "mbUpfInfoList",
            "MB_UPF",
            json!({"sNssaiMbUpfInfoList": []}),
            with(
                vec![
                    json!({"sNssaiMbUpfInfoList": [{"sNssai": {"sst": 1}, "dnnUpfInfoList": [{"dnn": "a"}]}]}),
                    json!({"mbSmfServingArea": ["one"]}),
                    json!({"mbSmfServingArea": ["two"]}),
                ],
                &areas,
            ),
            sessions,
        ),
        kind(
            None,
            "easdfInfoList",
            "EASDF",
            nothing.clone(),
            vec![
                slice("sNssaiEasdfInfoList", "dnnEasdfInfoList", 1, "a"),
                slice("sNssaiEasdfInfoList", "dnnEasdfInfoList", 2, "b"),
            ],
            sessions,
        ),
        kind(
            None,
            "pcscfInfoList",
            "PCSCF",
            nothing.clone(),
            with(
                vec![
                    json!({"accessType": ["3GPP_ACCESS"]}),
                    json!({"accessType": ["NON_3GPP_ACCESS"]}),
                    json!({"servedIpv4AddressRanges": [{"start": "10.0.0.1", "end": "10.0.0.9"}]}),
                    json!({"servedIpv4AddressRanges": [{"start": "10.9.0.1", "end": "10.9.0.9"}]}),
                ],
                &dnns,
            ),
            sessions,
        ),
        kind(
            Some("pcfInfo"),
            "pcfInfoList",
            "PCF",
            nothing.clone(),
            with(with(usual(), &dnns), &[json!({"v2xSupportInd": true})]),
            subscribers,
        ),
        kind(
            Some("bsfInfo"),
            "bsfInfoList",
            "BSF",
            nothing.clone(),
            with(
                with(usual(), &dnns),
                &[json!({"ipDomainList": ["d1"]}), json!({"ipDomainList": ["d2"]})],
            ),
            subscribers,
        ),
        kind(
            Some("udmInfo"),
            "udmInfoList",
            "UDM",
            nothing.clone(),
            with(
                with(usual(), &routing),
                &[
                    ranges("externalGroupIdentifiersRanges", "1"),
                    ranges("externalGroupIdentifiersRanges", "2"),
                ],
            ),
            subscribers,
        ),
        kind(
            Some("udrInfo"),
            "udrInfoList",
            "UDR",
            nothing.clone(),
            with(
                usual(),
                &[
                    json!({"supportedDataSets": ["POLICY"]}),
                    json!({"supportedDataSets": ["SUBSCRIPTION"]}),
                ],
            ),
            subscribers,
        ),
        kind(
            Some("ausfInfo"),
            "ausfInfoList",
            "AUSF",
            nothing.clone(),
            with(usual(), &routing),
            subscribers,
        ),
        kind(
            Some("udsfInfo"),
            "udsfInfoList",
            "UDSF",
            nothing.clone(),
            usual(),
            subscribers,
        ),
        kind(
            Some("chfInfo"),
            "chfInfoList",
            "CHF",
            nothing.clone(),
            with(
                people("supiRangeList", "gpsiRangeList"),
                &[
                    json!({"plmnRangeList": [{"start": "00101", "end": "00101"}]}),
                    json!({"plmnRangeList": [{"start": "00102", "end": "00102"}]}),
                ],
            ),
            subscribers,
        ),
        kind(
            None,
            "hssInfoList",
            "HSS",
            nothing.clone(),
            people("imsiRanges", "msisdnRanges"),
            subscribers,
        ),
        kind(
            None,
            "aanfInfoList",
            "AANF",
            nothing.clone(),
            routing.to_vec(),
            subscribers,
        ),
        kind(
            None,
            "tsctsfInfoList",
            "TSCTSF",
            nothing,
            with(usual(), &[ranges("externalGroupIdentifiersRanges", "1")]),
            subscribers,
        ),
    ]
}

/// A generator of the same numbers in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

fn profile(kind: &Kind, one: Option<&Value>, list: &[Value]) -> NfProfile {
    let mut members = json!({
        "nfInstanceId": "4947a69a-f61b-4bc1-b9da-47c9c5d14b64",
        "nfType": kind.nf_type,
        "nfStatus": "REGISTERED",
    });
    if let (Some(name), Some(one)) = (kind.one, one) {
        members[name] = one.clone();
    }
    let list: Map<String, Value> = list
        .iter()
        .enumerate()
        .map(|(at, entry)| (at.to_string(), entry.clone()))
        .collect();
    members[kind.list] = list.into();
    serde_json::from_value(members).unwrap()
}

fn merged(kind: &Kind, numbers: &mut Numbers) -> Value {
    let mut entry = kind.base.clone();
    for _ in 0..=numbers.below(3) {
        let piece = &kind.pieces[numbers.below(kind.pieces.len())];
        for (name, value) in piece.as_object().unwrap() {
            entry[name] = value.clone();
        }
    }
    entry
}

#[test]
fn a_query_matches_exactly_if_it_matches_one_entry_alone() {
    let mut numbers = Numbers(7);
    for kind in kinds() {
        // Of an AANF one parameter is known, so that each by itself decides as all together do.
        let (mut yes, mut no, mut told_apart) = (0, 0, 0);
        for round in 0..30_000 {
            // Kinds with few parameters of their own take longer to show it.
            if round >= 600 && (told_apart > 0 || kind.list == "aanfInfoList") {
                break;
            }
            let one = (kind.one.is_some() && numbers.below(2) == 0).then(|| merged(&kind, &mut numbers));
            let list: Vec<Value> = (0..=numbers.below(3))
                .map(|_| merged(&kind, &mut numbers))
                .collect();
            let mut pairs: Vec<(Cow<'_, str>, Cow<'_, str>)> = vec![
                ("target-nf-type".into(), kind.nf_type.into()),
                ("requester-nf-type".into(), "AMF".into()),
            ];
            let (mut supi, mut gpsi) = (None, None);
            for _ in 0..=numbers.below(3) {
                let (name, value) = kind.parameters[numbers.below(kind.parameters.len())];
                match name {
                    "supi" => supi = Some(value),
                    "gpsi" => gpsi = Some(value),
                    _ if pairs.iter().any(|(known, _)| known == name) => {}
                    _ => pairs.push((name.into(), value.into())),
                }
            }
            let group = [None, Some(None), Some(Some("g1"))][numbers.below(3)];
            let whom = Whom { supi, gpsi, group };
            let query = Query::parse(&pairs).unwrap();
            let whole = profile(&kind, one.as_ref(), &list);
            let alone = one.iter().map(|one| profile(&kind, Some(one), &[]));
            let mut alone = alone.chain(
                list.iter()
                    .map(|entry| profile(&kind, None, std::slice::from_ref(entry))),
            );
            let expected = alone.any(|profile| query.matches(&profile, whom));
            let got = query.matches(&whole, whom);
            assert_eq!(
                got, expected,
                "{}: {pairs:?} {whom:?} of {one:?} and {list:?}",
                kind.list
            );
            assert_eq!(query.mismatch(&whole, whom).is_none(), expected);
            let each_by_itself =
                whom.is_served_by(&whole) && query.tests.iter().all(|test| test.holds(&whole));
            told_apart += usize::from(each_by_itself != got);
            *if got { &mut yes } else { &mut no } += 1;
        }
        assert!(
            yes > 10 && no > 10 && (told_apart > 0 || kind.list == "aanfInfoList"),
            "{}: {yes} {no} {told_apart}",
            kind.list
        );
    }
}

/// Two lists of one profile: some combination of their entries must match.
#[test]
fn lists_of_two_kinds_are_combined() {
    let entry = |dnn: &str, tac: &str| json!({"sNssaiSmfInfoList": [{"sNssai": {"sst": 1}, "dnnSmfInfoList": [{"dnn": dnn}]}], "taiList": [tai(tac)]});
    let both: NfProfile = serde_json::from_value(json!({
        "nfInstanceId": "4947a69a-f61b-4bc1-b9da-47c9c5d14b64", "nfType": "SMF", "nfStatus": "REGISTERED",
        "smfInfo": entry("a", "000001"),
        "smfInfoList": {"2": entry("b", "000002")},
        "pcfInfoList": {"1": {"dnnList": ["a"], "v2xSupportInd": true}, "2": {"dnnList": ["b"]}},
    }))
    .unwrap();
    let matches = |dnn: &str, tai: &str, v2x: &str| {
        let pairs = [
            ("target-nf-type", "SMF"),
            ("requester-nf-type", "AMF"),
            ("dnn", dnn),
            ("tai", tai),
            ("v2x-support-ind", v2x),
        ];
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(name, value)| (Cow::from(*name), Cow::from(*value)))
            .collect();
        Query::parse(&pairs).unwrap().matches(&both, Whom::default())
    };
    assert!(matches("a", TAI_1, "true") && matches("b", TAI_2, "false"));
    assert!(!matches("a", TAI_2, "true") && !matches("a", TAI_1, "false") && !matches("b", TAI_2, "true"));
}

/// However many entries the lists have, the work stays bounded.
#[test]
fn many_entries_of_many_lists_are_judged_within_bounds() {
    let list = |count: usize, entry: Value| -> Map<String, Value> {
        (0..count).map(|at| (at.to_string(), entry.clone())).collect()
    };
    let mut members = json!({"nfInstanceId": "4947a69a-f61b-4bc1-b9da-47c9c5d14b64", "nfType": "PCF", "nfStatus": "REGISTERED"});
    for name in [
        "pcfInfoList",
        "bsfInfoList",
        "udmInfoList",
        "udrInfoList",
        "chfInfoList",
        "ausfInfoList",
    ] {
        members[name] = list(300, json!({"groupId": "g"})).into();
    }
    let profile: NfProfile = serde_json::from_value(members).unwrap();
    let pairs = [
        ("target-nf-type", "PCF"),
        ("requester-nf-type", "AMF"),
        ("group-id-list", "other"),
    ];
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(name, value)| (Cow::from(*name), Cow::from(*value)))
        .collect();
    assert!(!Query::parse(&pairs).unwrap().matches(&profile, Whom::default()));
}
