//! Exports: each record once, as it was written last, and none that was deleted.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use settings::ByteSize;
use store::{Batch, Condition, Error, Record as _, Store, TableDef};

use crate::damage::{files, filled, flip};
use crate::log::small_segments;
use crate::session::{Session, id};

/// Value and creation by key.
type Records = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

fn exported(directory: &Path) -> Result<Records, Error> {
    let mut records = Records::new();
    let count = store::export(directory, |record| {
        assert_eq!((record.table, record.site), (Session::TABLE.name, "site-1"));
        let value = (record.value, record.created);
        assert!(records.insert(record.key.to_vec(), value).is_none(), "twice");
        Ok::<_, Error>(())
    })?;
    assert_eq!(usize::try_from(count).ok(), Some(records.len()));
    Ok(records)
}

#[tokio::test]
async fn each_record_once_as_it_was_written_last() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = small_segments(directory.path());
    config.site = "site-1".to_owned();
    config.embedded.checkpoint_above = ByteSize(0);
    config.compress_above = ByteSize(300);
    let mut random = StdRng::seed_from_u64(7);
    let mut model = Records::new();
    let mut compactions = 0;
    for round in 0..6 {
        let store = Store::open(&config, &[TableDef::of::<Session>()]).await.unwrap();
        let sessions = store.table::<Session>().unwrap();
        for _ in 0..400 {
            let number = random.random_range(0..150u64);
            let mut batch = Batch::default();
            if random.random_bool(0.4) {
                batch.delete(&sessions, &id(number), Condition::Always);
                store.commit(batch).await.unwrap();
                model.remove(&id(number)[..]);
                continue;
            }
            let note = "n".repeat(random.random_range(0..900));
            let session = Session::new(number, &format!("imsi-{round}")).note(&note);
            batch.put(&sessions, &session, Condition::Always);
            store.commit(batch).await.unwrap();
            let created = sessions.get(&id(number)).await.unwrap().unwrap().created;
            let mut value = Vec::new();
            session.encode(&mut value);
            model.insert(id(number).to_vec(), (value, created));
        }
        // The thread that compacts may not have come to it yet.
        for _ in 0..6_000 {
            if round < 5 || compactions + store.stats().compactions > 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        compactions += store.stats().compactions;
        let open = exported(directory.path()).unwrap_err().to_string();
        assert!(open.contains("another process"), "{open}");
        drop(sessions);
        store.close().await;
        let before: Vec<_> = files(directory.path())
            .iter()
            .map(|file| std::fs::read(file).unwrap())
            .collect();
        let found = exported(directory.path()).unwrap();
        assert!(
            found == model,
            "round {round}: {} of {}",
            found.len(),
            model.len()
        );
        let after: Vec<_> = files(directory.path())
            .iter()
            .map(|file| std::fs::read(file).unwrap())
            .collect();
        assert!(before == after, "an export changes nothing");
    }
    assert!(compactions > 0);
}

/// What a crash has torn was not acknowledged; what is damaged is not left out in silence.
#[tokio::test]
async fn a_torn_end_is_left_out_and_damage_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let log = filled(directory.path(), 60).await;
    let export = || {
        let mut count = 0;
        let each = |_: store::Exported<'_>| {
            count += 1;
            Ok::<_, Error>(())
        };
        store::export(directory.path(), each).map(|_| count)
    };
    assert_eq!(export().unwrap(), 60);
    let newest = log.last().unwrap();
    let whole = std::fs::read(newest).unwrap();
    std::fs::write(newest, [&whole[..], b"the beginning of an entry"].concat()).unwrap();
    if store::verify(directory.path()).unwrap().damage.is_empty() {
        assert_eq!(export().unwrap(), 60);
    }
    std::fs::write(newest, &whole).unwrap();
    flip(&log[0], 300);
    let said = export().unwrap_err().to_string();
    let name = log[0].file_name().unwrap().to_str().unwrap();
    assert!(
        said.contains(name) && said.contains("nothing was exported"),
        "{said}"
    );
    let nothing = tempfile::tempdir().unwrap();
    let said = store::export(nothing.path(), |_| Ok::<_, Error>(())).unwrap_err();
    assert!(said.to_string().contains("no store"), "{said}");
}
