//! What the numbers in the log mean: `store.json`, which is small and only written when it changes.

use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::disk::{self, Disk};
use super::files::{failed, refuse};
use crate::engine::Opening;
use crate::error::Error;
use crate::schema::TableSchema;

/// Name of the file.
pub(super) const CATALOGUE: &str = "store.json";

/// Grows when the files change in a way that older programs cannot read. In format 1 the files had neither heads of
/// groups nor an end, and there was no mark; the files of such a log are read as they are, and all that is written
/// after them is of format 2.
const FORMAT: u32 = 2;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Catalogue {
    pub(super) format: u32,
    /// Names of sites by their number.
    pub(super) sites: Vec<String>,
    /// Tables by their number.
    pub(super) tables: Vec<CatalogueTable>,
    /// Format 2: CRC-32 of the same as JSON with checksum 0. A name that has changed would let a table vanish.
    #[serde(default)]
    checksum: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CatalogueTable {
    pub(super) name: String,
    /// Names of the indexes whose keys stand in the log, by their position.
    pub(super) indexes: Vec<String>,
}

impl Catalogue {
    /// What a directory's file says; `None` when there is none.
    pub(super) fn read(directory: &Path) -> Result<Option<Catalogue>, Error> {
        let path = directory.join(CATALOGUE);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&path, error)),
        };
        let catalogue: Catalogue = serde_json::from_slice(&text).map_err(|error| refuse(&path, 0, error))?;
        match catalogue.format {
            1 => Ok(Some(catalogue)),
            FORMAT if catalogue.checksum == catalogue.sum() => Ok(Some(catalogue)),
            FORMAT => Err(refuse(&path, 0, "its checksum does not fit")),
            other => Err(failed(
                &path,
                format!("written in format {other}, this program reads formats 1 and {FORMAT}"),
            )),
        }
    }

    /// Whether the log has a mark, for certain.
    pub(super) fn has_mark(&self) -> bool {
        self.format >= 2
    }

    pub(super) fn write(&self, directory: &Path) -> Result<(), Error> {
        let (path, temporary) = (directory.join(CATALOGUE), directory.join("store.json.tmp"));
        let write = || -> std::io::Result<()> {
            let mut file = Disk::create(&temporary)?;
            file.write_all(&serde_json::to_vec_pretty(self)?)?;
            file.sync_all()?;
            disk::rename(&temporary, &path)?;
            disk::sync_directory(&path)
        };
        write().map_err(|error| failed(&path, error))
    }

    /// This catalogue with the site and the tables that a store is opened with.
    pub(super) fn with(mut self, opening: &Opening) -> Result<Catalogue, Error> {
        self.format = FORMAT;
        if !self.sites.iter().any(|site| **site == *opening.site) {
            self.sites.push(opening.site.to_string());
        }
        for table in &opening.tables {
            let entry = CatalogueTable {
                name: table.schema.name.to_owned(),
                indexes: index_names(table.schema),
            };
            match self.tables.iter_mut().find(|known| known.name == entry.name) {
                Some(known) => *known = entry,
                None => self.tables.push(entry),
            }
        }
        let limit = usize::from(u16::MAX);
        if self.sites.len() > limit || self.tables.len() > limit {
            return Err(Error::Open(format!("more than {limit} tables or names of sites")));
        }
        self.checksum = self.sum();
        Ok(self)
    }

    /// This catalogue while the keys of these tables are neither those it names nor the ones of a later one.
    pub(super) fn being_rewritten(mut self, names: &[&str]) -> Catalogue {
        for table in self
            .tables
            .iter_mut()
            .filter(|table| names.contains(&&*table.name))
        {
            // No name of an index: those are letters, digits and underscores.
            table.indexes = vec!["(being rewritten)".to_owned()];
        }
        if self.format >= 2 {
            self.checksum = self.sum();
        }
        self
    }

    fn sum(&self) -> u32 {
        let plain = Catalogue {
            checksum: 0,
            ..self.clone()
        };
        // Strings and numbers always become JSON.
        crc32fast::hash(&serde_json::to_vec(&plain).unwrap_or_default())
    }
}

pub(super) fn index_names(schema: &TableSchema) -> Vec<String> {
    schema.indexes.iter().map(|index| index.name.to_owned()).collect()
}
