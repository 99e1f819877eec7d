//! The HTML of a page: headings, tables and forms around escaped text.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::Site;
use crate::contract::Page;
use crate::pages::{cell, is_unseen};

/// Rows of a table at most; a filter finds the others.
const MOST_ROWS: usize = 1_000;
/// Characters of a cell at most.
const MOST_CELL: usize = 2_000;
/// Members whose values name one thing: other tables that have them show the same thing.
const IDENTITIES: &[&str] = &["/nfInstanceId", "/host", "/endpoint", "/nfType"];

type Columns = [(&'static str, &'static str)];

/// A text as a text node or the value of an attribute in quotes. Characters that are not seen or reorder text are shown by
/// their numbers.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || is_unseen(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// An escaped text of bounded length.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(MOST_CELL).collect();
    match short.len() < text.len() {
        true => format!("{}… ({} octets)", escaped(&short), text.len()),
        false => escaped(&short),
    }
}

/// The first page of a function.
pub(super) fn index(site: &Site, status: &Value) -> String {
    let mut content = String::new();
    let word = |name: &str| cell(status.get(name));
    let _ = writeln!(
        content,
        "<p><strong>{}</strong>: release {}, process {}, up since {}</p>",
        shown(&word("state")),
        shown(&word("version")),
        shown(&word("process")),
        shown(&word("upSince"))
    );
    content.push_str(&wrongs(status));
    content.push_str(
        "<h2>Pages</h2>\n<table>\n<tr><th scope=\"col\">page</th><th scope=\"col\">what it shows</th></tr>\n",
    );
    for page in site.all().filter(|page| page.method() == "GET") {
        let opened = match page.path.contains("{}") {
            true => form(page, ""),
            false => format!("<a href=\"{}\">{}</a>", escaped(page.path), escaped(page.name)),
        };
        let _ = writeln!(
            content,
            "<tr><td>{opened}</td><td>{}</td></tr>",
            escaped(page.about)
        );
    }
    content.push_str("</table>\n<h2>Changes</h2>\n<p>Changes are made by command, such as:</p>\n<ul>\n");
    for page in site.all().filter(|page| page.method() != "GET") {
        let argument = page.argument.unwrap_or_default();
        let command = format!("signalbox {} {} {argument}", site.function, page.name);
        let _ = writeln!(
            content,
            "<li><code>{}</code> ({} {}): {}</li>",
            escaped(command.trim()),
            page.method(),
            escaped(page.path),
            escaped(page.about)
        );
    }
    content.push_str("</ul>\n");
    document(site, "", &content)
}

/// What is wrong, with the remedies.
fn wrongs(status: &Value) -> String {
    let rows = status["wrong"].as_array().map_or(&[][..], Vec::as_slice);
    if rows.is_empty() {
        return "<p>Nothing is wrong.</p>\n".to_owned();
    }
    let columns = [("what", "/what"), ("detail", "/detail"), ("remedy", "/remedy")];
    format!("<h2>Wrong</h2>\n{}", table(&columns, rows, "", &|_, _| None))
}

/// A page of text.
pub(super) fn text(site: &Site, title: &str, text: &str) -> String {
    document(site, title, &format!("<pre>{}</pre>\n", escaped(text)))
}

/// A page of JSON, as tables where it has rows.
pub(super) fn value(
    site: &Site,
    title: &str,
    page: Option<&'static Page>,
    value: &Value,
    filter: &str,
) -> String {
    let mut content = String::new();
    if let Some(page) = page {
        let _ = writeln!(content, "<p>{}</p>", escaped(page.about));
        if page.path.contains("{}") {
            content.push_str(&form(page, ""));
        }
    }
    let columns = page.map_or(&[][..], |page| page.columns);
    // Active alarms are a list within the page.
    match (value.get("active").unwrap_or(value), columns.is_empty()) {
        (Value::Array(rows), false) => {
            let base = page.filter(|page| !page.path.contains("{}"));
            if base.is_some() {
                content.push_str(&filter_form(filter));
            }
            let link = |pointer: &str, text: &str| link(site, page, pointer, text);
            content.push_str(&table(columns, rows, filter, &link));
            content.push_str(&advice(value));
        }
        (Value::Object(members), _) => content.push_str(&object(members)),
        (Value::Array(rows), true) if rows.iter().all(Value::is_object) => content.push_str(&inferred(rows)),
        _ => content.push_str(&yaml(value)),
    }
    let json = "<p><a href=\"?format=json\">as JSON</a></p>\n";
    if page.is_some_and(|page| !page.path.contains('?')) {
        content.push_str(json);
    }
    document(site, title, &content)
}

/// Alarms: those cleared last, and what each active one means and asks for.
fn advice(page: &Value) -> String {
    let Some(cleared) = page.get("cleared").and_then(Value::as_array) else {
        return String::new();
    };
    let mut content = String::new();
    let mut shown_before = Vec::new();
    for alarm in page["active"].as_array().into_iter().flatten() {
        let number = &alarm["number"];
        if shown_before.contains(&number) {
            continue;
        }
        shown_before.push(number);
        let word = |name: &str| shown(&cell(alarm.get(name)));
        let _ = writeln!(
            content,
            "<h2 id=\"advice-{}\">{} {}</h2>\n<p>{}</p>\n<p><strong>Advice:</strong> {}</p>",
            word("number"),
            word("number"),
            word("name"),
            word("text"),
            word("advice")
        );
    }
    let columns = [
        ("number", "/number"),
        ("name", "/name"),
        ("about", "/instance"),
        ("raised", "/raised"),
        ("cleared", "/cleared"),
        ("detail", "/detail"),
    ];
    content + "<h2>Cleared</h2>\n" + &table(&columns, cleared, "", &|_, _| None)
}

/// Where a cell leads: to the page of what the row is about, to the advice of an alarm, or to another table that has it.
fn link(site: &Site, page: Option<&'static Page>, pointer: &str, text: &str) -> Option<String> {
    let page = page?;
    if text.is_empty() || text == "-" {
        return None;
    }
    if page.path == "/alarms" {
        let is_number = pointer == "/number" && text.bytes().all(|byte| byte.is_ascii_digit());
        return is_number.then(|| format!("#advice-{text}"));
    }
    let is_first = page.columns.first().is_some_and(|(_, first)| *first == pointer);
    let own = format!("{}/{{}}", page.path);
    let readable = |other: &&'static Page| other.method() == "GET";
    if let Some(one) = site
        .all()
        .filter(readable)
        .find(|other| is_first && other.path == own)
    {
        return Some(one.path_for(text));
    }
    let has_it = |other: &&'static Page| {
        let columns = other.columns.iter().any(|(_, column)| *column == pointer);
        columns && other.path != page.path && !other.path.contains("{}")
    };
    let identifies = IDENTITIES.contains(&pointer);
    let other = site
        .all()
        .filter(readable)
        .find(|other| identifies && has_it(other))?;
    Some(format!("{}?filter={}", other.path, crate::pages::segment(text)))
}

/// The members of an object: single values in one table, lists and objects below.
fn object(members: &Map<String, Value>) -> String {
    let mut single = String::new();
    let mut below = String::new();
    for (name, value) in members {
        match value {
            Value::Array(rows) if rows.iter().any(Value::is_object) => {
                let _ = writeln!(below, "<h2>{}</h2>\n{}", shown(name), inferred(rows));
            }
            Value::Object(inner) if !inner.is_empty() => {
                let _ = writeln!(below, "<h2>{}</h2>\n{}", shown(name), yaml(value));
            }
            _ => {
                let (name, text) = (shown(name), shown(&cell(Some(value))));
                let _ = writeln!(single, "<tr><th scope=\"row\">{name}</th><td>{text}</td></tr>");
            }
        }
    }
    match single.is_empty() {
        true => below,
        false => format!("<table>\n{single}</table>\n{below}"),
    }
}

/// Objects as rows, with a column for each member that any of the first ones has.
fn inferred(rows: &[Value]) -> String {
    let mut names: Vec<&String> = Vec::new();
    for row in rows.iter().take(MOST_ROWS) {
        for name in row.as_object().into_iter().flat_map(Map::keys) {
            if names.len() < 40 && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let mut out = head(names.iter().map(|name| name.as_str()));
    for row in rows.iter().take(MOST_ROWS) {
        let cells = names
            .iter()
            .map(|name| format!("<td>{}</td>", shown(&cell(row.get(name.as_str())))));
        let _ = writeln!(out, "<tr>{}</tr>", cells.collect::<String>());
    }
    out + "</table></div>\n" + &count(rows.len().min(MOST_ROWS), rows.len())
}

/// A table with a column per title and JSON pointer; only rows that contain `filter`.
fn table(
    columns: &Columns,
    rows: &[Value],
    filter: &str,
    link: &dyn Fn(&str, &str) -> Option<String>,
) -> String {
    let mut out = head(columns.iter().map(|(title, _)| *title));
    let mut shown_rows = 0;
    for row in rows {
        let cells: Vec<(&str, String)> = columns
            .iter()
            .map(|(_, pointer)| (*pointer, cell(row.pointer(pointer))))
            .collect();
        if shown_rows >= MOST_ROWS || !cells.iter().any(|(_, cell)| cell.contains(filter)) {
            continue;
        }
        shown_rows += 1;
        out.push_str("<tr>");
        for (pointer, text) in cells {
            let content = match link(pointer, &text).filter(|_| text.len() <= MOST_CELL) {
                Some(target) => format!("<a href=\"{}\">{}</a>", escaped(&target), shown(&text)),
                None => shown(&text),
            };
            let _ = write!(out, "<td>{content}</td>");
        }
        out.push_str("</tr>\n");
    }
    out + "</table></div>\n" + &count(shown_rows, rows.len())
}

fn head<'a>(titles: impl Iterator<Item = &'a str>) -> String {
    let titles = titles.map(|title| format!("<th scope=\"col\">{}</th>", shown(title)));
    let titles: String = titles.collect();
    format!("<div class=\"wide\" tabindex=\"0\"><table>\n<tr>{titles}</tr>\n")
}

fn count(shown: usize, all: usize) -> String {
    match (shown, all) {
        (1, 1) => "<p>1 entry</p>\n".to_owned(),
        (shown, all) if shown == all => format!("<p>{all} entries</p>\n"),
        (shown, all) => format!("<p>{shown} of {all} entries</p>\n"),
    }
}

fn yaml(value: &Value) -> String {
    format!("<pre>{}</pre>\n", escaped(&settings::to_yaml(value)))
}

/// A box for the argument of a page.
fn form(page: &Page, argument: &str) -> String {
    let (name, what) = (escaped(page.name), escaped(page.argument.unwrap_or("argument")));
    format!(
        "<form action=\"/open\"><input type=\"hidden\" name=\"page\" value=\"{name}\">\
         <label>{name} {what} <input name=\"argument\" value=\"{}\" required></label> \
         <button>Show</button></form>\n",
        escaped(argument)
    )
}

fn filter_form(filter: &str) -> String {
    let filter = shown(filter);
    format!(
        "<form><label>Rows that contain <input name=\"filter\" value=\"{filter}\"></label> <button>Filter</button></form>\n"
    )
}

/// A whole document.
fn document(site: &Site, title: &str, content: &str) -> String {
    let function = escaped(&site.function.to_uppercase());
    let heading = match title {
        "" => function.clone(),
        title => format!("{function}: {}", shown(title)),
    };
    let lists = site
        .all()
        .filter(|page| page.method() == "GET" && !page.path.contains("{}"));
    let links = lists.map(|page| format!("<a href=\"{}\">{}</a>\n", escaped(page.path), escaped(page.name)));
    let links: String = links.collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{heading}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"/style.css\">\n</head>\n\
         <body>\n<nav>\n<a href=\"/\">{function}</a>\n{links}</nav>\n<main>\n<h1>{heading}</h1>\n{content}</main>\n</body>\n</html>\n"
    )
}
