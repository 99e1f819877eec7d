//! A profile with one entry of each list of NF-specific information, beside which parameters are judged.
//!
//! An entry of `smfInfoList` describes what goes together: its slices and data networks are served in its tracking areas
//! (TS 29.510 §6.1.6.2.2), and so does the single `smfInfo` beside the list. So a query matches a profile when all of its
//! parameters hold for one and the same entry, not each of them for some entry.

use std::ops::Deref;

use model::NfProfile;
use model::nf_profile::{
    AanfInfo, AmfInfo, AusfInfo, BsfInfo, ChfInfo, EasdfInfo, HssInfo, MbSmfInfo, MbUpfInfo, NsacfInfo,
    NwdafInfo, PcfInfo, PcscfInfo, SmfInfo, TsctsfInfo, UdmInfo, UdrInfo, UdsfInfo, UpfInfo,
};
use smallvec::SmallVec;

/// Combinations of entries that are tried at most, where a profile has several lists with several entries. The largest
/// lists beyond that are judged as a whole. The entries of one list are always tried.
const COMBINATIONS_MAX: usize = 1_024;

/// A profile, with one entry of each list that has several; the whole profile if none has.
pub struct View<'a> {
    profile: &'a NfProfile,
    chosen: SmallVec<[Entry<'a>; 1]>,
}

/// It is the profile in all but the lists.
impl Deref for View<'_> {
    type Target = NfProfile;

    fn deref(&self) -> &NfProfile {
        self.profile
    }
}

type Entries<'a> = SmallVec<[Entry<'a>; 8]>;

macro_rules! kinds {
    ($($name:ident: $kind:ident = [$($one:ident)?] $many:ident -> $type:ty;)+) => {
        /// An entry of a list, or the single information beside it.
        #[derive(Clone, Copy)]
        enum Entry<'a> {
            $($kind(&'a $type),)+
        }

        impl<'a> View<'a> {
            $(pub(crate) fn $name(&self) -> impl Iterator<Item = &'a $type> + use<'a> {
                let profile = self.profile;
                let chosen = self.chosen.iter().find_map(|one| match one {
                    Entry::$kind(info) => Some(*info),
                    _ => None,
                });
                let all = match chosen {
                    Some(_) => None,
                    None => Some(std::iter::empty()$(.chain(&profile.$one))?.chain(profile.$many.values())),
                };
                chosen.into_iter().chain(all.into_iter().flatten())
            })+
        }

        /// Calls `each` with the entries of each kind that has several.
        fn several<'a>(profile: &'a NfProfile, mut each: impl FnMut(Entries<'a>)) {
            $(if profile.$many.len() $(+ usize::from(profile.$one.is_some()))? > 1 {
                let all = std::iter::empty()$(.chain(&profile.$one))?.chain(profile.$many.values());
                each(all.map(Entry::$kind).collect());
            })+
        }
    };
}

kinds! {
    udr_infos: Udr = [udr_info] udr_info_list -> UdrInfo;
    udm_infos: Udm = [udm_info] udm_info_list -> UdmInfo;
    ausf_infos: Ausf = [ausf_info] ausf_info_list -> AusfInfo;
    amf_infos: Amf = [amf_info] amf_info_list -> AmfInfo;
    smf_infos: Smf = [smf_info] smf_info_list -> SmfInfo;
    upf_infos: Upf = [upf_info] upf_info_list -> UpfInfo;
    pcf_infos: Pcf = [pcf_info] pcf_info_list -> PcfInfo;
    bsf_infos: Bsf = [bsf_info] bsf_info_list -> BsfInfo;
    chf_infos: Chf = [chf_info] chf_info_list -> ChfInfo;
    udsf_infos: Udsf = [udsf_info] udsf_info_list -> UdsfInfo;
    nwdaf_infos: Nwdaf = [nwdaf_info] nwdaf_info_list -> NwdafInfo;
    pcscf_infos: Pcscf = [] pcscf_info_list -> PcscfInfo;
    hss_infos: Hss = [] hss_info_list -> HssInfo;
    aanf_infos: Aanf = [] aanf_info_list -> AanfInfo;
    easdf_infos: Easdf = [] easdf_info_list -> EasdfInfo;
    nsacf_infos: Nsacf = [] nsacf_info_list -> NsacfInfo;
    mb_smf_infos: MbSmf = [] mb_smf_info_list -> MbSmfInfo;
    tsctsf_infos: Tsctsf = [] tsctsf_info_list -> TsctsfInfo;
    mb_upf_infos: MbUpf = [] mb_upf_info_list -> MbUpfInfo;
}

impl<'a> View<'a> {
    /// All of a profile.
    pub(crate) fn whole(profile: &'a NfProfile) -> Self {
        Self {
            profile,
            chosen: SmallVec::new(),
        }
    }

    /// The profile.
    pub(crate) fn profile(&self) -> &'a NfProfile {
        self.profile
    }

    /// Whether the profile has lists of which this is one entry each.
    pub(crate) fn is_part(&self) -> bool {
        !self.chosen.is_empty()
    }

    /// Group ids of the entries.
    pub(crate) fn group_ids(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.udm_infos()
            .filter_map(|i| i.group_id.as_deref())
            .chain(self.udr_infos().filter_map(|i| i.group_id.as_deref()))
            .chain(self.ausf_infos().filter_map(|i| i.group_id.as_deref()))
            .chain(self.pcf_infos().filter_map(|i| i.group_id.as_deref()))
            .chain(self.chf_infos().filter_map(|i| i.group_id.as_deref()))
            .chain(self.bsf_infos().filter_map(|i| i.group_id.as_deref()))
            .chain(self.udsf_infos().filter_map(|i| i.group_id.as_deref()))
            .chain(self.hss_infos().filter_map(|i| i.group_id.as_deref()))
    }

    /// Whether `fits` holds for one view of the profile.
    pub(crate) fn any(profile: &'a NfProfile, mut fits: impl FnMut(&View<'a>) -> bool) -> bool {
        let mut lists: SmallVec<[Entries<'a>; 1]> = SmallVec::new();
        several(profile, |entries| lists.push(entries));
        if lists.is_empty() {
            return fits(&View::whole(profile));
        }
        lists.sort_by_key(SmallVec::len);
        let mut combinations = 1_usize;
        let mut at = 0;
        lists.retain(|entries| {
            combinations = combinations.saturating_mul(entries.len());
            at += 1;
            at == 1 || combinations <= COMBINATIONS_MAX
        });
        let mut places: SmallVec<[usize; 1]> = lists.iter().map(|_| 0).collect();
        loop {
            let entries = lists.iter().zip(&places);
            let chosen = entries.filter_map(|(list, at)| list.get(*at).copied()).collect();
            if fits(&View { profile, chosen }) {
                return true;
            }
            if !advance(&mut places, &lists) {
                return false;
            }
        }
    }
}

/// The next combination, as an odometer counts; whether there is one.
fn advance(places: &mut [usize], lists: &[Entries<'_>]) -> bool {
    for (place, list) in places.iter_mut().zip(lists) {
        *place += 1;
        if *place < list.len() {
            return true;
        }
        *place = 0;
    }
    false
}
