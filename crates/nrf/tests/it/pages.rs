//! What operators read of a running NRF: pages of its admin endpoint.

use serde_json::{Value, json};

use crate::support::{Nrf, id, local, profile, start, until};

/// What `why` says of each profile that it drops.
fn dropped(page: &Value) -> Vec<(String, String)> {
    let rows = page["dropped"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut rows: Vec<_> = rows
        .map(|row| (text(&row["nfInstanceId"]), text(&row["by"])))
        .collect();
    rows.sort();
    rows
}

/// The page runs the selection of a discovery: it drops what that drops, and says by which parameter.
#[test]
fn why_names_the_parameter_that_drops_each_profile() {
    local(async {
        let nrf = start(|config| {
            config.slf.target_types = vec!["UDM".into()];
            config.discovery.max_profiles = 2;
        });
        let ranges = json!({"udmInfo": {"supiRanges": [{"start": "1", "end": "5"}]}});
        let more = [
            json!({"priority": 1}),
            json!({"nfStatus": "SUSPENDED"}),
            json!({"nfStatus": "UNDISCOVERABLE"}),
            json!({"sNssais": [{"sst": 9}]}),
            json!({"allowedNfTypes": ["SMF"]}),
            json!({"plmnList": [{"mcc": "001", "mnc": "02"}]}),
            ranges,
            json!({"priority": 2}),
            json!({"priority": 3}),
            json!({"udmInfo": {"groupId": "g2"}}),
        ];
        for (number, more) in (1..).zip(&more) {
            nrf.put(&profile(&id(number), "UDM", "nudm-sdm", more)).await;
        }
        nrf.put(&profile(&id(20), "UDM", "nudm-ueau", &json!({}))).await;
        let query = "target-nf-type=UDM&requester-nf-type=AMF&service-names=nudm-sdm&supi=imsi-9\
            &snssais=%5B%7B%22sst%22%3A1%7D%5D&target-plmn-list=%5B%7B%22mcc%22%3A%22001%22%2C%22mnc%22%3A%2201%22%7D%5D";
        let why = nrf.shown(&format!("/nrf/why?{query}&slf-group=g1&x-own=1")).await;
        let expected = [
            (2, "nfStatus"),
            (3, "nfStatus"),
            (4, "snssais"),
            (5, "requester-*"),
            (6, "target-plmn-list"),
            (7, "supi"),
            (9, "discovery.maxProfiles"),
            (10, "supi"),
            (20, "service-names"),
        ];
        let expected = expected.map(|(number, by)| (id(number), by.to_owned()));
        assert_eq!(dropped(&why), expected, "{why:#}");
        let answered = why["answered"].as_array().unwrap();
        let answered: Vec<&Value> = answered.iter().map(|one| &one["nfInstanceId"]).collect();
        assert_eq!(answered, [&id(1), &id(8)]);
        assert_eq!(
            (&why["registered"], &why["droppedBy"]["supi"]),
            (&json!(11), &json!(2))
        );
        assert!(
            why["ignoredParameters"]
                .as_array()
                .unwrap()
                .contains(&json!("x-own"))
        );
        // The discovery itself finds the same.
        assert_eq!(
            nrf.found(&query.replace("supi=imsi-9&", "").replace("&supi=imsi-9", ""))
                .await,
            [id(1), id(8)]
        );

        // Without an answer of a location function it says what would be asked.
        let open = nrf.shown(&format!("/nrf/why?{query}")).await;
        assert!(open["group"].as_str().unwrap().contains("slf-group="), "{open:#}");
        let nothing = nrf
            .shown("/nrf/why?target-nf-type=SMF&requester-nf-type=AMF")
            .await;
        assert_eq!(
            nothing["noProfileMatchInfo"]["reason"],
            "QUERY_PARAMS_COMBINATION_NO_MATCH"
        );
        let (status, text) = nrf.page("/nrf/why?target-nf-type=SMF").await;
        assert!(
            status == 400 && text.contains("requester-nf-type"),
            "{status} {text}"
        );
    });
}

#[test]
fn why_says_where_a_query_goes() {
    local(async {
        let nrf = start(|config| {
            config.forwarding.own_plmns = vec!["001-01".into()];
            config.forwarding.rules = vec![nrf::config::ForwardingRule {
                nf_types: vec!["UDM".into()],
                targets: vec!["http://127.0.0.1:1".into()],
                when_empty: true,
                ..Default::default()
            }];
        });
        let why = nrf
            .shown("/nrf/why?target-nf-type=UDM&requester-nf-type=AMF")
            .await;
        assert_eq!(
            why["forwarded"],
            json!({"to": ["http://127.0.0.1:1"], "through": null, "onlyWhenEmpty": true, "homeNetwork": false})
        );
        let plmn = "%5B%7B%22mcc%22%3A%22262%22%2C%22mnc%22%3A%2202%22%7D%5D";
        let why = nrf
            .shown(&format!(
                "/nrf/why?target-nf-type=UDM&requester-nf-type=AMF&target-plmn-list={plmn}"
            ))
            .await;
        assert_eq!(
            why["forwarded"]["to"],
            json!(["https://nrf.5gc.mnc002.mcc262.3gppnetwork.org"])
        );
    });
}

async fn subscribe(nrf: &Nrf, body: &Value) -> String {
    let path = "/nnrf-nfm/v1/subscriptions";
    let got = nrf
        .ask(http::Method::POST, path, "application/json", body.to_string())
        .await;
    assert_eq!(got.status, http::StatusCode::CREATED, "{}", got.json);
    got.json["subscriptionId"].as_str().unwrap().to_owned()
}

#[test]
fn subscriptions_growth_and_location_functions_are_shown() {
    local(async {
        let east = start(|_| {});
        east.put(&profile(&id(1), "UDM", "nudm-sdm", &json!({}))).await;
        let nrf = start(|config| {
            config.growth.interval = settings::Period::from_millis(20);
            let sets = [
                ("east", east.origin.to_string()),
                ("gone", "http://127.0.0.1:1".to_owned()),
            ];
            config.growth.sets = sets
                .map(|(name, root)| nrf::config::GrowthSet {
                    name: name.to_owned(),
                    nrfs: vec![root],
                })
                .into();
            config.slf.target_types = vec!["UDM".into()];
            config.slf.scps = vec!["http://127.0.0.1:1".into()];
            config.slf.scp_health_path = "/health".into();
            config.slf.scp_health_interval = settings::Period::from_millis(20);
        });
        let first = subscribe(
            &nrf,
            &json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "reqNfInstanceId": id(7),
                "reqNfType": "AMF", "subscrCond": {"nfType": "UDM"}}),
        )
        .await;
        let rows = nrf.shown("/nrf/subscriptions").await;
        assert_eq!(rows.as_array().unwrap().len(), 1);
        let row = &rows[0];
        assert_eq!(
            (
                &row["subscriptionId"],
                &row["reqNfInstanceId"],
                &row["notifiedHere"]
            ),
            (&json!(first), &json!(id(7)), &json!(true))
        );
        assert_eq!(row["condition"], r#"{"nfType":"UDM"}"#);

        until(async || nrf.shown("/nrf/growth").await[0]["profiles"] == 1).await;
        until(async || nrf.shown("/nrf/growth").await[1]["failure"].is_string()).await;
        let growth = nrf.shown("/nrf/growth").await;
        assert_eq!(growth[0]["answeredBy"], east.origin.to_string());
        assert!(
            growth[0]["failure"].is_null() && growth[1]["answeredBy"].is_null(),
            "{growth:#}"
        );

        let udr = profile(&id(3), "UDR", "nudr-group-id-map", &json!({"priority": 4}));
        nrf.put(&udr).await;
        until(async || nrf.shown("/nrf/slf").await[1]["downAtWorkers"] == 1).await;
        let slf = nrf.shown("/nrf/slf").await;
        assert_eq!(
            slf[0],
            json!({"kind": "SLF", "apiRoot": "http://127.0.0.1:8080", "source": "registered", "priority": 4,
                "capacity": 1})
        );
        assert_eq!(slf[1]["apiRoot"], "http://127.0.0.1:1");
    });
}
