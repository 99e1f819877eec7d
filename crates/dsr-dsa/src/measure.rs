//! The measures: their names, their order, and what they are made for.

macro_rules! measures {
    ($($name:ident,)*) => {
        /// A counter-measure, in the order in which a message meets them: first those that need no state.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub(crate) enum Measure {
            $($name,)*
        }

        use Measure::{$($name,)*};

        impl Measure {
            /// Every measure, in order.
            pub(crate) const ALL: &[Self] = &[$($name,)*];

            /// Its name in tables, metrics and lines.
            pub(crate) const fn as_str(self) -> &'static str {
                match self {
                    $($name => stringify!($name),)*
                }
            }
        }
    };
}

measures! {
    AppIdWL, AppCmdCst, RealmWLScr, OhOrCstChk, DrOrMatch, VplmnORCst, RealmIMSICst, SubsIdenValid,
    SpecAVPScr, AVPInstChk, AVPWLScr, OhOrFrmChk, SesIdValChk, DhDrFrmChk, MsgRateMon, TimeDistChk,
    PreLocChk, SrcHostValHss, SrcHostValMme, SesIntValChk,
}

impl Measure {
    /// The measure of that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|measure| measure.as_str() == name)
    }

    /// The category of the publicly described ones: 0 protocol and peers, 1 commands that are not for interconnection, 2 own
    /// subscribers abroad or home network only, 3 plausibility of place and time.
    pub(crate) const fn category(self) -> u8 {
        match self {
            AppIdWL | AppCmdCst => 1,
            VplmnORCst | RealmIMSICst | SubsIdenValid | SrcHostValHss => 2,
            TimeDistChk | PreLocChk | SrcHostValMme | SesIntValChk => 3,
            _ => 0,
        }
    }

    /// Whether it compares a message with what is known of its subscriber.
    pub(crate) const fn learns(self) -> bool {
        matches!(
            self,
            TimeDistChk | PreLocChk | SrcHostValHss | SrcHostValMme | SesIntValChk
        )
    }

    /// Whether it screens answers as well as requests.
    pub(crate) const fn screens_answers(self) -> bool {
        matches!(
            self,
            SpecAVPScr | AVPInstChk | AVPWLScr | OhOrFrmChk | SesIdValChk
        )
    }

    /// Whether it screens what is sent to foreign realms too. The others ask what a foreign network may say.
    pub(crate) const fn screens_egress(self) -> bool {
        !matches!(self, DrOrMatch) && !self.learns()
    }

    /// The table without which it finds nothing.
    pub(crate) const fn table(self) -> Option<&'static str> {
        match self {
            AppIdWL => Some("AppIdWL_Config"),
            AppCmdCst => Some("AppCmdCst_Config"),
            RealmWLScr => Some("Realm_List"),
            VplmnORCst => Some("VplmnORCst_Config"),
            SubsIdenValid => Some("MCC_MNC_List"),
            SpecAVPScr => Some("SpecAVPScr_Config"),
            AVPInstChk => Some("AVPInstChk_Config"),
            AVPWLScr => Some("AVPWLScr_Config"),
            MsgRateMon => Some("MsgRateMon_Config"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_have_one_order_and_names_of_their_own() {
        assert!(Measure::ALL.is_sorted());
        for measure in Measure::ALL {
            assert_eq!(Measure::from_name(measure.as_str()), Some(*measure));
        }
        assert_eq!(Measure::from_name("appidwl"), None);
    }
}
