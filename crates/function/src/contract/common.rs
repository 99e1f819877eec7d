use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use settings::Listen;
use tls::TlsFiles;

/// The settings that every function has, wherever its own type keeps them.
#[derive(Clone, Debug)]
pub struct Common<'a> {
    /// The address of its admin endpoint.
    pub admin: SocketAddr,
    /// Every listen address with its key in the settings, without the admin endpoint.
    pub listen: Vec<(String, SocketAddr)>,
    /// Its NF instance id, which its certificates may not contradict; empty for a function that is none.
    pub instance: &'a str,
    /// The directory of its data, which its journal is kept in; none: the journal ends with the process.
    pub directory: Option<&'a Path>,
    /// Worker threads; 0: one per core.
    pub workers: usize,
    /// The cores they run on; none: any.
    pub cores: &'a [usize],
    /// TLS of its service-based interface; none: cleartext.
    pub tls: Option<&'a TlsFiles>,
    /// TLS of the connections that it makes; none: only cleartext peers.
    pub client_tls: Option<&'a TlsFiles>,
    /// TLS of other interfaces, which its listeners check for changes as well.
    pub other_tls: Option<&'a TlsFiles>,
}

impl Common<'_> {
    /// Interval at which TLS files are checked for changes: the shortest `checkInterval` of the settings; none: never.
    pub(crate) fn files_interval(&self) -> Option<Duration> {
        let files = [self.tls, self.client_tls, self.other_tls];
        let asked = files.into_iter().flatten().map(|files| files.check_interval);
        let asked = asked.filter(|interval| !interval.is_zero());
        asked.map(settings::Period::duration).min()
    }
}

/// The keys of a list of listen addresses, with the addresses.
#[must_use]
pub fn listening(key: &str, listen: &Listen) -> Vec<(String, SocketAddr)> {
    let several = listen.0.len() > 1;
    let path = |index| match several {
        true => format!("{key}[{index}]"),
        false => key.to_owned(),
    };
    listen
        .iter()
        .enumerate()
        .map(|(index, address)| (path(index), address))
        .collect()
}
