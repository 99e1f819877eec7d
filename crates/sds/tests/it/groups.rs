//! Groups: the numbers of one subscriber, changed together.

use serde_json::{Value, json};

use crate::support::{imsi, local, set, start, start_in};

#[test]
fn numbers_of_a_group_are_changed_together() {
    let sds = start(|_| {});
    local(async {
        let api = &sds.api;
        assert_eq!(api.get("/groups/alice").await.status(), 404);
        let group = json!({"imsis": [imsi(1), imsi(2)], "msisdns": ["491"], "destinations": "hss1"});
        assert_eq!(api.put("/groups/alice", &group).await.offset(), 1);
        let got = api.get("/groups/alice").await;
        let records = json!([set(1, "hss1"), set(2, "hss1"), {"msisdn": "491", "destinations": "hss1"}]);
        assert_eq!(
            got.json(),
            &json!({"group": "alice", "records": records, "offset": 1})
        );
        // A number that the group has no more is removed, in the same transaction.
        let group = json!({"imsis": [imsi(2), imsi(3)], "msisdns": ["491"], "destinations": "hss2"});
        assert_eq!(api.put("/groups/alice", &group).await.offset(), 2);
        let transaction = api.journal(1).await.remove(0);
        let changes = json!([{"imsi": imsi(1), "destinations": null}, set(2, "hss2"), set(3, "hss2"),
            {"msisdn": "491", "destinations": "hss2"}]);
        assert_eq!(transaction, json!({"offset": 2, "changes": changes}));
        // A number is in one group.
        let other = json!({"imsis": [imsi(3), imsi(4)], "destinations": "hss3"});
        let refused = api.put("/groups/bob", &other).await;
        assert_eq!(refused.status(), 409);
        let detail = refused.json()["detail"].to_string();
        assert!(
            detail.contains(&format!("imsi,{} belongs to group alice", imsi(3))),
            "{detail}"
        );
        assert_eq!(
            api.find(&format!("imsi/{}", imsi(4))).await,
            None,
            "nothing of it was written"
        );
    });
    let sds = start_in(sds.stop(), |_| {});
    local(async {
        let api = &sds.api;
        assert_eq!(api.delete("/groups/alice").await.offset(), 3);
        assert_eq!(api.find(&format!("imsi/{}", imsi(2))).await, None);
        assert_eq!(api.delete("/groups/alice").await.status(), 404);
        let other = json!({"imsis": [imsi(3)], "destinations": "hss3"});
        assert_eq!(api.put("/groups/bob", &other).await.offset(), 4);
    });
    sds.stop();
}

#[test]
fn groups_are_of_the_store_and_in_no_checkpoint() {
    let sds = start(|_| {});
    let text = local(async {
        let group = json!({"imsis": [imsi(1), imsi(2)], "destinations": "hss1"});
        sds.api.put("/groups/alice", &group).await.offset();
        sds.api.get("/checkpoint").await.text
    });
    let directory = sds.stop();
    // Beside its store a server that takes a checkpoint keeps them.
    std::fs::write(directory.path().join("load.csv"), &text).unwrap();
    let sds = start_in(directory, |_| {});
    assert_eq!(local(sds.api.get("/groups/alice")).status(), 200);
    sds.stop();
    // With an empty store there are none, and their numbers stay.
    let empty = tempfile::tempdir().unwrap();
    std::fs::write(empty.path().join("load.csv"), &text).unwrap();
    let sds = start_in(empty, |_| {});
    local(async {
        let api = &sds.api;
        let number = |at| format!("imsi/{}", imsi(at));
        assert_eq!(api.get("/groups/alice").await.status(), 404);
        assert_eq!(api.find(&number(1)).await.as_deref(), Some("hss1"));
        // Provisioned again, it has the numbers that it is given; one that it had is removed by itself.
        let group = json!({"imsis": [imsi(2)], "destinations": "hss2"});
        api.put("/groups/alice", &group).await.offset();
        assert_eq!(api.find(&number(2)).await.as_deref(), Some("hss2"));
        assert_eq!(api.find(&number(1)).await.as_deref(), Some("hss1"));
        api.delete(&format!("/subscribers/{}", number(1))).await.offset();
        assert_eq!(api.find(&number(1)).await, None);
    });
    sds.stop();
}

#[test]
fn what_is_not_a_group_is_refused() {
    let sds = start(|_| {});
    local(async {
        let nine: Vec<Value> = (0..9).map(|number| imsi(number).into()).collect();
        for (group, reason) in [
            (json!([]), "object"),
            (json!({"imsis": nine, "destinations": "a"}), "at most 8"),
            (json!({"imsis": [imsi(1), imsi(1)], "destinations": "a"}), "twice"),
            (json!({"imsis": ["1A"], "destinations": "a"}), "not a digit"),
            (json!({"imsis": [1], "destinations": "a"}), "strings"),
            (json!({"imsis": [imsi(1)]}), "destinations"),
            (json!({"imsis": [imsi(1)], "destinations": "a b"}), "destinations"),
            (json!({"destinations": "a"}), "no change"),
            (
                json!({"imsis": [imsi(1)], "color": "red", "destinations": "a"}),
                "color",
            ),
        ] {
            let got = sds.api.put("/groups/g", &group).await;
            assert_eq!(got.status(), 400, "{group}");
            assert!(got.detail().contains(reason), "{}", got.text);
        }
        let long = format!("/groups/{}", "x".repeat(65));
        assert_eq!(sds.api.get(&long).await.status(), 400);
        assert_eq!(sds.api.journal(0).await.len(), 0);
    });
    sds.stop();
}
