//! `signalbox dsa replay`: what the security application would find in a capture.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use dsr::replay::{Named, Options, Refused, Report, Row};
use serde_json::Value;
use settings::Period;
use telemetry::logging::clean::{Bounded, Escape};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::config::Config;
use crate::failure::Failure;
use crate::print;

#[derive(Debug, Subcommand)]
pub(crate) enum DsaCommand {
    /// Show the messages of a capture to the measures of a configuration, and print what they find
    ///
    /// pcap or pcapng: Diameter over TCP or SCTP, in Ethernet, Linux cooked capture or raw IP, and the traces that a router
    /// writes. Nothing is sent, and no file is written. Peers are known by their capabilities exchanges and watchdogs, by the
    /// comments of traces, and by the addresses of the configuration. Exit code 1 when the file has no Diameter message.
    Replay(ReplayArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The capture
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Configuration of the router
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Name of the security application, where the configuration has several
    #[arg(long, value_name = "NAME")]
    application: Option<String>,
    /// A peer that the capture does not name: 192.0.2.1=HOST or 192.0.2.1:3868=HOST
    #[arg(long = "peer", value_name = "ADDRESS=HOST")]
    peers: Vec<Named>,
    /// In place of the setting `learning`; 0s: an unknown subscriber is a finding from the first message on
    #[arg(long, value_name = "PERIOD")]
    learning: Option<Period>,
    /// Lines to print of each partner, measure and outcome
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    examples: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Does what the command says.
pub(crate) fn run(command: &DsaCommand) -> Result<ExitCode, Failure> {
    let DsaCommand::Replay(args) = command;
    let config = Config::load(Some(&args.config))?;
    let options = Options {
        application: args.application.clone(),
        peers: args.peers.clone(),
        learning: args.learning.map(Period::duration),
        examples: args.examples,
    };
    let report = dsr::replay::replay(&config.dsr, &args.file, &options).map_err(|refused| match refused {
        Refused::Usage(mistake) => Failure::Usage(mistake),
        Refused::File(mistake) => Failure::Other(anyhow::Error::msg(mistake)),
    })?;
    match args.json {
        true => print(&(serde_json::to_string_pretty(&report)? + "\n"))?,
        false => print(&page(&report))?,
    }
    if !report.has_messages() {
        let file = args.file.display();
        return Err(anyhow::anyhow!("{file}: no Diameter message of an application").into());
    }
    Ok(ExitCode::SUCCESS)
}

fn page(report: &Report) -> String {
    let mut page = String::new();
    let capture = &report.capture;
    let _ = writeln!(
        page,
        "{}: {} packets, {} messages{}",
        plain(&report.file),
        capture.packets,
        capture.messages,
        span(report)
    );
    let _ = writeln!(
        page,
        "{} requests ({} of them sent on by a node that is in the capture as well) and {} answers of applications",
        report.requests, report.copies, report.answers
    );
    let _ = writeln!(
        page,
        "{} messages screened, {} of them would be dropped or answered; {} subscribers known at the end",
        report.screened, report.blocked, report.subscribers
    );
    findings(&mut page, &report.findings);
    unread(&mut page, report);
    page
}

fn span(report: &Report) -> String {
    let shown = |seconds: f64| {
        let at = OffsetDateTime::from_unix_timestamp_nanos((seconds * 1e6).round() as i128 * 1000).ok()?;
        at.format(&Rfc3339).ok()
    };
    let both = report.first.and_then(shown).zip(report.last.and_then(shown));
    both.map_or_else(String::new, |(first, last)| format!(" from {first} to {last}"))
}

fn findings(page: &mut String, rows: &[Row]) {
    if rows.is_empty() {
        page.push_str("\nno findings\n");
        return;
    }
    let width = |cell: fn(&Row) -> usize| rows.iter().map(cell).max().unwrap_or_default();
    let (partners, measures) = (
        width(|row| plain(&row.partner).chars().count()),
        width(|row| row.measure.len()),
    );
    page.push_str("\nfindings\n");
    for row in rows {
        let (partner, measure, outcome, count) = (plain(&row.partner), row.measure, row.outcome, row.count);
        let _ = writeln!(
            page,
            "  {partner:<partners$}  {measure:<measures$}  {outcome:<8}  {count}"
        );
        for example in &row.examples {
            let _ = writeln!(page, "    {}", line(example));
        }
    }
}

/// A line of the file of findings, for people.
fn line(finding: &Value) -> String {
    let text = |name: &str| finding[name].as_str().unwrap_or("?").to_owned();
    let command = finding["command"].as_str().map_or_else(
        || format!("command {}", finding["commandCode"]),
        ToOwned::to_owned,
    );
    let imsi = finding["imsi"]
        .as_str()
        .map_or_else(String::new, |imsi| format!(", IMSI {imsi}"));
    let line = format!(
        "{command} of {} at {}: {} (Session-Id {}{imsi})",
        text("originHost"),
        text("peer"),
        text("reason"),
        text("sessionId")
    );
    plain(&line)
}

/// A text of a message or a table without what a terminal obeys or hides, which is escaped.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // A String takes all.
    let _ = Bounded::new(&mut plain, usize::MAX, Escape::Treacherous).put(format_args!("{text}"));
    plain
}

/// Bound on the senders that a page names.
const MAX_UNNAMED: usize = 10;

/// What could not be read, or is not known.
fn unread(page: &mut String, report: &Report) {
    let capture = &report.capture;
    let counts = [
        (
            capture.packets_cut,
            "packets of which the capture has only the beginning",
        ),
        (
            capture.gaps,
            "gaps in streams: segments or chunks that the capture does not have",
        ),
        (
            capture.bytes_skipped,
            "bytes of streams that belong to no whole message",
        ),
        (
            capture.ip_fragments,
            "fragments of IP packets, which are not joined",
        ),
        (
            capture.packets_of_others,
            "packets that are not TCP, SCTP or Diameter",
        ),
        (
            capture.packets_beyond_bounds,
            "packets of more streams than are followed",
        ),
        (
            capture.packets_out_of_time,
            "packets with a time far from their neighbours, which count as of the time of one of these",
        ),
        (capture.streams_of_others, "streams without Diameter messages"),
        (capture.streams_encrypted, "streams with TLS or DTLS"),
        (
            report.malformed,
            "messages with an AVP that is framed wrong, which the router refuses",
        ),
        (
            report.answers_without_request,
            "answers whose requests the capture does not have",
        ),
        (
            report.unnamed,
            "requests of senders without a name, which count as foreign (--peer ADDRESS=HOST)",
        ),
        (
            u64::from(capture.is_damaged),
            "end within a packet, or damage from there on",
        ),
    ];
    if counts.iter().any(|(count, _)| *count > 0) {
        page.push_str("\nnot read, or not known\n");
    }
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        let _ = writeln!(page, "  {count} {what}");
    }
    let unnamed: Vec<_> = report.peers.iter().filter(|peer| peer.host.is_none()).collect();
    for peer in unnamed.iter().take(MAX_UNNAMED) {
        let _ = writeln!(page, "  sender without a name: {}", peer.address);
    }
    if let Some(more @ 1..) = unnamed.len().checked_sub(MAX_UNNAMED) {
        let _ = writeln!(page, "  and {more} more; --json has all of them");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::logging::clean::is_treacherous;

    #[test]
    fn nothing_of_a_message_commands_the_terminal() {
        let finding = serde_json::json!({
            "command": "ULR", "originHost": "mme\u{1b}]0;x\u{7}\r\n", "peer": "a\u{202e}b", "reason": "no\u{9b}2J",
            "sessionId": "s;\u{0}1", "imsi": "26201\u{8}",
        });
        let rows = [Row {
            partner: "we\u{1b}[2Jst".to_owned(),
            examples: vec![finding],
            measure: "OhOrFrmChk",
            outcome: "detected",
            count: 1,
        }];
        let mut page = String::new();
        findings(&mut page, &rows);
        let treacherous = page.chars().filter(|char| is_treacherous(*char) && *char != '\n');
        assert_eq!(treacherous.count(), 0, "{page:?}");
        assert_eq!(page.lines().count(), 4, "{page}");
        assert!(
            page.contains("ULR of mme\\u{1b}]0;x\\u{7}\\r\\n at a\\u{202e}b"),
            "{page}"
        );
    }
}
