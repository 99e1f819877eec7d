//! `signalbox observability`: what an operator's Prometheus and Grafana need, as files.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Subcommand;

use crate::failure::Failure;
use crate::functions;
use crate::print;

/// Where the pages of this release are.
const DOCS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main");

/// What to do about the monitoring of the functions.
#[derive(Debug, Subcommand)]
pub(crate) enum PackCommand {
    /// Write rules, their tests, dashboards and the runbook
    Write {
        /// Directory for the files; it is created, and files of the same names are replaced
        directory: PathBuf,
        /// Where the pages of the documentation are: links of alerts to their runbook begin with it
        #[arg(long, value_name = "URL", default_value = DOCS)]
        docs: String,
    },
}

/// Does it, and prints a line for each file.
pub(crate) fn run(command: &PackCommand) -> Result<(), Failure> {
    let PackCommand::Write { directory, docs } = command;
    let mut written = String::new();
    for file in functions::pack(docs).files() {
        let path = directory.join(&file.path);
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        std::fs::write(&path, &file.text).with_context(|| format!("writing {}", path.display()))?;
        written.push_str(&format!("{}\n", path.display()));
    }
    print(&written)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use telemetry::metrics::Kind;
    use telemetry::{Declaration, When};

    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    fn metrics() -> Vec<Declaration> {
        let pack = functions::pack("");
        let sections = pack.common.into_iter().chain(pack.functions);
        sections.flat_map(|section| section.metrics).collect()
    }

    #[test]
    fn every_metric_is_on_a_dashboard() {
        let files = functions::pack("").files();
        let dashboards = files.iter().filter(|file| file.path.starts_with("dashboards/"));
        let all: String = dashboards.map(|file| file.text.as_str()).collect();
        for metric in metrics() {
            let name = match metric.kind {
                Kind::Histogram(_) => format!("({}_bucket{{", metric.name),
                Kind::Counter | Kind::Gauge => format!("({}{{", metric.name),
            };
            assert!(
                all.contains(&name) || all.contains(&format!("\"{}{{", metric.name)),
                "{name}"
            );
        }
    }

    #[test]
    fn every_alert_says_what_is_the_case_and_what_to_do() {
        let (mut names, mut links) = (BTreeSet::new(), BTreeSet::new());
        let files = functions::pack("").files();
        let runbook = files.iter().find(|file| file.path == "runbook.md").unwrap();
        for alert in functions::pack("").alerts() {
            assert!(names.insert(alert.name.clone()), "{} is there twice", alert.name);
            for text in [&alert.summary, &alert.description, &alert.advice] {
                assert!(text.len() > 10, "{}: {text}", alert.name);
            }
            assert!(
                !alert.fires.is_empty() && !alert.rests.is_empty(),
                "{}",
                alert.name
            );
            assert!(
                runbook.text.contains(&format!("\n## {}\n", alert.name)),
                "{}",
                alert.name
            );
            let (page, anchor) = alert.link.trim_start_matches('/').split_once('#').unwrap();
            let body = std::fs::read_to_string(root().join(page)).unwrap();
            let heading = format!("\n## {}\n", alert.name);
            let explicit = format!("<a id=\"{anchor}\">");
            assert!(
                body.contains(&explicit) || body.contains(&heading),
                "{}",
                alert.link
            );
            links.insert(anchor.to_owned());
        }
        // Each alarm of the page has an alert.
        let page = std::fs::read_to_string(root().join(telemetry::alarms::PAGE)).unwrap();
        for anchor in page
            .split("<a id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
        {
            assert!(
                !anchor.starts_with("alarm-") || links.contains(anchor),
                "{anchor} has no alert"
            );
        }
    }

    #[test]
    fn a_share_is_one_of_a_counter_that_exists() {
        let all = metrics();
        for metric in &all {
            if let Some(When::PartAbove { of, .. }) = metric.alert.map(|alert| alert.when) {
                let other = all.iter().find(|other| other.name == of);
                let is_counter = other.is_some_and(|other| other.kind == Kind::Counter);
                assert!(is_counter, "{}: {of}", metric.name);
            }
        }
    }
}
