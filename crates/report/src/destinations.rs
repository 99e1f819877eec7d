//! Where requests went, second by second: the site that served each, and what producers refused.

use std::fmt::Write;

use crate::data::{Destinations, Second};
use crate::figure;
use crate::svg::{self, Line, escape};

/// Classes of the style sheet for the lines of sites, in turn.
const CLASSES: [&str; 4] = ["ours", "other", "third", "fourth"];

/// The cells of the table: of each second, its end, the phase, what each site and each region has served, what was
/// refused.
fn rows(destinations: &Destinations) -> impl Iterator<Item = Vec<String>> {
    let regions = destinations.regions();
    destinations.seconds.iter().map(move |second| {
        let at = |list: &[u64], site: usize| list.get(site).copied().unwrap_or(0);
        let mut row = vec![format!("{:.1}", second.t), second.phase.clone()];
        let sites = 0..destinations.sites.len();
        row.extend(sites.map(|site| count(at(&second.served, site))));
        for (_, sites) in &regions {
            row.push(count(sites.iter().map(|site| at(&second.served, *site)).sum()));
        }
        row.push(count(second.refused.iter().sum()));
        row.push(count(second.refused_by_function));
        row
    })
}

/// The heads of the columns that [`rows`] fills.
fn heads(destinations: &Destinations) -> Vec<String> {
    let mut heads = vec!["s".to_owned(), "phase".to_owned()];
    heads.extend(destinations.sites.iter().map(|site| site.name.clone()));
    heads.extend(destinations.regions().iter().map(|(name, _)| (*name).to_owned()));
    heads.push("refused by producers".to_owned());
    heads.push("refused by the function".to_owned());
    heads
}

fn count(number: u64) -> String {
    match number {
        0 => "·".to_owned(),
        number => figure(number as f64),
    }
}

/// The plot and the table of a page.
pub(super) fn html(out: &mut String, destinations: &Destinations) -> std::fmt::Result {
    out.push_str("<section><h2>Where requests went</h2>");
    let series = |get: &dyn Fn(&Second) -> u64| -> Vec<(f64, f64)> {
        let seconds = destinations.seconds.iter();
        seconds.map(|second| (second.t, get(second) as f64)).collect()
    };
    let sites = destinations.sites.iter().enumerate();
    let mut lines: Vec<Line<'_>> = sites
        .map(|(at, site)| Line {
            name: &site.name,
            class: CLASSES[at % CLASSES.len()],
            points: series(&|second| second.served.get(at).copied().unwrap_or(0)),
        })
        .collect();
    lines.push(Line {
        name: "refused by producers",
        class: "bad",
        points: series(&|second| second.refused.iter().sum()),
    });
    out.push_str("<figure><figcaption><b>Served by site</b>");
    for line in &lines {
        write!(
            out,
            "<span class=\"key {}\">{}</span>",
            line.class,
            escape(line.name)
        )?;
    }
    let plot = svg::over_time(&lines, None, "requests", "requests by site over time");
    write!(
        out,
        "<span class=\"quiet more\">requests in each second, counted at the producers</span></figcaption>{plot}</figure>"
    )?;
    out.push_str("<details open><summary>Second by second</summary><div class=\"scroll\"><table><thead><tr>");
    for (column, head) in heads(destinations).iter().enumerate() {
        let class = if column == 1 { "" } else { " class=\"n\"" };
        write!(out, "<th{class}>{}</th>", escape(head))?;
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows(destinations) {
        out.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let class = if column == 1 { "" } else { " class=\"n\"" };
            write!(out, "<td{class}>{}</td>", escape(cell))?;
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div></details></section>\n");
    Ok(())
}

/// The table as Markdown.
pub(super) fn markdown(out: &mut String, destinations: &Destinations) -> std::fmt::Result {
    let heads = heads(destinations);
    writeln!(
        out,
        "\n## Where requests went\n\nRequests in each second, counted at the producers.\n"
    )?;
    writeln!(out, "| {} |", heads.join(" | "))?;
    writeln!(out, "|--:|---|{}", "--:|".repeat(heads.len().saturating_sub(2)))?;
    for row in rows(destinations) {
        writeln!(out, "| {} |", row.join(" | "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Site;

    fn two_regions() -> Destinations {
        let site = |name: &str, region: &str| Site {
            name: name.to_owned(),
            region: region.to_owned(),
        };
        Destinations {
            sites: vec![site("a", "east"), site("b", "west"), site("c", "east")],
            seconds: vec![Second {
                t: 1.04,
                phase: "a <is> dead".to_owned(),
                served: vec![0, 7, 30],
                refused: vec![4, 0, 1],
                refused_by_function: 2,
            }],
        }
    }

    #[test]
    fn a_row_has_sites_regions_and_refusals() {
        let destinations = two_regions();
        let row = rows(&destinations).next().unwrap();
        assert_eq!(row, ["1.0", "a <is> dead", "·", "7", "30", "30", "7", "5", "2"]);
        assert_eq!(row.len(), heads(&destinations).len());
    }

    #[test]
    fn renderings_have_each_second() {
        let mut page = String::new();
        html(&mut page, &two_regions()).unwrap();
        assert!(
            page.contains("a &lt;is&gt; dead") && !page.contains("<is>"),
            "{page}"
        );
        let mut text = String::new();
        markdown(&mut text, &two_regions()).unwrap();
        assert!(
            text.contains("| 1.0 | a <is> dead | · | 7 | 30 | 30 | 7 | 5 | 2 |"),
            "{text}"
        );
    }
}
