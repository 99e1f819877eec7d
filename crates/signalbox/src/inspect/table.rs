//! Lists as tables for people.

use function::pages::{cell, figure};
use serde_json::Value;

/// A table with a column per title and JSON pointer, as wide as its content; only rows that contain `filter`.
pub(super) fn render(columns: &[(&str, &str)], rows: &[Value], filter: &str) -> String {
    let titles: Vec<String> = columns.iter().map(|(title, _)| (*title).to_owned()).collect();
    let body = rows.iter().map(|row| {
        columns
            .iter()
            .map(|(_, pointer)| cell(row.pointer(pointer)))
            .collect::<Vec<_>>()
    });
    let body = body.filter(|row| row.iter().any(|cell| cell.contains(filter)));
    let lines: Vec<Vec<String>> = std::iter::once(titles).chain(body).collect();
    let width = |column: usize| {
        lines
            .iter()
            .filter_map(|line| line.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let mut printed = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            printed.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(printed.trim_end());
        text.push('\n');
    }
    let shown = lines.len() - 1;
    text.push_str(&match (shown, rows.len()) {
        (1, 1) => "1 entry\n".to_owned(),
        (shown, all) if shown == all => format!("{all} entries\n"),
        (shown, all) => format!("{shown} of {all} entries\n"),
    });
    text
}

/// A page whose fractions are rounded to two digits, for people.
pub(super) fn rounded(value: Value) -> Value {
    match value {
        Value::Number(number) => figure(&number).parse().map_or(Value::Null, Value::Number),
        Value::Array(items) => items.into_iter().map(rounded).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| (name, rounded(value)))
            .collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_are_as_wide_as_their_content() {
        let rows = [json!({"a": "long \u{1b}text", "b": [1, "x"]}), json!({"a": null})];
        assert_eq!(
            render(&[("first", "/a"), ("second", "/b")], &rows, ""),
            "first      second\nlong text  1 x\n-          -\n2 entries\n"
        );
        assert_eq!(
            render(&[("first", "/a")], &rows, "text"),
            "first\nlong text\n1 of 2 entries\n"
        );
    }

    #[test]
    fn fractions_have_two_digits() {
        let row = json!({"a": 0.386_759_661_410_571_5, "b": 100.0, "c": 12_345_678, "d": -0.001, "e": [0.5]});
        assert_eq!(
            render(
                &[("a", "/a"), ("b", "/b"), ("c", "/c"), ("d", "/d"), ("e", "/e")],
                std::slice::from_ref(&row),
                ""
            ),
            "a     b    c         d  e\n0.39  100  12345678  0  0.5\n1 entry\n"
        );
        assert_eq!(rounded(row)["a"], json!(0.39));
    }
}
