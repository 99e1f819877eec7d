//! Bytes of a stranger, and lines about them.

use diameter_proto::known;

use crate::support::*;

fn all_measures(mode: &str) -> Vec<String> {
    MEASURES.map(|measure| format!("{measure},{mode}")).to_vec()
}

/// Groups in groups.
fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(Vec::new(), |inner, _| {
        let mut group = vec![0, 0, 1, 23, 0x40];
        group.extend_from_slice(&(inner.len() as u32 + 8).to_be_bytes()[1..]);
        group.extend_from_slice(&inner);
        group
    })
}

#[test]
fn long_names_and_deep_groups_are_findings_and_cost_bounded_lines() {
    let directory = tables(&all_measures(DETECT));
    let file = directory.path().join("findings.jsonl");
    let mut bench = Bench::with(&dsr_dsa::config::Dsa {
        findings: Some(file.clone()),
        ..settings(directory.path())
    });
    let deep = Sent {
        more: |builder| raw(builder, 0, 279, &nested(2000)),
        ..Sent::new(316)
    };
    assert_eq!(bench.request(FOREIGN_PEER, &deep.message()), Fate::WentOn);
    assert_eq!(bench.findings("AVPWLScr"), [("west".to_owned(), "detected", 1)]);
    let long = Sent {
        imsi: "\u{202e}\"\n".repeat(12_000),
        host: format!("{}.example", "x".repeat(60_000)),
        ..Sent::new(316)
    };
    assert_eq!(bench.request(FOREIGN_PEER, &long.message()), Fate::WentOn);
    assert_eq!(
        bench.findings("SubsIdenValid"),
        [("west".to_owned(), "detected", 1)]
    );
    let many = Sent {
        more: |builder| {
            for _ in 0..7000 {
                builder.put(known::ROUTE_RECORD, "");
            }
        },
        ..Sent::new(316)
    };
    assert_eq!(bench.request(FOREIGN_PEER, &many.message()), Fate::WentOn);
    let found: u64 = bench.application.findings().iter().map(|row| row.count).sum();
    let lines = lines_of(&file, found as usize);
    for line in &lines {
        assert!(line.len() < 3000, "{line}");
        let read: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&read["partner"], &read["direction"]),
            (&"west".into(), &"ingress".into())
        );
    }
}

#[test]
fn a_line_has_who_what_and_why_and_nothing_of_authentication() {
    let directory = tables(&[format!("AppCmdCst,{DROP}")]);
    let file = directory.path().join("findings.jsonl");
    let mut bench = Bench::with(&dsr_dsa::config::Dsa {
        findings: Some(file.clone()),
        findings_per_second: 1,
        ..settings(directory.path())
    });
    let bad = Sent {
        more: |builder| raw(builder, 10415, 1413, b"secret-vector"),
        ..Sent::new(322)
    };
    for _ in 0..3 {
        assert_eq!(bench.request(FOREIGN_PEER, &bad.message()), Fate::Dropped);
    }
    let lines = lines_of(&file, 1);
    assert_eq!(lines.len(), 1, "more in this second are counted only");
    assert!(!lines[0].contains("secret"));
    let read: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    for (name, value) in [
        ("measure", "AppCmdCst"),
        ("outcome", "dropped"),
        ("peer", FOREIGN_PEER),
        ("command", "RSR"),
        ("imsi", "262011234567890"),
        ("originRealm", FRANCE),
        ("visitedNetwork", "208-10"),
    ] {
        assert_eq!(read[name], value, "{name}");
    }
    assert_eq!(read["category"], 1);
    assert_eq!(bench.findings("AppCmdCst"), [("west".to_owned(), "dropped", 3)]);
}

#[test]
fn a_file_of_findings_is_renamed_at_its_size() {
    let directory = tables(&[format!("AppCmdCst,{DROP}")]);
    let file = directory.path().join("findings.jsonl");
    let mut bench = Bench::with(&dsr_dsa::config::Dsa {
        findings: Some(file.clone()),
        findings_bytes: settings::ByteSize(1),
        ..settings(directory.path())
    });
    let old = directory.path().join("findings.jsonl.1");
    bench.request(FOREIGN_PEER, &Sent::new(322).message());
    lines_of(&file, 1);
    bench.request(FOREIGN_PEER, &Sent::new(322).message());
    lines_of(&old, 1);
    assert_eq!(lines_of(&file, 1).len(), 1);
}

#[test]
fn changed_bytes_are_screened_without_a_panic() {
    use diameter_proto::{Message, Routing};
    let mut bench = Bench::new(&all_measures(DETECT));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let mut screened = 0;
    for round in 0..4000 {
        let command = [316, 317, 318, 319, 320, 321, 322, 323, 272][round % 9];
        let sent = Sent {
            more: |builder| {
                raw(builder, 10415, 1401, &nested(3));
                raw(builder, 0, 443, &nested(2));
                raw(builder, 0, 416, &[0, 0, 0, 1]);
            },
            ..Sent::new(command)
        };
        let mut bytes = bytes::BytesMut::from(sent.message().as_bytes());
        for _ in 0..=next(6) {
            // Behind the length of the message and its command.
            let at = 20 + next(bytes.len() - 20);
            bytes[at] = [0, 1, 0x40, 0x80, 0xff, b';', b'.'][next(7)];
        }
        let Ok(message) = Message::parse(bytes) else {
            continue;
        };
        if Routing::scan(&message, b"").is_ok() {
            bench.request(FOREIGN_PEER, &message);
            screened += 1;
        }
    }
    assert!(screened > 1000, "{screened}");
}

#[test]
fn honest_traffic_is_no_finding() {
    let mut bench = Bench::new(&all_measures(DROP));
    for number in 0..50 {
        let imsi = format!("2620100000{number:05}");
        let guest = format!("2081000000{number:05}");
        for command in [318, 316, 323, 321] {
            let sent = Sent {
                imsi: imsi.clone(),
                ..Sent::new(command)
            };
            let answer = sent.answer(&format!("hss.{HOME}"), 2001);
            assert_eq!(
                bench.exchange(FOREIGN_PEER, &sent.message(), &answer),
                Fate::WentOn
            );
        }
        for command in [318, 316] {
            let sent = Sent {
                imsi: guest.clone(),
                ..Sent::of_ours(command)
            };
            let answer = sent.answer(&format!("hss1.{FRANCE}"), 2001);
            assert_eq!(bench.exchange(OWN_PEER, &sent.message(), &answer), Fate::WentOn);
        }
        for command in [319, 320, 317] {
            let sent = Sent {
                imsi: guest.clone(),
                to_host: Some(format!("mme1.{HOME}")),
                ..Sent::of_hss(command)
            };
            let answer = sent.answer(&format!("mme1.{HOME}"), 2001);
            assert_eq!(
                bench.exchange(FOREIGN_PEER, &sent.message(), &answer),
                Fate::WentOn
            );
        }
        bench.pass(std::time::Duration::from_secs(1));
    }
    assert_eq!(bench.application.findings(), []);
}

/// Packets of the sampled files, of which each has a comment.
fn samples_in(directory: &std::path::Path) -> Vec<String> {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = files.map(|file| file.path()).collect();
    names.sort_unstable();
    let read = |path: &std::path::PathBuf| {
        // It may be renamed, or not be begun.
        let bytes = std::fs::read(path).unwrap_or_default();
        let is_begun = bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]);
        assert!(
            is_begun || bytes.iter().all(|byte| *byte == 0),
            "{}",
            path.display()
        );
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains("secret-vector"), "{}", path.display());
        text.matches("; request in ")
            .map(|_| path.display().to_string())
            .collect::<Vec<_>>()
    };
    names.iter().flat_map(read).collect()
}

/// Waits until there are this many samples.
fn sampled(directory: &std::path::Path, count: usize) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while samples_in(directory).len() < count {
        assert!(
            std::time::Instant::now() < deadline,
            "{:?}",
            samples_in(directory)
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn messages_that_are_found_are_sampled_within_a_rate_and_bounded_files() {
    let directory = tables(&[format!("AppCmdCst,{DROP}"), format!("DrOrMatch,{DETECT}")]);
    let samples = directory.path().join("samples");
    let mut bench = Bench::with(&dsr_dsa::config::Dsa {
        samples: Some(dsr_dsa::config::Samples {
            directory: samples.clone(),
            per_minute: 2,
            file_bytes: settings::ByteSize(2_000),
            files: 2,
        }),
        ..settings(directory.path())
    });
    let bad = Sent {
        more: |builder| raw(builder, 10415, 1413, b"secret-vector"),
        ..Sent::new(322)
    };
    for _ in 0..5 {
        assert_eq!(bench.request(FOREIGN_PEER, &bad.message()), Fate::Dropped);
    }
    sampled(&samples, 2);
    let own = Sent {
        realm: HOME.to_owned(),
        host: format!("mme1.{HOME}"),
        ..Sent::new(ULR)
    };
    bench.request(FOREIGN_PEER, &own.message());
    sampled(&samples, 3);
    let text = std::fs::read(samples.join("findings.pcapng")).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(
        text.contains(&format!("DrOrMatch detected; request in {FOREIGN_PEER}")),
        "{text}"
    );
    // A file that somebody has taken away gives way to another one.
    std::fs::remove_file(samples.join("findings.pcapng")).unwrap();
    bench.pass(std::time::Duration::from_secs(60));
    bench.request(FOREIGN_PEER, &bad.message());
    let before = std::time::Instant::now();
    while !samples.join("findings.pcapng").exists() {
        assert!(before.elapsed() < std::time::Duration::from_secs(60));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // Further minutes fill further files, of which two stay.
    for _ in 0..10 {
        bench.pass(std::time::Duration::from_secs(60));
        for _ in 0..5 {
            bench.request(FOREIGN_PEER, &bad.message());
        }
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let names = || {
        let mut names: Vec<_> = std::fs::read_dir(&samples)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.contains(".new."))
            .collect();
        names.sort_unstable();
        names
    };
    while names().len() < 2 {
        assert!(std::time::Instant::now() < deadline, "{:?}", names());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(names(), ["findings.1.pcapng", "findings.pcapng"]);
    for name in names() {
        assert!(samples.join(&name).metadata().unwrap().len() < 3_000, "{name}");
    }
}
