//! AppIdWL_Config, AppCmdCst_Config, VplmnORCst_Config and MsgRateMon_Config: applications and commands.

use ahash::{AHashMap, AHashSet};

use super::partners::find_lower;
use super::{Reading, number};
use crate::csv::Row;

/// Applications and commands.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    applications: AHashSet<u32>,
    commands: AHashSet<(u32, u32)>,
    visited: AHashSet<(u32, u32)>,
    /// Messages per second: by application, command and peer in lower case; of an empty name: each other peer.
    rates: AHashMap<(u32, u32), AHashMap<String, u32>>,
}

impl Commands {
    pub(super) fn load(reading: &mut Reading<'_>) -> Self {
        let mut all = Self::default();
        let sheet = reading.sheet("AppIdWL_Config", &["Application_ID"], 1);
        reading.each(&sheet, |row| {
            if all.applications.insert(application(row)?) {
                return Ok(());
            }
            Err(format!("the application {} is there already", row.field(0)))
        });
        let columns = ["Application_ID", "Command_Codes"];
        let sheet = reading.sheet("AppCmdCst_Config", &columns, 2);
        reading.each(&sheet, |row| add(row, &mut all.commands));
        let sheet = reading.sheet("VplmnORCst_Config", &columns, 2);
        reading.each(&sheet, |row| add(row, &mut all.visited));
        let columns = ["Application_ID", "Command_Code", "Messages_Per_Second", "Peer"];
        let sheet = reading.sheet("MsgRateMon_Config", &columns, 3);
        reading.each(&sheet, |row| all.add_rate(row));
        all
    }

    fn add_rate(&mut self, row: &Row) -> Result<(), String> {
        let key = (application(row)?, command(row.field(1))?);
        let rate = number(row, 2, "a number of messages per second")?;
        let peer = match row.field(3) {
            "*" => String::new(),
            peer => peer.to_ascii_lowercase(),
        };
        match self.rates.entry(key).or_default().insert(peer, rate) {
            Some(_) => Err("the same application, command and peer are there already".to_owned()),
            None => Ok(()),
        }
    }

    pub(crate) fn has_application(&self, application: u32) -> bool {
        self.applications.contains(&application)
    }

    pub(crate) fn has_command(&self, application: u32, command: u32) -> bool {
        self.commands.contains(&(application, command))
    }

    /// Whether requests of this command name the visited network.
    pub(crate) fn names_visited(&self, application: u32, command: u32) -> bool {
        self.visited.contains(&(application, command))
    }

    /// Messages per second of a command that a peer may send.
    pub(crate) fn rate(&self, application: u32, command: u32, peer: &str) -> Option<u32> {
        let peers = self.rates.get(&(application, command))?;
        let own = find_lower(peer.as_bytes(), |peer| peers.get(peer));
        own.or_else(|| peers.get("")).copied()
    }
}

pub(super) fn application(row: &Row) -> Result<u32, String> {
    number(row, 0, "an Application_ID")
}

pub(super) fn command(text: &str) -> Result<u32, String> {
    // Command codes have 24 bits (RFC 6733 §3).
    let code = text.parse().ok().filter(|code| *code < 1 << 24);
    code.ok_or_else(|| format!("`{text}` is not a command code"))
}

fn add(row: &Row, to: &mut AHashSet<(u32, u32)>) -> Result<(), String> {
    let application = application(row)?;
    let mut any = false;
    for text in row.list(1) {
        any = true;
        if !to.insert((application, command(text)?)) {
            return Err(format!(
                "command {text} of application {application} is there already"
            ));
        }
    }
    if any {
        return Ok(());
    }
    Err("lists no command: it can never match".to_owned())
}
