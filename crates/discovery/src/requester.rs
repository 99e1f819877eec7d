//! Who asks, and whom it may find (TS 29.510 §5.3.2.2.2, `allowed…` of profile and service).

use model::nf_profile::Allowed;
use model::{ExtSnssai, NfInstanceId, NfType, PlmnId, PlmnIdNid, PlmnSnssai};

/// What a requester says of itself.
#[derive(Clone, Debug, Default)]
pub struct Requester {
    /// `requester-nf-type`.
    pub nf_type: Option<NfType>,
    /// `requester-nf-instance-id`.
    pub instance: Option<NfInstanceId>,
    /// `requester-nf-instance-fqdn`.
    pub fqdn: Option<String>,
    /// `requester-plmn-list`.
    pub plmns: Vec<PlmnId>,
    /// `requester-snpn-list`.
    pub snpns: Vec<PlmnIdNid>,
    /// `requester-snssais`.
    pub slices: Vec<ExtSnssai>,
    /// `requester-plmn-specific-snssai-list`.
    pub plmn_slices: Vec<PlmnSnssai>,
}

impl Requester {
    /// Whether these lists let the requester in. What it does not say of itself cannot keep it out, but for
    /// the type, which is mandatory.
    #[must_use]
    pub fn may_use(&self, allowed: &Allowed) -> bool {
        if allowed.is_open() {
            return true;
        }
        let type_fits = allowed.nf_types.is_empty()
            || self
                .nf_type
                .as_ref()
                .is_some_and(|own| allowed.nf_types.contains(own));
        let domain_fits = allowed.nf_domains.is_empty()
            || self
                .fqdn
                .as_ref()
                .is_none_or(|own| allowed.nf_domains.iter().any(|domain| domain.matches(own)));
        type_fits && self.plmn_may_use(allowed) && domain_fits && self.slice_fits(&allowed.nssais)
    }

    /// Whether what the requester says of itself keeps it out. What it does not say, its type included, does not:
    /// for who only passes on requests that need not say it. A network of its own lets an NF in that is not
    /// among those it names (TS 29.510 §6.1.6.2.2, `allowedPlmns`).
    #[must_use]
    pub fn is_kept_out(&self, allowed: &Allowed, own: &[PlmnId]) -> bool {
        if allowed.is_open() {
            return false;
        }
        let is_own = self.plmns.iter().any(|plmn| own.contains(plmn));
        let mut allowed = std::borrow::Cow::Borrowed(allowed);
        if self.nf_type.is_none() && !allowed.nf_types.is_empty() {
            allowed.to_mut().nf_types.clear();
        }
        if is_own && !allowed.plmns.is_empty() {
            allowed.to_mut().plmns.clear();
        }
        !self.may_use(&allowed)
    }

    /// Whether the lists of networks alone let the requester in.
    #[must_use]
    pub fn plmn_may_use(&self, allowed: &Allowed) -> bool {
        let plmn_fits = allowed.plmns.is_empty()
            || self.plmns.is_empty()
            || self.plmns.iter().any(|own| allowed.plmns.contains(own));
        let snpn_fits = allowed.snpns.is_empty()
            || self.snpns.is_empty()
            || self.snpns.iter().any(|own| allowed.snpns.contains(own));
        plmn_fits && snpn_fits
    }

    fn slice_fits(&self, allowed: &[ExtSnssai]) -> bool {
        if allowed.is_empty() {
            return true;
        }
        let mut own = self
            .slices
            .iter()
            .chain(self.plmn_slices.iter().flat_map(|one| &one.snssais))
            .peekable();
        own.peek().is_none() || own.any(|slice| allowed.iter().any(|known| known.overlaps(slice)))
    }
}
