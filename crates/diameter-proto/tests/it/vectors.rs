//! Golden wire bytes with their decoded form, in `tests/vectors`: bytes to text and text to bytes. Those named
//! after a foreign stack were captured from it. With `BLESS=1`, the missing half of a pair is written.

use std::path::{Path, PathBuf};

use diameter_proto::check::{Strictness, check};
use diameter_proto::{Dictionary, Message, text};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits
        .chunks(2)
        .map(|pair| (pair[0] * 16 + pair[1]) as u8)
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    let lines = bytes
        .chunks(32)
        .map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

fn read(path: &Path, other: impl FnOnce() -> String) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|_| {
        assert!(
            std::env::var_os("BLESS").is_some(),
            "{} is missing; BLESS=1 writes it",
            path.display()
        );
        let made = other();
        std::fs::write(path, &made).unwrap();
        made
    })
}

#[test]
fn bytes_and_text_of_each_vector_are_the_same_message() {
    let dictionary = Dictionary::standard();
    let mut names: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().with_extension(""))
        .collect();
    names.sort();
    names.dedup();
    assert!(names.len() >= 8);
    for name in names {
        let (hex_file, text_file) = (name.with_extension("hex"), name.with_extension("txt"));
        let shown = name.display();
        let bytes = unhex(&read(&hex_file, || {
            let text = std::fs::read_to_string(&text_file).unwrap();
            hex(text::parse(&text, dictionary)
                .unwrap_or_else(|error| panic!("{shown}.txt:{error}"))
                .as_bytes())
        }));
        let message = Message::parse(&bytes[..]).unwrap_or_else(|fault| panic!("{shown}: {fault}"));
        let printed = format!("{}\n", text::print(&message, dictionary));
        let expected = read(&text_file, || printed.clone());
        assert_eq!(printed, expected, "{shown}");
        assert_eq!(
            text::parse(&expected, dictionary).unwrap().as_bytes(),
            bytes,
            "{shown}"
        );
        check(&message, dictionary, Strictness::Pedantic).unwrap_or_else(|fault| panic!("{shown}: {fault}"));
    }
}
