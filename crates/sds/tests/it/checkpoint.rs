//! Checkpoints: whole, of one offset, beside writes; and servers that load them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use crate::support::{Api, Sds, config, imsi, local, set, start, start_in, until};

/// The records of a checkpoint by their subjects, and its offset; checked against its form.
fn parse(text: &str) -> (BTreeMap<String, String>, u64) {
    let lines: Vec<&str> = text.lines().collect();
    let [first, journal, offset, records @ .., sum, end] = &lines[..] else {
        panic!("{text}")
    };
    assert_eq!(*first, "#signalbox-numbers,1");
    assert!(journal.starts_with("#journal,"), "{journal}");
    assert!(sum.starts_with("#crc32c,"), "{sum}");
    assert_eq!(*end, format!("#end,{}", records.len()));
    let subject = |line: &&str| {
        let (kind, rest) = line.split_once(',').unwrap();
        let (value, destinations) = rest.split_once(',').unwrap();
        (format!("{kind},{value}"), destinations.to_owned())
    };
    let order = |line: &&str| {
        let (subject, _) = subject(line);
        let (kind, value) = subject.split_once(',').unwrap();
        let place = ["imei", "imsi", "msisdn", "name"]
            .iter()
            .position(|one| *one == kind);
        let length = if kind == "name" { 0 } else { value.len() };
        (place.unwrap(), length, value.to_owned())
    };
    assert!(records.is_sorted_by_key(order));
    let offset = offset.strip_prefix("#offset,").unwrap().parse().unwrap();
    (records.iter().map(subject).collect(), offset)
}

/// Adds a transaction of the journal to records.
fn apply(records: &mut BTreeMap<String, String>, transaction: &serde_json::Value) {
    for change in transaction["changes"].as_array().unwrap() {
        let (kind, value) = change.as_object().unwrap().iter().next().unwrap();
        let subject = format!("{kind},{}", value.as_str().unwrap());
        match change["destinations"].as_str() {
            Some(destinations) => records.insert(subject, destinations.to_owned()),
            None => records.remove(&subject),
        };
    }
}

/// Transactions that set and remove numbers of many blocks, and names.
async fn write(api: &Api, from: u64, count: u64) {
    for step in from..from + count {
        let number = step * 7_919 % 500 * 40_000;
        let name = json!({"name": format!("n{}@x", step % 300), "destinations": if step % 4 == 0 { json!(null) } else { json!("b") }});
        let change = match step % 5 {
            0 => json!({"imsi": imsi(number), "destinations": null}),
            _ => set(number, &format!("hss{}", step % 9)),
        };
        api.write(&json!([change, name, {"msisdn": format!("{step}"), "destinations": "c,ocs=o"}]))
            .await
            .offset();
    }
}

#[test]
fn a_checkpoint_and_the_journal_behind_it_are_the_records() {
    let sds = start(|_| {});
    local(async {
        let api = sds.api.clone();
        write(&api, 0, 200).await;
        let writing = {
            let api = api.clone();
            tokio::task::spawn_local(async move { write(&api, 200, 200).await })
        };
        let mut checkpoints = Vec::new();
        while !writing.is_finished() {
            let got = api.get("/checkpoint").await;
            let (records, offset) = parse(&got.text);
            assert_eq!(got.number("journal-offset"), offset);
            checkpoints.push((records, offset));
        }
        writing.await.unwrap();
        let journal = api.journal(0).await;
        assert_eq!(journal.len(), 400);
        checkpoints.push(parse(&api.get("/checkpoint").await.text));
        let (mut records, mut applied) = (BTreeMap::new(), 0);
        for (found, offset) in checkpoints {
            for transaction in &journal[applied as usize..offset as usize] {
                apply(&mut records, transaction);
            }
            applied = offset;
            assert_eq!(found, records, "exactly the transactions up to {offset}");
        }
        assert_eq!(applied, 400);
    });
    sds.stop();
}

#[test]
fn a_large_checkpoint_is_sent_in_pieces_beside_other_requests() {
    let sds = start(|_| {});
    local(async {
        let api = &sds.api;
        for part in 0..10_u64 {
            let line = |number: u64| {
                format!(
                    "imsi,{},hss{},pcrf=p\n",
                    imsi(part * 10_000 + number),
                    number % 300
                )
            };
            let body: String = (0..10_000).map(line).collect();
            assert_eq!(api.post("/records", "text/csv", body).await.status(), 200);
        }
        let (one, other) = tokio::join!(api.get("/checkpoint"), api.get("/checkpoint"));
        let (records, _) = parse(&one.text);
        assert_eq!(records.len(), 100_000);
        assert_eq!(one.text, other.text);
        assert_eq!(one.header("content-length"), "");
    });
    sds.stop();
}

#[test]
fn parts_of_a_checkpoint_are_the_records() {
    let sds = start(|_| {});
    local(async {
        let api = &sds.api;
        write(api, 0, 100).await;
        let (whole, offset) = parse(&api.get("/checkpoint").await.text);
        let (mut taken, mut after, mut parts) = (BTreeMap::new(), String::new(), 0);
        loop {
            let part = api.get(&format!("/checkpoint?limit=7{after}")).await;
            assert_eq!(part.number("journal-offset"), offset);
            let mut lines: Vec<&str> = part.text.lines().collect();
            let next = lines.iter().position(|line| line.starts_with("#next,"));
            let next = next.map(|at| lines.remove(at).to_owned());
            let (records, of) = parse(&(lines.join("\n") + "\n"));
            assert!(of == offset && records.len() <= 7, "{}", part.text);
            taken.extend(records);
            parts += 1;
            let Some(next) = next else { break };
            after = next
                .replace("#next,", "&after=")
                .replace(',', "%2C")
                .replace('@', "%40");
        }
        assert_eq!(taken, whole);
        assert!(parts > whole.len() / 7, "{parts}");
        assert_eq!(sds.running.count(sds::Event::Checkpoint), 2);
        for (query, reason) in [
            ("after=imsi", "no comma"),
            ("after=imsi%2C1x", "not a digit"),
            ("after=color%2C1", "unknown kind"),
            ("limit=10001", "0 to 10000"),
            ("offset=1", "unknown"),
        ] {
            let got = api.get(&format!("/checkpoint?{query}")).await;
            assert!(
                got.status() == 400 && got.detail().contains(reason),
                "{}",
                got.text
            );
        }
    });
    sds.stop();
}

fn refused(directory: &Path) -> String {
    match sds::start(config(directory)) {
        Ok(_) => panic!("it starts"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn first_data_are_loaded_and_begin_a_journal() {
    let directory = tempfile::tempdir().unwrap();
    let load = directory.path().join("load.csv");
    let text = format!(
        "#signalbox-numbers,1\nimsi,{},hss1\nmsisdn,49,hss1\nname,a@b,hss2\n#end,3\n",
        imsi(1)
    );
    for (wrong, reason) in [
        (text.replace("#end,3\n", ""), "line 5: expected #end"),
        (text.replace("#end,3", "#end,4"), "lines are lost"),
        (text.replace("msisdn,49", "msisdn,4A"), "line 3: character 2"),
        (
            text.replace("hss2\n", "hss2\nname,a@b,hss3\n"),
            "line 5: a@b is there twice",
        ),
        (text.replace("1\nimsi", "1\n#offset,3\nimsi"), "expected both"),
        (
            text.replace("1\nimsi", "1\n#journal,j\n#offset,18446744073709551615\nimsi"),
            "expected an offset of 0 to",
        ),
    ] {
        std::fs::write(&load, &wrong).unwrap();
        let refused = refused(directory.path());
        assert!(refused.contains(reason), "{wrong}: {refused}");
    }
    std::fs::write(&load, &text).unwrap();
    let sds = start_in(directory, |_| {});
    local(async {
        let api = &sds.api;
        assert_eq!(api.find("name/a@b").await.as_deref(), Some("hss2"));
        // Nothing of it is in the journal: a processor takes a checkpoint.
        assert_eq!(api.get("/journal?after=0").await.status(), 410);
        let (records, offset) = parse(&api.get("/checkpoint").await.text);
        assert_eq!((records.len(), offset), (3, 1));
        assert_eq!(api.write(&json!([set(1, "hss3")])).await.offset(), 2);
    });
    // It is loaded once.
    let directory = sds.stop();
    assert!(!directory.path().join("load.csv").exists());
    let sds = start_in(directory, |_| {});
    let found = local(sds.api.find(&format!("imsi/{}", imsi(1))));
    assert_eq!(found.as_deref(), Some("hss3"));
    sds.stop();
}

#[test]
fn a_checkpoint_restores_records_whose_journal_is_lost() {
    let sds = start(|_| {});
    let (text, id) = local(async {
        write(&sds.api, 0, 30).await;
        let got = sds.api.get("/checkpoint").await;
        (got.text.clone(), got.header("journal-id").to_owned())
    });
    let directory = sds.stop();
    // A wrong one changes nothing.
    let load = directory.path().join("load.csv");
    std::fs::write(&load, text.replace("#end", "#End")).unwrap();
    assert!(refused(directory.path()).contains("expected #end"));
    std::fs::remove_file(&load).unwrap();
    let sds = start_in(directory, |_| {});
    assert_eq!(local(sds.api.journal(0)).len(), 30);
    sds.stop();

    let empty = tempfile::tempdir().unwrap();
    std::fs::write(empty.path().join("load.csv"), &text).unwrap();
    let sds = start_in(empty, |_| {});
    local(async {
        let got = sds.api.get("/checkpoint").await;
        assert_eq!(parse(&got.text), parse(&text));
        assert_ne!(got.header("journal-id"), id, "another journal");
        assert_eq!(sds.api.write(&json!([set(1, "x")])).await.offset(), 31);
    });
    let directory = sds.stop();
    let sds = start_in(directory, |_| {});
    assert_eq!(local(sds.api.journal(30)).len(), 1);
    sds.stop();
}

#[test]
fn a_directory_has_one_server_and_one_journal() {
    let sds = start(|_| {});
    local(async { sds.api.write(&json!([set(1, "a")])).await.offset() });
    assert!(refused(sds.directory.path()).contains("another process"));
    let text = local(sds.api.get("/checkpoint")).text;
    let directory = sds.stop();
    // A store with another journal.
    let other = start(|_| {});
    local(async { other.api.write(&json!([set(2, "b")])).await.offset() });
    let other = other.stop();
    let load = other.path().join("load.csv");
    for text in [&*text, "imsi,1,a\n"] {
        std::fs::write(&load, text).unwrap();
        assert!(refused(other.path()).contains("the store has journal"));
    }
    // Its records are as before.
    std::fs::remove_file(&load).unwrap();
    let other = start_in(other, |_| {});
    let found = local(other.api.find(&format!("imsi/{}", imsi(2))));
    assert_eq!(found.as_deref(), Some("b"));
    other.stop();
    drop(directory);
}

/// Waits until the first transaction is in the files of the directory.
async fn saved(sds: &Sds) {
    let state = sds.directory.path().join("state.json");
    until("a save", async || {
        let state = std::fs::read_to_string(&state);
        state.is_ok_and(|state| state.contains("\"names\":1,"))
    })
    .await;
}

#[test]
fn a_file_that_is_missing_is_not_one_without_records() {
    let sds = start(|config| config.journal.checkpoint = settings::Period::from_millis(50));
    local(async {
        let changes = json!([set(1, "a"), {"name": "a@b", "destinations": "c"}]);
        sds.api.write(&changes).await.offset();
        saved(&sds).await;
    });
    let directory = sds.stop();
    let aside = directory.path().join("aside");
    for name in ["numbers.num", "names.csv"] {
        let path = directory.path().join(name);
        std::fs::rename(&path, &aside).unwrap();
        let refused = refused(directory.path());
        assert!(refused.contains(&format!("{name}: is missing")), "{refused}");
        std::fs::rename(&aside, &path).unwrap();
    }
    // The last name is removed, and with it the file.
    let sds = start_in(directory, |config| {
        config.journal.checkpoint = settings::Period::from_millis(50);
    });
    local(async {
        assert_eq!(sds.api.delete("/subscribers/name/a@b").await.offset(), 2);
        let names = sds.directory.path().join("names.csv");
        until("a save without names", async || !names.exists()).await;
    });
    let sds = start_in(sds.stop(), |_| {});
    let found = local(sds.api.find(&format!("imsi/{}", imsi(1))));
    assert_eq!(found.as_deref(), Some("a"));
    sds.stop();
}

#[test]
fn a_damaged_block_refuses_its_own_numbers() {
    let sds = start(|config| config.journal.checkpoint = settings::Period::from_millis(50));
    local(async {
        let changes =
            json!([set(1, "a"), {"msisdn": "49", "destinations": "b"}, {"name": "a@b", "destinations": "c"}]);
        sds.api.write(&changes).await.offset();
        saved(&sds).await;
    });
    let directory = sds.stop();
    let path = directory.path().join("numbers.num");
    let mut bytes = std::fs::read(&path).unwrap();
    // The first block, which has the IMSI, lies behind the header.
    bytes[128] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let sds = start_in(directory, |_| {});
    local(async {
        let api = &sds.api;
        let refused = api.get(&format!("/subscribers/imsi/{}", imsi(1))).await;
        assert_eq!(refused.status(), 500);
        assert!(refused.detail().contains("damaged"), "{}", refused.text);
        let refused = api
            .write(&json!([{"name": "new@b", "destinations": "c"}, set(2, "a")]))
            .await;
        assert_eq!(refused.status(), 500);
        assert_eq!(api.find("name/new@b").await, None, "nothing of it was written");
        let text = api.get("/checkpoint").await.text;
        assert!(
            text.starts_with("#signalbox-numbers,1\n") && !text.contains("#end"),
            "{text}"
        );
        assert_eq!(sds.running.count(sds::Event::CheckpointFailed), 1);
        // All others are served and changed.
        assert_eq!(api.find("msisdn/49").await.as_deref(), Some("b"));
        let changes = json!([{"msisdn": "49", "destinations": "d"}, {"name": "a@b", "destinations": null}]);
        assert_eq!(api.write(&changes).await.offset(), 2);
        assert_eq!(api.find("msisdn/49").await.as_deref(), Some("d"));
    });
    sds.stop();
}

/// Writes the changes, and waits until they are in the files.
async fn write_saved(sds: &Sds, changes: &serde_json::Value) {
    let offset = sds.api.write(changes).await.offset();
    let (state, saved) = (
        sds.directory.path().join("state.json"),
        format!("\"names\":{offset},"),
    );
    until("a save", async || {
        let state = std::fs::read_to_string(&state);
        state.is_ok_and(|state| state.contains(&saved))
    })
    .await;
}

fn often(config: &mut sds::Config) {
    config.journal.checkpoint = settings::Period::from_millis(50);
}

#[test]
fn a_damaged_block_does_not_keep_the_server_from_starting_when_the_base_is_to_be_rewritten() {
    let sds = start(often);
    local(async {
        write_saved(&sds, &json!([set(1, "a"), {"msisdn": "49", "destinations": "b"}])).await;
    });
    // From now on the base has numbers, and changes have a file of their own.
    let sds = start_in(sds.stop(), often);
    local(write_saved(&sds, &json!([{"msisdn": "49", "destinations": "d"}])));
    let directory = sds.stop();
    let (base, changes) = (
        directory.path().join("numbers.num"),
        directory.path().join("numbers.changes"),
    );
    let mut bytes = std::fs::read(&base).unwrap();
    assert!(std::fs::metadata(&changes).unwrap().len() > bytes.len() as u64 / 2);
    bytes[128] ^= 1;
    std::fs::write(&base, bytes).unwrap();
    let sds = start_in(directory, often);
    local(async {
        let refused = sds.api.get(&format!("/subscribers/imsi/{}", imsi(1))).await;
        assert_eq!(refused.status(), 500);
        assert_eq!(sds.api.find("msisdn/49").await.as_deref(), Some("d"));
        write_saved(&sds, &json!([{"msisdn": "49", "destinations": "e"}])).await;
    });
    let sds = start_in(sds.stop(), |_| {});
    assert_eq!(local(sds.api.find("msisdn/49")).as_deref(), Some("e"));
    sds.stop();
}

#[test]
fn a_flipped_bit_of_state_or_names_is_refused_with_the_file() {
    let sds = start(often);
    local(write_saved(
        &sds,
        &json!([set(1, "a"), {"name": "b@c", "destinations": "d"}]),
    ));
    let directory = sds.stop();
    for (name, from, to, reason) in [
        ("state.json", "\"names\":1,", "\"names\":3,", "checksum"),
        ("names.csv", "name,b@c,d", "name,b@c,e", "checksum"),
        ("names.csv", "name,b@c,d", "name,b@b,d", "checksum"),
    ] {
        let path = directory.path().join(name);
        let before = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, before.replace(from, to)).unwrap();
        let refused = refused(directory.path());
        assert!(refused.contains(name) && refused.contains(reason), "{refused}");
        std::fs::write(&path, before).unwrap();
    }
    let sds = start_in(directory, |_| {});
    assert_eq!(local(sds.api.find("name/b@c")).as_deref(), Some("d"));
    sds.stop();
}

#[test]
fn a_checkpoint_behind_the_end_of_the_journal_replaces_nothing() {
    let sds = start(|_| {});
    let text = local(async {
        sds.api.write(&json!([set(1, "a")])).await.offset();
        sds.api.get("/checkpoint").await.text
    });
    let directory = sds.stop();
    let load = directory.path().join("load.csv");
    std::fs::write(
        &load,
        text.replace("#offset,1\n", "#offset,500\n")
            .replace(",a\n", ",b\n"),
    )
    .unwrap();
    let refused = refused(directory.path());
    assert!(
        refused.contains("offset 500") && refused.contains("offset 0 to 1"),
        "{refused}"
    );
    std::fs::remove_file(&load).unwrap();
    let sds = start_in(directory, |_| {});
    let found = local(sds.api.find(&format!("imsi/{}", imsi(1))));
    assert_eq!(found.as_deref(), Some("a"));
    sds.stop();
}

#[test]
fn records_begin_another_journal_when_the_older_one_of_a_backup_is_removed() {
    let sds = start(often);
    local(write_saved(&sds, &json!([set(1, "a")])));
    let directory = sds.stop();
    let (journal, backup) = (directory.path().join("journal"), directory.path().join("backup"));
    let copy = std::process::Command::new("cp")
        .arg("-r")
        .args([&journal, &backup])
        .status();
    assert!(copy.unwrap().success());
    let sds = start_in(directory, often);
    local(write_saved(&sds, &json!([set(1, "b")])));
    let directory = sds.stop();
    std::fs::remove_dir_all(&journal).unwrap();
    std::fs::rename(&backup, &journal).unwrap();
    let refused = refused(directory.path());
    assert!(
        refused.contains("up to 1 alone") && refused.contains("remove store.embedded.directory"),
        "{refused}"
    );
    std::fs::remove_dir_all(&journal).unwrap();
    let sds = start_in(directory, |_| {});
    let found = local(sds.api.find(&format!("imsi/{}", imsi(1))));
    assert_eq!(found.as_deref(), Some("b"));
    sds.stop();
}

#[test]
fn the_checkpoint_of_a_server_without_records_is_loaded() {
    let sds = start(|_| {});
    let text = local(sds.api.get("/checkpoint")).text;
    assert!(text.ends_with("#end,0\n"), "{text}");
    let directory = sds.stop();
    std::fs::write(directory.path().join("load.csv"), &text).unwrap();
    let sds = start_in(directory, |_| {});
    local(async {
        assert_eq!(parse(&sds.api.get("/checkpoint").await.text).0.len(), 0);
        sds.api.write(&json!([set(1, "a")])).await.offset();
    });
    sds.stop();
}
