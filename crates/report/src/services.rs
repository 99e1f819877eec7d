//! Messages of the services that the guide's function consists of, beside those of ours.

use std::fmt::Write;

use crate::data::ServiceFigures;
use crate::figure;
use crate::svg::escape;

const HEADS: [&str; 7] = [
    "service of the guide",
    "MPS",
    "for each transaction",
    "mean ms",
    "ours: MPS",
    "for each transaction",
    "mean ms",
];
const ABOUT: &str = "Messages are requests and answers. A dash for ours: it is done within the process, without a message; \
                     a dash for the guide: not printed.";

fn cells(one: &ServiceFigures) -> [String; 7] {
    let known = |number: Option<f64>| number.map_or_else(|| "–".to_owned(), figure);
    [
        one.service.clone(),
        known(one.guide_mps),
        known(one.guide_per_transaction),
        known(one.guide_latency_ms),
        known(one.mps),
        known(one.per_transaction),
        known(one.latency_ms),
    ]
}

/// The table as Markdown.
pub(super) fn markdown(out: &mut String, services: &[ServiceFigures]) -> std::fmt::Result {
    if services.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Services inside the function\n\n{ABOUT}\n")?;
    writeln!(out, "| {} |\n|---|{}", HEADS.join(" | "), "--:|".repeat(6))?;
    services
        .iter()
        .try_for_each(|one| writeln!(out, "| {} |", cells(one).join(" | ")))
}

/// The table of a page.
pub(super) fn html(out: &mut String, services: &[ServiceFigures]) -> std::fmt::Result {
    if services.is_empty() {
        return Ok(());
    }
    write!(
        out,
        "<section><h2>Services inside the function</h2><p class=\"quiet\">{ABOUT}</p><div class=\"scroll\"><table><thead><tr>"
    )?;
    HEADS.iter().try_for_each(|head| write!(out, "<th>{head}</th>"))?;
    out.push_str("</tr></thead><tbody>");
    for one in services {
        out.push_str("<tr>");
        cells(one)
            .iter()
            .try_for_each(|cell| write!(out, "<td>{}</td>", escape(cell)))?;
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div></section>\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_printed_and_what_needs_no_message_are_dashes() {
        let services = [
            ServiceFigures {
                service: "udr-connector".to_owned(),
                guide_mps: Some(27_000.0),
                guide_per_transaction: Some(3.75),
                mps: Some(220.0),
                per_transaction: Some(1.5),
                ..ServiceFigures::default()
            },
            ServiceFigures {
                service: "<pre>".to_owned(),
                guide_latency_ms: Some(26.9),
                ..ServiceFigures::default()
            },
        ];
        let (mut text, mut page) = (String::new(), String::new());
        markdown(&mut text, &services).unwrap();
        html(&mut page, &services).unwrap();
        assert!(
            text.contains("| udr-connector | 27,000 | 3.75 | – | 220 | 1.5 | – |"),
            "{text}"
        );
        assert!(text.contains("| <pre> | – | – | 26.9 | – | – | – |"), "{text}");
        assert!(page.contains("<td>&lt;pre&gt;</td>"), "{page}");
        text.clear();
        markdown(&mut text, &[]).unwrap();
        assert!(text.is_empty());
    }
}
