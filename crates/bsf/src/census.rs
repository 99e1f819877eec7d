//! The census of PCFs: how many of those that bindings name are gone, so that an NRF that has lost its registrations
//! does not lose all bindings.

use ahash::AHashMap;
use settings::Percent;

/// So few PCFs may be gone whatever their share: a network of two may lose one, and both.
const FEW: usize = 3;

/// What the NRF has said of PCFs, in this walk and the one before.
#[derive(Debug, Default)]
pub(crate) struct Census {
    /// Whether it is gone, and in which walk that was said.
    pcfs: AHashMap<String, (bool, u64)>,
    gone: usize,
    walk: u64,
}

impl Census {
    /// Another walk begins: what was not said since the one before is forgotten.
    pub(crate) fn begin(&mut self) {
        self.walk += 1;
        let walk = self.walk;
        self.pcfs.retain(|_, (_, said)| *said + 1 >= walk);
        self.gone = self.pcfs.values().filter(|(gone, _)| *gone).count();
    }

    /// The NRF says this of a PCF; `most` are counted.
    pub(crate) fn count(&mut self, pcf: &str, gone: bool, most: usize) {
        let room = self.pcfs.len() < most;
        match self.pcfs.get_mut(pcf) {
            Some(known) => {
                let before = std::mem::replace(known, (gone, self.walk)).0;
                self.gone = self.gone + usize::from(gone) - usize::from(before);
            }
            None if room => {
                self.gone += usize::from(gone);
                self.pcfs.insert(pcf.to_owned(), (gone, self.walk));
            }
            None => {}
        }
    }

    /// Whether most are gone that it is rather the NRF.
    pub(crate) fn is_suspicious(&self, share: Percent) -> bool {
        self.gone >= FEW && self.gone as f64 > self.pcfs.len() as f64 * share.fraction()
    }

    /// PCFs that are gone, and all.
    pub(crate) fn figures(&self) -> (usize, usize) {
        (self.gone, self.pcfs.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_of_all_are_suspicious_and_what_is_old_is_forgotten() {
        let half = Percent::new(50.0);
        let mut census = Census::default();
        census.begin();
        ["a", "b"].iter().for_each(|pcf| census.count(pcf, true, 10));
        assert!(!census.is_suspicious(half), "two of two");
        census.count("c", true, 10);
        census.count("c", true, 10);
        assert!(census.is_suspicious(half));
        ["d", "e", "f"]
            .iter()
            .for_each(|pcf| census.count(pcf, false, 10));
        assert_eq!(census.figures(), (3, 6));
        assert!(!census.is_suspicious(half), "half of them is not more than half");
        census.count("d", true, 10);
        assert!(census.is_suspicious(half));
        census.begin();
        assert!(census.is_suspicious(half), "the walk before counts");
        ["a", "b", "c", "d"]
            .iter()
            .for_each(|pcf| census.count(pcf, false, 10));
        assert_eq!(census.figures(), (0, 6));
        census.begin();
        census.begin();
        assert_eq!(census.figures(), (0, 0));
        (0..20).for_each(|pcf| census.count(&pcf.to_string(), true, 10));
        assert_eq!(census.figures(), (10, 10));
    }
}
