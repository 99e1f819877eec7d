//! Non-IP data for groups of devices.

use diameter::proto::MessageMut;
use diameter::proto::kind::TimeValue;
use diameter::proto::known::{self, application, command};
use http::StatusCode;
use serde_json::{Value, json};
use testpeer::sbi::{Got, Seen};

use crate::judge;
use crate::network::{ESTABLISH, Node, SUCCESS, result_of};
use crate::process::Process;
use crate::support::{
    Api, CONFIGURATIONS, config, configuration, data, local, notified, path_of, server, start, until,
};

const GROUP: &str = "meters@iot.example.org";
const RESULTS: &str = "GmdNiddDownlinkDataDeliveryNotification";

/// The IMSI and the External Identifier of a member.
fn member(number: u8) -> (String, String) {
    (
        format!("00101000000001{number}"),
        format!("meter-{number}@iot.example.org"),
    )
}

fn group(mut body: Value) -> Value {
    body.as_object_mut().unwrap().remove("externalId");
    body["externalGroupId"] = json!(GROUP);
    body
}

/// Authorizes this many members of the group of the next NIR until this time.
async fn authorize(hss: &mut Node, members: u8, until: Option<TimeValue>) {
    let nir = hss.expect(command::NIDD_INFORMATION).await;
    let user = nir.require(known::USER_IDENTIFIER).unwrap();
    assert_eq!(user.clone().get(known::EXTERNAL_IDENTIFIER), Ok(Some(GROUP)));
    assert_eq!(user.get(known::TYPE_OF_EXTERNAL_IDENTIFIER), Ok(Some(1)));
    hss.answer(&nir, |answer| {
        for (imsi, id) in (1..=members).map(member) {
            answer.group(known::NIDD_AUTHORIZATION_RESPONSE, |group| {
                group
                    .put(known::USER_NAME, &*imsi)
                    .put(known::EXTERNAL_IDENTIFIER, &*id)
                    .maybe(known::GRANTED_VALIDITY_TIME, until);
            });
        }
    })
    .await;
}

async fn configured(api: &Api, hss: &mut Node, members: u8, body: &Value) -> (Got, String) {
    let (got, ()) = tokio::join!(api.post(CONFIGURATIONS, body), authorize(hss, members, None));
    let path = path_of(&got);
    judge::nidd("NiddConfiguration", &got.json);
    (got, format!("{path}/downlink-data-deliveries"))
}

/// Sends a CMR of a member that connects; it is answered with data where some waits.
async fn connect(mme: &Node, number: u8) -> MessageMut {
    let (imsi, _) = member(number);
    let which = (command::CONNECTION_MANAGEMENT, application::T6A);
    mme.request_of((&imsi, number), which, number.into(), |out| {
        out.put(known::CONNECTION_ACTION, ESTABLISH);
    })
}

/// Takes data for this many members, which it acknowledges.
async fn take(mme: &mut Node, count: usize) -> Vec<String> {
    let mut took = Vec::new();
    while took.len() < count {
        let tdr = mme.expect(command::MT_DATA).await;
        assert_eq!(tdr.get(known::NON_IP_DATA), Ok(Some(&b"hello"[..])));
        let user = tdr.require(known::USER_IDENTIFIER).unwrap();
        took.push(user.get(known::USER_NAME).unwrap().unwrap().to_owned());
        mme.answer(&tdr, |_| {}).await;
    }
    took.sort();
    took
}

fn results(notices: &[Value]) -> Vec<(String, String)> {
    let all = notices
        .iter()
        .filter_map(|one| one["gmdResults"].as_array())
        .flatten();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut all: Vec<_> = all
        .map(|one| (text(&one["externalId"]), text(&one["deliveryStatus"])))
        .collect();
    all.sort();
    all
}

#[test]
fn data_for_a_group_is_sent_to_each_member_and_notified_of_together() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let body = group(configuration(&server.root(), &json!({"supportedFeatures": "1"})));
        let (got, downlinks) = configured(&scef.api, &mut hss, 3, &body).await;
        assert_eq!(got.json["supportedFeatures"], "1", "GroupMessageDelivery");
        assert_eq!(scef.api.get(CONFIGURATIONS).await.json, json!([got.json]));
        for number in 1..=2 {
            let request = connect(&mme, number).await;
            assert_eq!(result_of(&mme.ask(&request).await), SUCCESS);
        }
        // The third one has no connection, and gets nothing that may not wait.
        let sent = group(data("aGVsbG8=", &json!({"maximumLatency": 0})));
        let (posted, took) = tokio::join!(scef.api.post(&downlinks, &sent), take(&mut mme, 2));
        let path = path_of(&posted);
        judge::nidd("NiddDownlinkDataTransfer", &posted.json);
        assert_eq!(took, [member(1).0, member(2).0]);
        let seen = notified(&server, 1).await;
        judge::nidd(RESULTS, &seen[0]);
        assert_eq!(seen[0]["niddDownlinkDataTransfer"], posted.json["self"]);
        let (done, failed) = ("SUCCESS_NEXT_HOP_UNACKNOWLEDGED".to_owned(), "FAILURE".to_owned());
        let expected = [
            (member(1).1, done.clone()),
            (member(2).1, done),
            (member(3).1, failed),
        ];
        assert_eq!(results(&seen), expected);
        until("its end", async || {
            scef.api.get(&path).await.cause() == "ALREADY_DELIVERED"
        })
        .await;

        // What a member sends names it, and the configuration of the group.
        let which = (command::MO_DATA, application::T6A);
        let uplink = mme.request_of((&member(2).0, 2), which, 20, |out| {
            out.put(known::NON_IP_DATA, &b"up"[..]);
        });
        assert_eq!(result_of(&mme.ask(&uplink).await), SUCCESS);
        let seen = notified(&server, 2).await;
        judge::nidd("NiddUplinkDataNotification", &seen[1]);
        let expected =
            json!({"niddConfiguration": got.json["self"], "externalId": member(2).1, "data": "dXA="});
        assert_eq!(seen[1], expected);

        // The end of the group is that of its members.
        let ended = scef
            .api
            .delete(downlinks.trim_end_matches("/downlink-data-deliveries"))
            .await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        for _ in 0..2 {
            let release = mme.expect(command::CONNECTION_MANAGEMENT).await;
            assert_eq!(release.get(known::CONNECTION_ACTION), Ok(Some(1)));
            mme.answer(&release, |_| {}).await;
        }
        let again = connect(&mme, 1).await;
        assert_eq!(result_of(&mme.ask(&again).await), (known::VENDOR_3GPP, 5652));
        assert_eq!(scef.api.get(CONFIGURATIONS).await.json, json!([]));
        scef.stop();
    });
}

#[test]
fn data_for_a_group_waits_for_members_over_a_crash() {
    local(async {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(directory.path());
        config.api_root = "http://scef.example.org".to_owned();
        let server = server();
        let scef = Process::start(&config);
        let mut hss = Node::hss(scef.diameter).await;
        let mut body = group(configuration(&server.root(), &json!({})));
        body["niddDownlinkDataTransfers"] = json!([group(data("aGVsbG8=", &json!({})))]);
        let (got, downlinks) = configured(&scef.api, &mut hss, 2, &body).await;
        let first = &got.json["niddDownlinkDataTransfers"][0];
        judge::nidd("NiddDownlinkDataTransfer", first);
        let more = scef
            .api
            .post(&downlinks, group(data("aGVsbG8=", &json!({}))))
            .await;
        let more = path_of(&more);
        assert_eq!(scef.api.get(&downlinks).await.json.as_array().unwrap().len(), 2);
        let changed = scef.api.put(&more, &group(data("AAAA", &json!({})))).await;
        assert_eq!(
            (changed.status, changed.cause()),
            (StatusCode::CONFLICT, "SENDING")
        );
        assert_eq!(scef.api.delete(&more).await.status, StatusCode::NO_CONTENT);
        scef.kill();

        let scef = Process::start(&config);
        let mut mme = Node::mme(scef.diameter).await;
        for number in 1..=2 {
            let request = connect(&mme, number).await;
            mme.0.send(request.as_bytes()).await;
            let mut took = false;
            let mut answered = false;
            while !took || !answered {
                let message = mme.0.next().await.unwrap();
                match message.is_request() {
                    true => mme.answer(&message, |_| {}).await,
                    false => assert_eq!(result_of(&message), SUCCESS),
                }
                took |= message.is_request();
                answered |= !message.is_request();
            }
        }
        let all = || server.seen().iter().map(Seen::json).collect::<Vec<_>>();
        until("both results", async || results(&all()).len() == 2).await;
        assert_eq!(
            results(&all())
                .iter()
                .map(|(id, _)| id.clone())
                .collect::<Vec<_>>(),
            [member(1).1, member(2).1]
        );
        until("the end of both", async || {
            scef.api.get(&downlinks).await.json == json!([])
        })
        .await;
    });
}

#[test]
fn a_group_is_configured_once_and_its_members_once() {
    local(async {
        let (scef, server) = (start(|config| config.limits.configurations = 2), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let body = group(configuration(&server.root(), &json!({})));
        let (got, downlinks) = configured(&scef.api, &mut hss, 3, &body).await;
        let (again, ()) = tokio::join!(scef.api.post(CONFIGURATIONS, &body), authorize(&mut hss, 3, None));
        assert_eq!(
            (again.status, again.cause()),
            (StatusCode::FORBIDDEN, "OPERATION_PROHIBITED")
        );
        // The quota does not count members; data for one is not data for the group.
        let single = scef.api.post(&downlinks, data("AAAA", &json!({}))).await;
        assert_eq!(single.cause(), "MANDATORY_IE_INCORRECT", "{}", single.json);
        let patch = json!({"pdnEstablishmentOption": "INDICATE_ERROR"});
        let path = downlinks.trim_end_matches("/downlink-data-deliveries");
        let changed = scef.api.patch(path, &patch).await;
        assert_eq!(changed.status, StatusCode::OK, "{}", changed.json);
        let sent = scef.api.post(&downlinks, group(data("AAAA", &json!({})))).await;
        path_of(&sent);
        let seen = notified(&server, 1).await;
        assert_eq!(results(&seen).len(), 3);
        assert!(
            results(&seen).iter().all(|(_, status)| status == "FAILURE"),
            "{seen:?}"
        );
        assert_eq!(scef.api.get(path).await.json["self"], got.json["self"]);
        let mut other = group(configuration(&server.root(), &json!({})));
        other["externalGroupId"] = json!("others@iot.example.org");
        let answer = async {
            let nir = hss.expect(command::NIDD_INFORMATION).await;
            hss.answer(&nir, |_| {}).await;
        };
        let (none, ()) = tokio::join!(scef.api.post(CONFIGURATIONS, &other), answer);
        assert_eq!(
            none.status,
            StatusCode::INTERNAL_SERVER_ERROR,
            "a group without members"
        );
        scef.stop();
    });
}
