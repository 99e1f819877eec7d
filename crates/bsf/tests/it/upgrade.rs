//! The directory of a release that kept the bindings of MBS sessions under other keys.

use http::StatusCode;
use serde_json::{Value, json};
use store::{
    Batch, DecodeError, Index, IndexKeys, IndexSchema, Key, Record, Scan, Store, TableDef, TableSchema,
};

use crate::format_one::make_older;
use crate::spellings::mbs;
use crate::support::{binding, config, local, start};

/// The binding of an MBS session as that release wrote it: one key, of the identity as it was spelled.
struct OldBinding {
    id: [u8; 16],
    value: Value,
}

impl Record for OldBinding {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_mbs_binding",
        indexes: &[IndexSchema::unique("session")],
        by_modified: true,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.id)
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Index(0), self.value["mbsSessionId"].to_string().as_bytes());
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.value.to_string().as_bytes());
    }

    fn decode(key: &[u8], _: &[u8]) -> Result<Self, DecodeError> {
        let id = key
            .try_into()
            .map_err(|_| DecodeError("a key of 16 bytes".to_owned()))?;
        // What it held before is of the later release.
        Ok(OldBinding { id, value: json!({}) })
    }
}

fn session(service: &str) -> Value {
    let address = |text: &str| json!({"ipv6Addr": text});
    json!({
        "tmgi": {"mbsServiceId": service, "plmnId": {"mcc": "001", "mnc": "01"}},
        "ssm": {"sourceIpAddr": address("2001:db8:0:0:0:0:0:1"), "destIpAddr": address(&format!("ff3e:0:0:0:0:0:0:{}", &service[4..]))}
    })
}

#[test]
fn a_directory_of_an_earlier_release_keeps_every_record_and_finds_it_by_the_new_keys() {
    local(async {
        let mut bsf = start(|_| {});
        let directory = bsf.directory.path().to_owned();
        for number in 0..30 {
            let more = json!({"ipv4Addr": format!("10.0.0.{number}"), "supi": format!("imsi-{number:015}")});
            bsf.path(&bsf.post("pcfBindings", &binding(&more)).await);
        }
        let ue = json!({"supi": "imsi-001010000000001", "pcfForUeFqdn": "pcf1.example.org"});
        bsf.path(&bsf.post("pcf-ue-bindings", &ue).await);
        bsf.stop();

        // The earlier release writes: the list of its indexes, and two sessions.
        let store = Store::open(&config(&directory).store, &[TableDef::of::<OldBinding>()])
            .await
            .unwrap();
        let table = store.table::<OldBinding>().unwrap();
        for (number, service) in (1u8..).zip(["0000a1", "0000a2"]) {
            let body = json!({"mbsSessionId": session(service), "pcfFqdn": "pcf1.example.org"});
            let mut batch = Batch::default();
            batch.insert(
                &table,
                &OldBinding {
                    id: [number; 16],
                    value: body,
                },
            );
            store.commit(batch).await.unwrap();
        }
        assert_eq!(table.scan(&Scan::all(10)).await.unwrap().records.len(), 2);
        drop(table);
        store.close().await;
        make_older(&directory);
        let catalogue = std::fs::read_to_string(directory.join("store.json")).unwrap();
        assert!(catalogue.contains("\"session\"") && !catalogue.contains("mbs_session"));

        for _ in 0..2 {
            let again = bsf::start(config(&directory)).unwrap();
            bsf.origin = format!("http://{}", again.addresses()[0]).parse().unwrap();
            bsf.running = Some(again);
            for number in 0..30 {
                let found = bsf.find(&format!("ipv4Addr=10.0.0.{number}")).await;
                assert_eq!(found.status, StatusCode::OK, "session {number}");
            }
            let found = bsf
                .get("/nbsf-management/v1/pcf-ue-bindings?supi=imsi-001010000000001")
                .await;
            assert_eq!(found.json.as_array().map(Vec::len), Some(1));
            for service in ["0000a1", "0000a2"] {
                let group = json!({"ipv6Addr": format!("FF3E::{}", &service[4..])});
                let spellings = [
                    session(service),
                    json!({"tmgi": session(&service.to_ascii_uppercase())["tmgi"]}),
                    json!({"ssm": {"sourceIpAddr": {"ipv6Addr": "2001:DB8::1"}, "destIpAddr": group}}),
                ];
                for spelling in spellings {
                    let found = mbs(&bsf, &spelling).await;
                    assert_eq!(found.json.as_array().map(Vec::len), Some(1), "{spelling}");
                    let body = json!({"mbsSessionId": spelling, "pcfFqdn": "pcf2.example.org"});
                    let refused = bsf.post("pcf-mbs-bindings", &body).await;
                    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{spelling}");
                }
            }
            bsf.stop();
        }
    });
}
