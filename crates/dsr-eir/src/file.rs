//! Lists from a file, one entry per line, `#` begins a comment:
//!
//! ```text
//! white,35000000,35009999          every IMEI of these TACs
//! black,35209900176148             one IMEI
//! pair,35209900176148,001010000000001,white
//! ```

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::config;
use crate::lists::Lists;
use crate::{Status, digits, equipment};

/// Bound on the length of a line.
const MAX_LINE: u64 = 256;
/// Digits of a TAC, and of an IMEI without its check digit (TS 23.003 §6.2.1).
const TAC_DIGITS: usize = 8;
const IMEI_DIGITS: usize = 14;

pub(crate) fn read(path: &Path, bounds: &config::Eir) -> Result<Lists, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut lists = Lists::default();
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut line = String::new();
    for number in 1_u64.. {
        line.clear();
        let mut bounded = reader.by_ref().take(MAX_LINE);
        let length = bounded.read_line(&mut line);
        let length = length.map_err(|error| format!("line {number}: {error}"))?;
        if length == 0 {
            break;
        }
        if length as u64 == MAX_LINE && !line.ends_with('\n') {
            return Err(format!("line {number}: is longer than {MAX_LINE} bytes"));
        }
        let entry = line.trim();
        if entry.is_empty() || entry.starts_with('#') {
            continue;
        }
        add(entry, &mut lists).map_err(|wrong| format!("line {number}: {wrong}"))?;
        within(&lists, bounds).map_err(|wrong| format!("line {number}: {wrong}"))?;
    }
    lists.sort()?;
    Ok(lists)
}

fn within(lists: &Lists, bounds: &config::Eir) -> Result<(), String> {
    for (key, count, max) in [
        ("maxRanges", lists.ranges.len(), bounds.max_ranges),
        ("maxImeis", lists.imeis.len(), bounds.max_imeis),
        ("maxPairs", lists.pairs.len(), bounds.max_pairs),
    ] {
        if count > max {
            return Err(format!(
                "more entries than {key} ({max}) permits; raise it, or remove some"
            ));
        }
    }
    Ok(())
}

fn add(entry: &str, lists: &mut Lists) -> Result<(), String> {
    let mut fields = entry.split(',').map(str::trim);
    let (list, first) = (
        fields.next().unwrap_or_default(),
        fields.next().unwrap_or_default(),
    );
    let (second, third) = (fields.next(), fields.next());
    if fields.next().is_some() {
        return Err("has more than four fields".to_owned());
    }
    if list == "pair" {
        let (Some(imsi), Some(list)) = (second, third) else {
            return Err("expected pair,IMEI,IMSI,LIST".to_owned());
        };
        let imei = equipment(first.as_bytes()).ok_or_else(|| not_an_imei(first))?;
        let imsi =
            digits(imsi.as_bytes()).ok_or_else(|| format!("`{imsi}` is not an IMSI; use up to 15 digits"))?;
        lists.pairs.add(imei, imsi, status(list)?);
        return Ok(());
    }
    let status = status(list)?;
    if third.is_some() {
        return Err("expected LIST,IMEI or LIST,FIRST,LAST".to_owned());
    }
    match second {
        None if first.len() >= IMEI_DIGITS => {
            let imei = equipment(first.as_bytes()).ok_or_else(|| not_an_imei(first))?;
            lists.imeis.add(imei, status);
        }
        second => {
            let last = second.unwrap_or(first);
            let (first, last) = (edge(first, b'0')?, edge(last, b'9')?);
            if first > last {
                return Err("the range ends before it begins".to_owned());
            }
            lists.ranges.add(first, last, status);
        }
    }
    Ok(())
}

fn not_an_imei(text: &str) -> String {
    format!("`{text}` is not an IMEI; use 14 to 16 digits")
}

fn status(list: &str) -> Result<Status, String> {
    let all = [Status::White, Status::Grey, Status::Black];
    all.into_iter()
        .find(|status| status.as_str() == list)
        .ok_or_else(|| format!("unknown list `{list}`; use white, grey, black or pair"))
}

/// The first (filled with 0) or the last (with 9) IMEI that begins with these digits.
fn edge(text: &str, fill: u8) -> Result<u64, String> {
    if !(TAC_DIGITS..=IMEI_DIGITS).contains(&text.len()) {
        return Err(format!(
            "`{text}` is neither a TAC nor an IMEI; use 8 to 14 digits"
        ));
    }
    let mut all = [fill; IMEI_DIGITS];
    for (digit, byte) in all.iter_mut().zip(text.bytes()) {
        *digit = byte;
    }
    equipment(&all).ok_or_else(|| format!("`{text}` is neither a TAC nor an IMEI; use 8 to 14 digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str, bounds: &config::Eir) -> Result<Lists, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("equipment.csv");
        std::fs::write(&path, text).unwrap();
        read(&path, bounds)
    }

    #[test]
    fn entries_are_read_and_mistakes_named_with_their_line() {
        let bounds = config::Eir::default();
        let lists = load(
            "# equipment\n\nwhite, 35000000, 35009999\ngrey,350100001\nblack,352099001761481\n\
             pair,35209900176148,001010000000001,white",
            &bounds,
        )
        .unwrap();
        let counts = lists.tables().map(|table| table.entries);
        assert_eq!(counts, [4, 1, 1], "IMEIs of ten thousand TACs take three ranges");
        assert_eq!(lists.ranges.find(35_009_999_999_999), Some(Status::White));
        assert_eq!(lists.ranges.find(35_010_000_100_000), Some(Status::Grey));
        assert_eq!(lists.imeis.find(35_209_900_176_148), Some(Status::Black));
        for (text, wanted) in [
            ("red,35000000", "line 1: unknown list `red`"),
            ("white,3500000", "line 1: `3500000` is neither"),
            ("\nwhite,35000001,35000000", "line 2: the range ends before"),
            ("black,3520990017614x", "is not an IMEI"),
            ("black,350000000,x", "neither"),
            ("pair,35209900176148,white", "expected pair"),
            ("pair,35209900176148,12345678901234567,white", "is not an IMSI"),
            ("white,35000000,35000001,x", "expected LIST"),
            ("white,1,2,3,4", "more than four"),
            ("white,35000000,35000001\nblack,35000001", "overlap"),
            (&format!("#{}", "x".repeat(300)), "longer than 256"),
        ] {
            let error = load(text, &bounds).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
        let bounds = config::Eir {
            max_imeis: 1,
            ..bounds
        };
        let error = load("black,35209900176148\nblack,35209900176149", &bounds).unwrap_err();
        assert!(
            error.starts_with("line 2: more entries than maxImeis (1)"),
            "{error}"
        );
    }
}
