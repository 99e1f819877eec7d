//! Ranges that do not overlap, sorted.

/// Ranges as they come.
#[derive(Debug)]
pub(crate) struct Collected<T>(Vec<(T, T, u32, usize)>);

impl<T> Default for Collected<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Ranges in order.
#[derive(Debug)]
pub(crate) struct Spans<T> {
    starts: Vec<T>,
    ends: Vec<T>,
    to: Vec<u32>,
}

impl<T: Ord + Clone> Collected<T> {
    /// Adds a range that leads to `to`; `line` is where it is written.
    pub(crate) fn push(&mut self, start: T, end: T, to: u32, line: usize) {
        self.0.push((start, end, to, line));
    }

    /// Puts them in order.
    ///
    /// # Errors
    /// The lines of two that overlap.
    pub(crate) fn sort(mut self) -> Result<Spans<T>, (usize, usize)> {
        self.0.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for pair in self.0.windows(2) {
            if let [(_, end, _, one), (start, _, _, other)] = pair
                && start <= end
            {
                return Err((*one, *other));
            }
        }
        let mut spans = Spans {
            starts: Vec::with_capacity(self.0.len()),
            ends: Vec::with_capacity(self.0.len()),
            to: Vec::with_capacity(self.0.len()),
        };
        for (start, end, to, _) in self.0 {
            spans.starts.push(start);
            spans.ends.push(end);
            spans.to.push(to);
        }
        Ok(spans)
    }
}

impl<T: Ord> Spans<T> {
    pub(crate) fn len(&self) -> usize {
        self.to.len()
    }

    /// How many ranges there are, and the bytes of their arrays.
    pub(crate) fn size(&self) -> (usize, usize) {
        let each = 2 * size_of::<T>() + size_of::<u32>();
        (self.len(), self.len() * each)
    }

    /// What the range leads to that holds `value`.
    #[inline]
    pub(crate) fn find(&self, value: &T) -> Option<u32> {
        let at = self
            .starts
            .partition_point(|start| start <= value)
            .checked_sub(1)?;
        let holds = self.ends.get(at)? >= value;
        holds.then(|| self.to.get(at).copied()).flatten()
    }
}
