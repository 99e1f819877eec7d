//! Discovery: who fits, in which order, how it is answered.

use http::StatusCode;
use sbi::Body;
use serde_json::{Value, json};

use crate::support::{id, local, profile, start};

fn escaped(value: &Value) -> String {
    percent_encoding::utf8_percent_encode(&value.to_string(), percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Members of the profile, the query, whether it fits.
type Row = (Value, String, bool);

/// Each parameter with a profile that fits and one that does not.
fn table() -> Vec<Row> {
    let q = |name: &str, value: Value| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={}", escaped(&other)),
    };
    let tai = json!({"plmnId": {"mcc": "001", "mnc": "01"}, "tac": "000001"});
    let other_tai = json!({"plmnId": {"mcc": "001", "mnc": "01"}, "tac": "00000f"});
    let plmn = json!({"mcc": "001", "mnc": "01"});
    let other_plmn = json!({"mcc": "001", "mnc": "02"});
    let guami = json!({"plmnId": plmn, "amfId": "cafe00"});
    let amf =
        json!({"amfInfo": {"amfSetId": "3f8", "amfRegionId": "ca", "guamiList": [guami], "taiList": [tai]}});
    let smf = json!({"smfInfo": {"sNssaiSmfInfoList": [{"sNssai": {"sst": 1}, "dnnSmfInfoList": [{"dnn": "internet"}]}], "taiList": [tai], "pgwFqdn": "pgw.example.org"}});
    let upf = json!({"upfInfo": {"sNssaiUpfInfoList": [{"sNssai": {"sst": 1}, "dnnUpfInfoList": [{"dnn": "ims"}]}], "smfServingArea": ["north"], "iwkEpsInd": true}});
    let udm = json!({"udmInfo": {"groupId": "g1", "routingIndicators": ["0001"], "supiRanges": [{"start": "001010000000000", "end": "001010000000099"}], "gpsiRanges": [{"pattern": "^msisdn-49.*$"}]}});
    let bsf = json!({"bsfInfo": {"ipv4AddressRanges": [{"start": "10.0.0.0", "end": "10.0.0.255"}], "ipDomainList": ["d1"], "dnnList": ["ims"]}});
    let udr = json!({"udrInfo": {"supportedDataSets": ["POLICY"]}});
    let scp = json!({"scpInfo": {"addressDomains": ["example.org"], "servedNfSetIdList": ["set1"]}, "scpDomains": ["dom1"]});
    vec![
        (
            json!({"nfSetIdList": ["set1.a"]}),
            "target-nf-set-id=set1.a".into(),
            true,
        ),
        (
            json!({"nfSetIdList": ["set1.a"]}),
            "target-nf-set-id=set2.a".into(),
            false,
        ),
        (
            json!({"fqdn": "n1.example.org"}),
            "target-nf-fqdn=N1.example.org".into(),
            true,
        ),
        (
            json!({"fqdn": "n1.example.org"}),
            "target-nf-fqdn=n2.example.org".into(),
            false,
        ),
        (
            json!({"plmnList": [plmn]}),
            q("target-plmn-list", json!([plmn])),
            true,
        ),
        (
            json!({"plmnList": [plmn]}),
            q("target-plmn-list", json!([other_plmn])),
            false,
        ),
        (
            json!({"sNssais": [{"sst": 1, "sd": "000001"}]}),
            q("snssais", json!([{"sst": 1, "sd": "000001"}])),
            true,
        ),
        (
            json!({"sNssais": [{"sst": 1, "sd": "000001"}]}),
            q("snssais", json!([{"sst": 2}])),
            false,
        ),
        (json!({"nsiList": ["n1"]}), "nsi-list=n2,n1".into(), true),
        (json!({"nsiList": ["n1"]}), "nsi-list=n2".into(), false),
        (
            json!({"servingScope": ["north"]}),
            "serving-scope=south".into(),
            false,
        ),
        (amf.clone(), q("guami", guami), true),
        (
            amf.clone(),
            q("guami", json!({"plmnId": plmn, "amfId": "cafe01"})),
            false,
        ),
        (amf.clone(), "amf-set-id=3F8&amf-region-id=ca".into(), true),
        (amf.clone(), "amf-set-id=3f9".into(), false),
        (amf.clone(), q("tai", tai), true),
        (amf, q("tai", other_tai.clone()), false),
        (smf.clone(), "dnn=Internet".into(), true),
        (smf.clone(), "dnn=internet.mnc001.mcc001.gprs".into(), true),
        (smf.clone(), "dnn=ims".into(), false),
        (smf.clone(), "pgw=pgw.example.org".into(), true),
        (smf.clone(), "pgw-ind=true".into(), true),
        (smf.clone(), "pgw-ind=false".into(), false),
        (smf, q("tai", other_tai), false),
        (upf.clone(), "smf-serving-area=north".into(), true),
        (upf.clone(), "smf-serving-area=south".into(), false),
        (upf, "upf-iwk-eps-ind=false".into(), false),
        (udm.clone(), "supi=imsi-001010000000042".into(), true),
        (udm.clone(), "supi=imsi-001010000000100".into(), false),
        (udm.clone(), "gpsi=msisdn-4912345".into(), true),
        (udm.clone(), "gpsi=msisdn-3312345".into(), false),
        (udm.clone(), "group-id-list=g2,g1".into(), true),
        (udm.clone(), "group-id-list=g2".into(), false),
        (udm.clone(), "routing-indicator=0001".into(), true),
        (udm, "routing-indicator=0002".into(), false),
        (bsf.clone(), "ue-ipv4-address=10.0.0.7".into(), true),
        (bsf.clone(), "ue-ipv4-address=10.0.1.7".into(), false),
        (bsf.clone(), "ip-domain=d2".into(), false),
        (bsf, "dnn=internet".into(), false),
        (udr.clone(), "data-set=POLICY".into(), true),
        (udr.clone(), "data-set=SUBSCRIPTION".into(), false),
        (udr, "data-set=A_PFD".into(), false),
        (scp.clone(), "scp-domain-list=dom1".into(), true),
        (scp.clone(), "scp-domain-list=dom2".into(), false),
        (scp, "served-nf-set-id=set2".into(), false),
        (json!({"allowedNfTypes": ["SMF"]}), String::new(), false),
        (json!({"allowedNfTypes": ["AMF"]}), String::new(), true),
        (
            json!({"allowedPlmns": [plmn]}),
            q("requester-plmn-list", json!([other_plmn])),
            false,
        ),
        (
            json!({"allowedNfDomains": ["^.*[.]example[.]org$"]}),
            "requester-nf-instance-fqdn=a.example.com".into(),
            false,
        ),
        (
            json!({"allowedNssais": [{"sst": 1}]}),
            q("requester-snssais", json!([{"sst": 2}])),
            false,
        ),
        (json!({}), format!("exclude-nfinst-list={}", id(1)), false),
        (
            json!({"nfSetIdList": ["s"]}),
            "exclude-nfset-list=s".into(),
            false,
        ),
        (json!({}), format!("target-nf-instance-id={}", id(1)), true),
        (json!({}), format!("target-nf-instance-id={}", id(2)), false),
        (json!({}), "service-names=svc".into(), true),
        (json!({}), "service-names=other".into(), false),
        (
            json!({}),
            q(
                "complex-query",
                json!({"cnfUnits": [{"cnfUnit": [{"attr": "service-names", "value": "svc"}, {"attr": "dnn", "value": "x"}]}]}),
            ),
            true,
        ),
        (
            json!({}),
            q(
                "complex-query",
                json!({"dnfUnits": [{"dnfUnit": [{"attr": "service-names", "value": "svc", "negative": true}]}]}),
            ),
            false,
        ),
        (json!({}), "unknown-parameter=is-ignored".into(), true),
    ]
}

#[test]
fn every_parameter_fits_and_does_not() {
    local(async {
        let nrf = start(|_| {});
        for (members, query, fits) in table() {
            // The type does not matter to the parameters; one for all keeps the table short.
            let registered = nrf.put(&profile(&id(1), "UDM", "svc", &members)).await;
            assert!(registered.status.is_success(), "{members}: {}", registered.json);
            let found = nrf
                .found(&format!("target-nf-type=UDM&requester-nf-type=AMF&{query}"))
                .await;
            assert_eq!(!found.is_empty(), fits, "{members} ? {query}");
        }
    });
}

#[test]
fn malformed_parameters_are_named() {
    local(async {
        let nrf = start(|_| {});
        for (query, cause, name) in [
            (
                "requester-nf-type=AMF",
                "MANDATORY_QUERY_PARAM_MISSING",
                "target-nf-type",
            ),
            (
                "target-nf-type=UDM",
                "MANDATORY_QUERY_PARAM_MISSING",
                "requester-nf-type",
            ),
            (
                "target-nf-type=&requester-nf-type=AMF",
                "MANDATORY_QUERY_PARAM_INCORRECT",
                "target-nf-type",
            ),
            (
                "target-nf-type=UDM&requester-nf-type=AMF&snssais=1",
                "OPTIONAL_QUERY_PARAM_INCORRECT",
                "snssais",
            ),
            (
                "target-nf-type=UDM&requester-nf-type=AMF&target-plmn-list=%5B%7B%22mcc%22%3A%221%22%7D%5D",
                "OPTIONAL_QUERY_PARAM_INCORRECT",
                "target-plmn-list",
            ),
            (
                "target-nf-type=UDM&requester-nf-type=AMF&hnrf-uri=nowhere",
                "OPTIONAL_QUERY_PARAM_INCORRECT",
                "hnrf-uri",
            ),
            (
                "target-nf-type=UDM&requester-nf-type=AMF&ue-ipv4-address=",
                "OPTIONAL_QUERY_PARAM_INCORRECT",
                "ue-ipv4-address",
            ),
            (
                "target-nf-type=UDM&requester-nf-type=AMF&limit=0",
                "OPTIONAL_QUERY_PARAM_INCORRECT",
                "limit",
            ),
            (
                "target-nf-type=UDM&requester-nf-type=AMF&dnn=a&dnn=b",
                "OPTIONAL_QUERY_PARAM_INCORRECT",
                "dnn",
            ),
            (
                "target-nf-type=UDM&requester-nf-type=AMF&complex-query=%7B%7D",
                "OPTIONAL_QUERY_PARAM_INCORRECT",
                "complex-query",
            ),
            (
                "target-nf-type=UDM&requester-nf-type=AMF&supi=",
                "OPTIONAL_QUERY_PARAM_INCORRECT",
                "supi",
            ),
        ] {
            let got = nrf.discover(query).await;
            assert_eq!(
                (got.status, got.cause()),
                (StatusCode::BAD_REQUEST, cause),
                "{query}"
            );
            assert_eq!(
                got.json["invalidParams"][0]["param"],
                format!("query {name}"),
                "{query}"
            );
        }
    });
}

#[test]
fn order_limit_and_what_is_shown() {
    local(async {
        let nrf = start(|config| config.discovery.max_profiles = 3);
        for (number, priority, locality, load) in [
            (1, 5, "east", 10),
            (2, 1, "west", 10),
            (3, 1, "west", 5),
            (4, 9, "east", 0),
        ] {
            let more =
                json!({"priority": priority, "locality": locality, "load": load, "allowedNfTypes": ["AMF"]});
            nrf.put(&profile(&id(number), "UDM", "nudm-sdm", &more)).await;
        }
        let base = "target-nf-type=UDM&requester-nf-type=AMF";
        assert_eq!(nrf.found(base).await, [id(3), id(2), id(1)]);
        assert_eq!(
            nrf.found(&format!("{base}&preferred-locality=east")).await,
            [id(1), id(4), id(3)]
        );
        assert_eq!(nrf.found(&format!("{base}&limit=1")).await, [id(3)]);
        assert_eq!(
            nrf.found(&format!("{base}&preferred-nf-instances={}", id(4)))
                .await[0],
            id(4)
        );

        let answer = nrf.discover(base).await;
        assert_eq!(
            (&answer.json["validityPeriod"], &answer.json["numNfInstComplete"]),
            (&json!(60), &json!(4))
        );
        let shown = &answer.json["nfInstances"][0];
        assert!(
            shown.get("allowedNfTypes").is_none(),
            "who may discover is not shown"
        );
        assert_eq!(shown["vendorExtra"]["kept"][1], json!(2.5));
        let etag = answer.headers["etag"].to_str().unwrap().to_owned();
        let again = http::Request::get(format!("/nnrf-disc/v1/nf-instances?{base}"))
            .header("if-none-match", &etag)
            .body(Body::empty())
            .unwrap();
        assert_eq!(nrf.send(again).await.status, StatusCode::NOT_MODIFIED);
        // A change of load makes another answer.
        nrf.patch(&id(3), json!([{"op": "replace", "path": "/load", "value": 90}]))
            .await;
        assert_eq!(nrf.found(base).await, [id(2), id(3), id(1)]);
    });
}

/// In a large registry an answer from what a query is known to match is that of a search through all: after changes of
/// load, of what is asked for, and of which NFs there are.
#[test]
fn a_large_type_is_not_searched_again_and_answers_alike() {
    local(async {
        let nrf = start(|config| config.discovery.max_profiles = 400);
        let group = |number: u32, group: u32, load: u32| {
            let more = json!({"load": load, "udmInfo": {"groupId": format!("g{group}")}});
            profile(&id(number), "UDM", "nudm-sdm", &more)
        };
        for number in 0..320 {
            nrf.put(&group(number, number % 80, 5)).await;
        }
        let query = "target-nf-type=UDM&requester-nf-type=AMF&group-id-list=g7";
        // As the first discovery of another query would answer.
        let mut fresh = 0;
        let mut check = async |expected: &[u32]| {
            fresh += 1;
            let expected: Vec<String> = expected.iter().map(|number| id(*number)).collect();
            assert_eq!(nrf.found(query).await, expected);
            assert_eq!(nrf.found(&format!("{query}&x-fresh={fresh}")).await, expected);
        };
        check(&[7, 87, 167, 247]).await;
        nrf.patch(&id(167), json!([{"op": "replace", "path": "/load", "value": 1}]))
            .await;
        check(&[167, 7, 87, 247]).await;
        nrf.put(&group(1, 7, 0)).await;
        check(&[1, 167, 7, 87, 247]).await;
        nrf.put(&group(87, 9, 0)).await;
        let gone = format!("/nnrf-nfm/v1/nf-instances/{}", id(7));
        nrf.ask(http::Method::DELETE, &gone, "", "").await;
        check(&[1, 167, 247]).await;
        // More changes than are known one by one.
        for number in 0..100 {
            nrf.put(&group(400 + number, if number % 50 == 0 { 7 } else { 3 }, 9))
                .await;
        }
        check(&[1, 167, 247, 400, 450]).await;
        // A query that matches nearly all.
        let all = nrf
            .discover("target-nf-type=UDM&requester-nf-type=AMF&limit=400&max-payload-size=2000")
            .await;
        assert_eq!(all.json["nfInstances"].as_array().unwrap().len(), 400);
    });
}
