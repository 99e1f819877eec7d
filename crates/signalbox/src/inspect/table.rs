//! Lists as tables for people.

use serde_json::Value;

/// A table with a column per title and JSON pointer, as wide as its content.
pub(super) fn render(columns: &[(&str, &str)], rows: &[Value]) -> String {
    let titles: Vec<String> = columns.iter().map(|(title, _)| (*title).to_owned()).collect();
    let body = rows.iter().map(|row| {
        columns
            .iter()
            .map(|(_, pointer)| cell(row.pointer(pointer)))
            .collect::<Vec<_>>()
    });
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
    text.push_str(&match rows.len() {
        1 => "1 entry\n".to_owned(),
        count => format!("{count} entries\n"),
    });
    text
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        // What peers have written may hold anything; a terminal obeys control characters.
        Some(Value::String(text)) => text.chars().filter(|c| !c.is_control()).collect(),
        Some(Value::Array(items)) => {
            let each: Vec<String> = items.iter().map(|item| cell(Some(item))).collect();
            each.join(" ")
        }
        Some(other) => other.to_string(),
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
            render(&[("first", "/a"), ("second", "/b")], &rows),
            "first      second\nlong text  1 x\n-          -\n2 entries\n"
        );
    }
}
