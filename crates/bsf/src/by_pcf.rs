//! The bindings of a PCF, by the index that the table of sessions has of `pcfId`: no walk over the bindings of others.

use store::{Error, Stored};

use crate::binding::PcfBinding;
use crate::repository::Repository;

/// Parts that the index has of one PCF.
pub(crate) const PARTS: u32 = 1 << 16;
/// Parts looked up without letting other tasks of the thread run.
const AT_ONCE: u32 = 512;

/// Goes through the bindings of a PCF, some at a time. It finds each that exists all the while, and perhaps those that
/// come or go meanwhile.
#[derive(Debug)]
pub(crate) struct OfPcf {
    pcf_id: String,
    next: u32,
}

impl OfPcf {
    /// The bindings of this PCF; none are found where `pcf_id` is not a UUID.
    pub(crate) fn new(pcf_id: &str) -> Self {
        Self {
            pcf_id: pcf_id.to_owned(),
            next: 0,
        }
    }

    /// Some further ones; nothing at the end.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn more(&mut self, repository: &Repository) -> Result<Vec<Stored<PcfBinding>>, Error> {
        while let Ok(part) = u16::try_from(self.next) {
            let Some(key) = PcfBinding::pcf_key(&self.pcf_id, part) else {
                break;
            };
            let found = repository.of_pcf(&key).await?;
            self.next += 1;
            if !found.is_empty() {
                return Ok(found);
            }
            if self.next.is_multiple_of(AT_ONCE) {
                tokio::task::yield_now().await;
            }
        }
        Ok(Vec::new())
    }
}
