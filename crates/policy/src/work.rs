//! The work of comparisons: entries and bytes that they read, within the steps of an evaluation.

/// Entries and bytes that are read for one step.
const FOR_A_STEP: u64 = 16;

/// What comparisons may read, and have read.
#[derive(Debug)]
pub(crate) struct Work {
    most: u64,
    left: u64,
}

impl Work {
    /// As much as these steps are worth.
    pub(crate) fn of(steps: u64) -> Self {
        let most = steps.saturating_mul(FOR_A_STEP);
        Self { most, left: most }
    }

    /// Without a bound: while a project is compiled.
    #[cfg(test)]
    pub(crate) fn boundless() -> Self {
        Self::of(u64::MAX / FOR_A_STEP)
    }

    /// One comparison of this many bytes that the processor compares many at a time; `None`: it is more than there may be.
    #[inline]
    pub(crate) fn compare(&mut self, bytes: usize) -> Option<()> {
        self.take(1 + bytes as u64 / FOR_A_STEP)
    }

    /// Reads one byte, or another unit; `None`: it is more than there may be.
    #[inline]
    pub(crate) fn look(&mut self) -> Option<()> {
        self.take(1)
    }

    #[inline]
    fn take(&mut self, units: u64) -> Option<()> {
        self.left = self.left.checked_sub(units)?;
        Some(())
    }

    /// Steps that it was worth.
    pub(crate) fn steps(&self) -> u64 {
        (self.most - self.left) / FOR_A_STEP
    }
}
