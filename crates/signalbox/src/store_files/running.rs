//! `signalbox store backup FUNCTION TO`: a copy of the store of a running function, by its admin endpoint.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::store::BackedUp;
use anyhow::{Context as _, anyhow};
use clap::Args;
use function::store_copies::PATH;
use serde_json::Value;

use crate::config::Config;
use crate::failure::Failure;
use crate::functions::{self, Function};
use crate::inspect;

/// Between two looks at what has become of the copy.
const PAUSE: Duration = Duration::from_millis(200);

/// Where the admin endpoint of the function is.
#[derive(Debug, Args)]
pub(crate) struct EndpointArgs {
    /// Configuration of the running function, for its admin address; without it the default
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Its admin endpoint, in place of that of the configuration
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<SocketAddr>,
}

/// The function that is meant, where a directory could be as well: a store of that name in the working directory comes first.
pub(crate) fn named(directory: &Path) -> Option<&'static Function> {
    let function = functions::find(directory.to_str()?)?;
    (!directory.join("store.json").exists()).then_some(function)
}

/// Has the function copy its store, and waits for it.
pub(crate) fn backup(function: &Function, to: &Path, endpoint: &EndpointArgs) -> Result<BackedUp, Failure> {
    let admin = match endpoint.admin {
        Some(admin) => admin,
        None => (function.admin)(&Config::load(endpoint.config.as_deref())?),
    };
    // The working directory of that process is another.
    let to = std::path::absolute(to).context("the directory of the copy")?;
    let text = to
        .to_str()
        .ok_or_else(|| anyhow!("{} is not text", to.display()))?;
    inspect::change(
        admin,
        "POST",
        &format!("{PATH}?to={}", function::pages::segment(text)),
    )?;
    loop {
        let page = inspect::get(admin, PATH)?;
        let page: Value = serde_json::from_str(&page).context("what has become of the copy")?;
        if page["to"] != text {
            return Err(anyhow!("another backup has begun meanwhile: {page}").into());
        }
        match page["state"].as_str() {
            Some("inProgress") => std::thread::sleep(PAUSE),
            Some("complete") => return Ok(serde_json::from_value(page["made"].clone())?),
            _ => {
                let reason = page["reason"].as_str().unwrap_or("it says no reason").to_owned();
                return Err(anyhow!("no backup was made: {reason}").into());
            }
        }
    }
}
