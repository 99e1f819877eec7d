//! What benches measure of the inside of this crate. No part of its interface.

use dsr_app::{Application as _, Table};
use dsr_eir::{Eir, config};

/// The lists of an equipment identity register.
#[derive(Debug)]
pub struct Register(Eir);

impl Register {
    /// Reads the file of a configuration.
    ///
    /// # Errors
    /// As the router says them.
    pub fn load(config: &config::Eir) -> Result<Self, String> {
        Eir::load(config).map(Self)
    }

    /// What the lists say of an IMEI in the hands of an IMSI.
    #[must_use]
    pub fn status(&self, imei: &[u8], imsi: &[u8]) -> Option<&'static str> {
        self.0.status_of(imei, imsi)
    }

    /// Name, entries and bytes of each list.
    #[must_use]
    pub fn tables(&self) -> Vec<(&'static str, usize, usize)> {
        let each = |table: Table| (table.name, table.entries, table.bytes);
        self.0.tables().into_iter().map(each).collect()
    }
}
