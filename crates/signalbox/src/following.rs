//! `signalbox follow`: the messages of a subscriber in all functions, as a ladder and as a capture for Wireshark.

mod capture;
mod picture;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use clap::Args;
use follow::{Identity, MAX_MESSAGES, Message, Page, ladder};
use function::pages::segment;
use settings::Period;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::Config;
use crate::failure::{FAILED, Failure};
use crate::functions::{self, Function};
use crate::overview::{Endpoint, ask_all, endpoints};
use crate::{complain, inspect, print};

const TIMEOUT: Duration = Duration::from_secs(3);
/// Pause between two looks at the functions.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct FollowArgs {
    /// SUPI, GPSI, address of the UE, Session-Id or another text of the messages
    #[arg(value_name = "IDENTITY")]
    identity: Identity,
    /// Functions; without any those that have a section in the configuration, or else all
    #[arg(value_parser = functions::parse, value_name = "FUNCTION", conflicts_with = "admin")]
    functions: Vec<&'static Function>,
    /// How long, 1h at most; Ctrl-C ends it before and prints what has come
    #[arg(long = "for", value_name = "TIME", default_value = "60s")]
    period: Period,
    /// Write the messages into this file as well, for Wireshark
    #[arg(long, value_name = "FILE")]
    pcapng: Option<PathBuf>,
    /// Configuration, for the admin addresses; without it the defaults
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Admin endpoint to ask in place of those of the configuration; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    admin: Vec<SocketAddr>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A function that follows the subscriber.
struct Source {
    name: String,
    admin: SocketAddr,
    /// Whether it followed the subscriber before, at the request of another operator.
    was_followed: bool,
    /// Which start of the function the numbers are of.
    start: Option<u64>,
    after: u64,
    messages: Vec<Message>,
    not_kept: Option<u64>,
    /// Copies that did not fit into its ring since.
    missed: u64,
    is_silent: bool,
}

pub(crate) fn run(args: &FollowArgs) -> Result<ExitCode, Failure> {
    let (endpoints, _): (Vec<Endpoint>, Config) =
        endpoints(&args.functions, args.config.as_ref(), &args.admin)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // Before functions are asked, so that an interrupt ends also what was begun until then.
    let mut interrupt = runtime.block_on(async { signal(SignalKind::interrupt()) })?;
    let until = Instant::now() + args.period.duration();
    let mut sources = begin(&endpoints, args);
    if sources.is_empty() {
        complain(&"no function follows the subscriber");
        return Ok(ExitCode::from(FAILED));
    }
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    complain(&format!(
        "following {} for {} at {}; Ctrl-C ends it",
        args.identity,
        args.period,
        names.join(", ")
    ));
    while Instant::now() < until {
        let pause = PAUSE.min(until.saturating_duration_since(Instant::now()));
        let is_interrupted = runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => true,
                () = tokio::time::sleep(pause) => false,
            }
        });
        collect(&mut sources, args, until);
        if is_interrupted {
            break;
        }
    }
    end(&sources, args);
    show(sources, args)?;
    Ok(ExitCode::SUCCESS)
}

/// The path of the pages about the subscriber.
fn path(args: &FollowArgs) -> String {
    format!("/follow/{}", segment(&args.identity.to_string()))
}

/// Has all functions follow the subscriber; those that do.
fn begin(endpoints: &[Endpoint], args: &FollowArgs) -> Vec<Source> {
    let asked = ask_all(endpoints, |endpoint| {
        let before =
            inspect::fetch(endpoint.address, "/follow", TIMEOUT).map_err(|error| error.to_string())?;
        let before: serde_json::Value = serde_json::from_str(&before).unwrap_or_default();
        let followed = before["followed"].as_array().into_iter().flatten();
        let wanted = args.identity.to_string();
        let known = followed.into_iter().find(|one| one["identity"] == *wanted);
        // The time of another operator is not cut.
        let ends = follow::rfc3339(SystemTime::now() + args.period.duration());
        let until = known.and_then(|known| known["until"].as_str());
        if until.is_none_or(|until| *until < *ends) {
            let put = format!("{}?for={}", path(args), args.period);
            inspect::change(endpoint.address, "PUT", &put).map_err(|error| error.to_string())?;
        }
        Ok::<_, String>(Source {
            name: endpoint.name(),
            admin: endpoint.address,
            was_followed: known.is_some(),
            start: before["start"].as_u64(),
            after: 0,
            messages: Vec::new(),
            not_kept: None,
            missed: 0,
            is_silent: false,
        })
    });
    let mut sources = Vec::new();
    for (endpoint, outcome) in endpoints.iter().zip(asked) {
        match outcome {
            Ok(source) => sources.push(source),
            Err(why) => complain(&format!("{}: {why}", endpoint.name())),
        }
    }
    sources
}

/// Takes what has come since the last look.
fn collect(sources: &mut [Source], args: &FollowArgs, until: Instant) {
    std::thread::scope(|scope| {
        for source in sources {
            scope.spawn(move || source.collect(args, until));
        }
    });
}

impl Source {
    fn collect(&mut self, args: &FollowArgs, until: Instant) {
        let identity = segment(&args.identity.to_string());
        loop {
            let path = format!("/follow/messages?after={}&identity={identity}", self.after);
            let page = inspect::fetch(self.admin, &path, TIMEOUT).map_err(|error| error.to_string());
            let page: Result<Page, String> =
                page.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
            let page = match page {
                Ok(page) => page,
                Err(why) => {
                    if !std::mem::replace(&mut self.is_silent, true) {
                        complain(&format!("{}: {why}", self.name));
                    }
                    return;
                }
            };
            self.is_silent = false;
            if *self.start.get_or_insert(page.start) != page.start {
                self.begin_again(page.start, args, until);
                continue;
            }
            let before = *self.not_kept.get_or_insert(page.not_kept);
            self.missed = page.not_kept.saturating_sub(before);
            self.messages.extend(page.messages);
            let has_more = page.more && page.next > self.after;
            self.after = page.next;
            if !has_more {
                return;
            }
        }
    }

    /// The function has been restarted, and follows no subscriber since.
    fn begin_again(&mut self, start: u64, args: &FollowArgs, until: Instant) {
        complain(&format!(
            "{}: was restarted; messages are missing until now",
            self.name
        ));
        (self.start, self.after, self.not_kept) = (Some(start), 0, None);
        self.was_followed = false;
        let left = until.saturating_duration_since(Instant::now()).as_secs().max(1);
        if let Err(error) = inspect::change(self.admin, "PUT", &format!("{}?for={left}s", path(args))) {
            complain(&format!("{}: {error}", self.name));
        }
    }
}

/// Ends following where this command began it.
fn end(sources: &[Source], args: &FollowArgs) {
    for source in sources.iter().filter(|source| !source.was_followed) {
        if let Err(error) = inspect::remove(source.admin, &path(args)) {
            complain(&format!("{}: {error}; it ends by itself", source.name));
        }
    }
}

fn show(sources: Vec<Source>, args: &FollowArgs) -> Result<(), Failure> {
    for source in sources.iter().filter(|source| source.missed > 0) {
        complain(&format!(
            "{}: {} messages did not fit (admin.followBytes)",
            source.name, source.missed
        ));
    }
    for source in sources
        .iter()
        .filter(|source| source.messages.len() >= MAX_MESSAGES as usize)
    {
        complain(&format!(
            "{}: following ended after {MAX_MESSAGES} messages",
            source.name
        ));
    }
    // Two functions of one name are two lanes.
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut lists = Vec::new();
    for mut source in sources {
        let name = source
            .messages
            .first()
            .map(|one| one.function.clone())
            .unwrap_or_default();
        let count = counts.entry(name).and_modify(|count| *count += 1).or_insert(1);
        if *count > 1 {
            let number = *count;
            source
                .messages
                .iter_mut()
                .for_each(|one| one.function = format!("{}-{number}", one.function));
        }
        lists.push(source.messages);
    }
    let arrows = ladder::arrows(lists);
    if let Some(file) = &args.pcapng {
        capture::write(file, &arrows).with_context(|| format!("writing {}", file.display()))?;
    }
    match args.json {
        true => print(&(serde_json::to_string_pretty(&arrows)? + "\n")),
        false => print(&picture::draw(&arrows)),
    }
}
