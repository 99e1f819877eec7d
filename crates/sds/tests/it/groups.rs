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
