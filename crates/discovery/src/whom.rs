//! Whether a profile matches a query about a subscriber: all conditions on one entry of its lists together.

use model::Guami;
use model::NfProfile;
use model::nf_profile::AmfInfo;

use crate::params::{fits_gpsi_in, fits_supi_in};
use crate::query::Query;
use crate::view::View;

/// Subscriber of a question. It is not part of the query, so that a query is parsed once for all subscribers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Whom<'a> {
    /// `supi`.
    pub supi: Option<&'a str>,
    /// `gpsi`.
    pub gpsi: Option<&'a str>,
    /// What a location function says of the subscriber: `None` without a lookup, `Some(None)` when it found no group.
    pub group: Option<Option<&'a str>>,
}

impl Whom<'_> {
    /// The parameter by which the entries do not serve the subscriber.
    fn mismatch(&self, view: &View<'_>) -> Option<&'static str> {
        let supi = || self.supi.is_none_or(|supi| fits_supi_in(view, supi, self.group));
        let gpsi = || self.gpsi.is_none_or(|gpsi| fits_gpsi_in(view, gpsi, self.group));
        match (supi(), gpsi()) {
            (false, _) => Some("supi"),
            (true, false) => Some("gpsi"),
            (true, true) => None,
        }
    }

    /// Whether the profile serves the subscriber, whatever else a query asks for.
    #[must_use]
    pub fn is_served_by(&self, profile: &NfProfile) -> bool {
        View::any(profile, |view| self.mismatch(view).is_none())
    }
}

impl Query {
    /// Whether the profile matches the tests of the query for this subscriber, with one and the same entry of each of its
    /// lists.
    #[must_use]
    pub fn matches(&self, profile: &NfProfile, whom: Whom<'_>) -> bool {
        View::any(profile, |view| self.fits(view, whom))
    }

    /// Whether it does with an AMF entry that has a GUAMI in this list.
    #[must_use]
    pub fn matches_with_guami(
        &self,
        profile: &NfProfile,
        whom: Whom<'_>,
        guami: &Guami,
        list: fn(&AmfInfo) -> &Vec<Guami>,
    ) -> bool {
        View::any(profile, |view| {
            view.amf_infos().any(|entry| list(entry).contains(guami)) && self.fits(view, whom)
        })
    }

    /// The parameter by which the profile does not match; of several entries, that of the entry that came furthest.
    #[must_use]
    pub fn mismatch(&self, profile: &NfProfile, whom: Whom<'_>) -> Option<&str> {
        let mut furthest: Option<(usize, &str)> = None;
        let matches = View::any(profile, |view| {
            let failed = self.tests.iter().position(|test| !test.fits(view));
            let found = match failed {
                Some(at) => self.tests.get(at).map(|test| (at, test.parameter())),
                None => whom.mismatch(view).map(|parameter| (self.tests.len(), parameter)),
            };
            furthest = furthest.max(found);
            found.is_none()
        });
        match matches {
            true => None,
            false => furthest.map(|(_, parameter)| parameter),
        }
    }

    /// Whether the tests hold for these entries.
    pub(crate) fn fits(&self, view: &View<'_>, whom: Whom<'_>) -> bool {
        self.tests.iter().all(|test| test.fits(view)) && whom.mismatch(view).is_none()
    }
}
