//! Captures that programs of Wireshark have made. Where one is missing, the test says so and passes.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use testpeer::skip;

use crate::support::message;

/// Messages as text2pcap reads them: an offset and hexadecimal digits.
fn dump(messages: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for message in messages {
        text.push_str("000000");
        for byte in message {
            let _ = write!(text, " {byte:02x}");
        }
        text.push('\n');
    }
    text
}

fn ran(program: &str, arguments: &[&str], input: &Path, output: &Path) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).arg(input).arg(output);
    let Some(output) = skip::output(&mut command) else {
        return false;
    };
    assert!(output.status.success(), "{output:?}");
    true
}

fn read(file: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    capture::read(file, &mut |captured| found.push(captured.bytes.to_vec())).unwrap();
    found
}

#[test]
fn captures_of_text2pcap_and_editcap_are_read_in_each_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let messages: Vec<_> = (1..6).map(|number| message(number, 300)).collect();
    std::fs::write(path("dump"), dump(&messages)).unwrap();
    for (transport, name) in [(["-T", "40000,3868"], "tcp"), (["-S", "40000,3868,46"], "sctp")] {
        let ng = path(&format!("{name}.pcapng"));
        if !ran("text2pcap", &transport, &path("dump"), &ng) {
            return;
        }
        assert_eq!(read(&ng), messages, "{name}");
        for format in ["pcap", "nsecpcap"] {
            let other = path(&format!("{name}.{format}"));
            if !ran("editcap", &["-F", format], &ng, &other) {
                return;
            }
            assert_eq!(read(&other), messages, "{name} {format}");
        }
        // The beginning of each packet.
        let cut = path(&format!("{name}-cut"));
        ran("editcap", &["-s", "100"], &ng, &cut);
        let summary = capture::read(&cut, &mut |_| ()).unwrap();
        assert_eq!((summary.messages, summary.packets_cut), (0, 5));
    }
}
