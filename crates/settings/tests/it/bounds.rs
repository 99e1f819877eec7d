//! A configuration file is a stranger's bytes: small files that grow large are refused.

use std::fmt::Write;

use super::{read, refused};

#[test]
fn nested_aliases_do_not_multiply() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = level - 1;
        let _ = writeln!(
            text,
            "a{level}: &a{level} [{}]",
            vec![format!("*a{before}"); 10].join(", ")
        );
    }
    assert!(refused(&text).contains("too many values"));
}

#[test]
fn chained_aliases_do_not_nest_without_end() {
    let mut text = String::from("a0: &a0 [x]\n");
    for level in 1..2000 {
        let _ = writeln!(text, "a{level}: &a{level} [*a{}]", level - 1);
    }
    assert!(refused(&text).contains("nested too deeply"));
}

#[test]
fn an_alias_to_what_it_stands_in_is_refused() {
    assert!(refused("a: &a [*a]\n").contains("alias"));
}

#[test]
fn deep_nesting_is_refused_in_both_styles() {
    assert!(refused(&"[".repeat(100_000)).contains("nested too deeply"));
    assert!(refused(&"{a: ".repeat(100_000)).contains("nested too deeply"));
    assert!(refused(&"- ".repeat(10_000)).contains("nested too deeply"));
}

#[test]
fn large_texts_are_refused() {
    let text = "#".repeat(17 << 20);
    assert!(refused(&text).contains("at most"));
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let report = refused("\"\u{1b}[31mred\": 1\n\"a\\e[0m\": 2\n");
    assert!(!report.contains('\u{1b}'), "{report:?}");
}

#[test]
fn many_keys_are_read_in_reasonable_time() {
    let mut text = String::from("validity:\n");
    for key in 0..50_000 {
        let _ = writeln!(text, "  k{key}: 1s");
    }
    assert_eq!(read(&text).unwrap().validity.len(), 50_000);
}
