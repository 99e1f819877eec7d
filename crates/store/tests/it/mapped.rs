//! A table with columns of its own: the binding schema of the guide, read by somebody who knows only SQL.

use std::process::Command;

use store::{
    Batch, Condition, Config, DecodeError, Index, IndexKeys, IndexSchema, Key, Record, Scan, SqlColumn,
    SqlIndex, SqlMapping, SqlValue, Store, TableDef, TableSchema,
};

/// A binding: its identity, address and subscriber, and the document.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Binding {
    id: [u8; 16],
    ipv4: Option<[u8; 4]>,
    supi: Option<String>,
    json: String,
}

fn dotted(key: &[u8]) -> SqlValue {
    SqlValue::Text(key.iter().map(u8::to_string).collect::<Vec<_>>().join("."))
}

fn text(key: &[u8]) -> SqlValue {
    SqlValue::Text(String::from_utf8_lossy(key).into_owned())
}

const fn index(name: &'static str, key_name: &'static str, to_sql: fn(&[u8]) -> SqlValue) -> SqlIndex {
    SqlIndex {
        column: SqlColumn {
            name,
            sql_type: "varchar(64)",
        },
        key_name,
        to_sql,
    }
}

static MAPPING: SqlMapping = SqlMapping {
    id: SqlColumn {
        name: "binding_id",
        sql_type: "binary(16)",
    },
    indexes: &[
        index("ipv4_addr", "idx_ipv4Addr", dotted),
        index("supi", "idx_supi", text),
    ],
    value: "json_content",
    created: "created_date_time",
    modified: "last_access_timestamp",
    extra: &[
        SqlColumn {
            name: "snssai_sst",
            sql_type: "int",
        },
        SqlColumn {
            name: "last_audited_date_time",
            sql_type: "datetime",
        },
    ],
    keys: &[
        ("idx_created_date_time", "created_date_time"),
        ("idx_audit_datetime", "last_audited_date_time"),
    ],
};

impl Binding {
    const IPV4: Index = Index(0);
    const SUPI: Index = Index(1);
}

impl Record for Binding {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_binding",
        indexes: &[IndexSchema::many("ipv4"), IndexSchema::many("supi").ordered()],
        by_modified: true,
        sql: Some(&MAPPING),
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.id)
    }

    fn index(&self, keys: &mut IndexKeys) {
        if let Some(ipv4) = &self.ipv4 {
            keys.add(Binding::IPV4, ipv4);
        }
        if let Some(supi) = &self.supi {
            keys.add(Binding::SUPI, supi.as_bytes());
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{:?}|{:?}|{}", self.ipv4, self.supi, self.json).as_bytes());
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Binding, DecodeError> {
        let broken = || DecodeError("not a binding".to_owned());
        let text = String::from_utf8(value.to_vec()).map_err(|_| broken())?;
        let mut parts = text.splitn(3, '|');
        let (ipv4, supi, json) = (parts.next(), parts.next(), parts.next().ok_or_else(broken)?);
        let numbers = |text: &str| -> Option<[u8; 4]> {
            let inner = text.strip_prefix("Some([")?.strip_suffix("])")?;
            inner
                .split(", ")
                .map(|part| part.parse().ok())
                .collect::<Option<Vec<u8>>>()?
                .try_into()
                .ok()
        };
        let quoted = |text: &str| Some(text.strip_prefix("Some(\"")?.strip_suffix("\")")?.to_owned());
        Ok(Binding {
            id: key.try_into().map_err(|_| broken())?,
            ipv4: ipv4.and_then(numbers),
            supi: supi.and_then(quoted),
            json: json.to_owned(),
        })
    }

    fn columns(&self, out: &mut Vec<SqlValue>) {
        out.extend([SqlValue::Int(1), SqlValue::Null]);
    }
}

/// On an open database: written by the store, read with the database's own client.
pub(crate) async fn columns_are_readable(config: &Config) {
    let store = Store::open(config, &[TableDef::of::<Binding>()]).await.unwrap();
    let table = store.table::<Binding>().unwrap();
    // Identities that are no text, and not even one that could be: every byte must come through.
    let binding = |number: u8| Binding {
        id: [0xff - number; 16],
        ipv4: (number != 0).then_some([10, 0, 0, number]),
        supi: (number != 1).then(|| format!("imsi-00101{number:010}")),
        json: format!("{{\"dnn\":\"internet\",\"number\":{number}}}"),
    };
    let mut batch = Batch::default();
    (0..5).for_each(|number| batch.insert(&table, &binding(number)));
    let version = store.commit(batch).await.unwrap();
    for number in 0..5 {
        let row = table.get(&binding(number).id).await.unwrap().unwrap();
        assert_eq!(
            (&row.record, row.version, row.created),
            (&binding(number), version, version.micros())
        );
    }
    let found = table.find(Binding::IPV4, &[10, 0, 0, 3], 5).await.unwrap();
    assert_eq!(
        found.iter().map(|row| row.record.clone()).collect::<Vec<_>>(),
        [binding(3)]
    );
    assert!(
        table
            .find(Binding::IPV4, &[10, 0, 0, 0], 5)
            .await
            .unwrap()
            .is_empty()
    );
    let mut update = Batch::default();
    update.put(
        &table,
        &Binding {
            supi: None,
            ..binding(3)
        },
        Condition::Version(version),
    );
    store.commit(update).await.unwrap();
    assert!(
        table
            .find(Binding::SUPI, b"imsi-001010000000003", 5)
            .await
            .unwrap()
            .is_empty()
    );
    let page = table.scan(&Scan::by_index(Binding::SUPI, 2)).await.unwrap();
    assert_eq!(page.records.len(), 2);
    let rest = table.scan(&page.next.unwrap()).await.unwrap();
    assert_eq!(
        rest.records
            .iter()
            .map(|row| row.record.clone())
            .collect::<Vec<_>>(),
        [binding(4)]
    );

    let node = &config.mariadb.nodes[0];
    let query = "SELECT ipv4_addr, supi, json_content LIKE '%internet%', snssai_sst, site_id, \
                 ABS(TIMESTAMPDIFF(SECOND, created_date_time, UTC_TIMESTAMP())) < 60, \
                 ABS(last_access_timestamp / 1000 - UNIX_TIMESTAMP()) < 60 FROM pcf_binding ORDER BY binding_id";
    let output = Command::new("mariadb")
        .args([
            "-h127.0.0.1",
            "-usignalbox",
            "-psignalbox",
            "--batch",
            "--skip-column-names",
            "signalbox",
        ])
        .args(["-P", &node.port.to_string(), "-e", query])
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let expected = [
        "10.0.0.4\timsi-001010000000004\t1\t1\tsite-1\t1\t1",
        "10.0.0.3\tNULL\t1\t1\tsite-1\t1\t1",
        "10.0.0.2\timsi-001010000000002\t1\t1\tsite-1\t1\t1",
        "10.0.0.1\tNULL\t1\t1\tsite-1\t1\t1",
        "NULL\timsi-001010000000000\t1\t1\tsite-1\t1\t1",
    ];
    assert_eq!(
        lines.lines().collect::<Vec<_>>(),
        expected,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    drop(table);
    store.close().await;
}
