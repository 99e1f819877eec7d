//! The traffic of a signal transfer point: MSCs on one side, HLRs and SMSCs on the other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Validate};

use crate::equipment::EquipmentLists;

/// The most nodes of a kind: their addresses and point codes are counted up.
const MOST_NODES: u16 = 999;
/// The most numbers of a kind: they have seven digits of their own.
const MOST_NUMBERS: u32 = 10_000_000;
/// An SCCP message of UDT has at most 255 octets of data.
const MESSAGE_BYTES: std::ops::RangeInclusive<u16> = 120..=260;

/// The traffic of a signal transfer point. There are as many MSCs as `load.connections`, an association each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct StpModel {
    /// Messages per second at the full rate: each comes in and goes out again, or is answered.
    pub mps: f64,
    /// What they are.
    pub mix: Mix,
    /// Octets of an M3UA message that a node sends.
    #[schemars(range(min = 120, max = 260))]
    pub message_bytes: u16,
    /// HLRs, an association each.
    #[schemars(range(min = 1, max = 999))]
    pub hlrs: u16,
    /// SMSCs, an association each.
    #[serde(default)]
    #[schemars(range(max = 999))]
    pub smscs: u16,
    /// Global titles that are translated: whole numbers, dealt to HLRs and SMSCs in turn.
    #[serde(default)]
    #[schemars(range(max = 10_000_000))]
    pub translations: u32,
    /// Numbers of the number services: of this network, ported to another one, and IMSIs, as many of each.
    #[serde(default)]
    #[schemars(range(max = 10_000_000))]
    pub numbers: u32,
    /// Rules of a screening list for all that MSCs send, of which none fits but for `mix.screened`: half of them has
    /// conditions on the routing label, half on the addresses of SCCP.
    #[serde(default)]
    #[schemars(range(max = 10_000))]
    pub screening_rules: u16,
    /// Lists of the equipment identity register. Without `pairs`: requests of MAP name no subscriber.
    #[serde(default)]
    pub equipment: Option<EquipmentLists>,
    /// What happens while the load runs; none: nothing.
    #[serde(default)]
    pub drill: Option<Drill>,
}

/// Shares of the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Mix {
    /// From an MSC to a global title, which the STP translates: an HLR or an SMSC.
    pub translation: Percent,
    /// From an HLR or SMSC to an MSC by its point code (MTP routing).
    pub mtp_routing: Percent,
    /// From an MSC to a global title, and refused by screening: it returns (UDTS).
    pub screened: Percent,
    /// About a number of this network: to its HLR.
    pub home_numbers: Percent,
    /// *sendRoutingInfo* for a number that was ported to another network: answered by the STP (MNP).
    pub ported_calls: Percent,
    /// Another message for such a number: to the other network, with the routing number.
    pub ported_messages: Percent,
    /// To an IMSI: to its HLR (GFLEX).
    pub imsis: Percent,
    /// *checkIMEI*: answered by the STP (EIR).
    pub equipment: Percent,
    /// InitialDP to the STP: answered by Continue for a number of this network, Connect for a ported one, ReleaseCall for one that is
    /// not allocated (INPQ).
    pub queries: Percent,
    /// InitialDP of a prepaid subscriber: to the service control point that the STP has for the calling number.
    pub prepaid: Percent,
    /// IAM from an MSC to the exchange of the other network, which the STP intercepts: with the routing number of a ported number,
    /// unchanged, or ended by REL (TIF).
    pub calls: Percent,
}

impl Mix {
    /// The shares in the order of [`Kind::ALL`].
    #[must_use]
    pub const fn shares(&self) -> [Percent; 11] {
        [
            self.translation,
            self.mtp_routing,
            self.screened,
            self.home_numbers,
            self.ported_calls,
            self.ported_messages,
            self.imsis,
            self.equipment,
            self.queries,
            self.prepaid,
            self.calls,
        ]
    }
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `translation`.
    Translation,
    /// `mtpRouting`.
    MtpRouting,
    /// `screened`.
    Screened,
    /// `homeNumbers`.
    HomeNumber,
    /// `portedCalls`.
    PortedCall,
    /// `portedMessages`.
    PortedMessage,
    /// `imsis`.
    Imsi,
    /// `equipment`.
    Equipment,
    /// `queries`.
    Query,
    /// `prepaid`.
    Prepaid,
    /// `calls`.
    Call,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Translation,
        Self::MtpRouting,
        Self::Screened,
        Self::HomeNumber,
        Self::PortedCall,
        Self::PortedMessage,
        Self::Imsi,
        Self::Equipment,
        Self::Query,
        Self::Prepaid,
        Self::Call,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Translation => "translation",
            Self::MtpRouting => "MTP routing",
            Self::Screened => "screened",
            Self::HomeNumber => "home number",
            Self::PortedCall => "ported, sendRoutingInfo",
            Self::PortedMessage => "ported, other",
            Self::Imsi => "IMSI",
            Self::Equipment => "checkIMEI",
            Self::Query => "InitialDP, query",
            Self::Prepaid => "InitialDP, prepaid",
            Self::Call => "IAM",
        }
    }

    /// The setting that has its numbers.
    const fn numbers(self) -> Option<&'static str> {
        match self {
            Self::Translation | Self::Screened => Some("translations"),
            Self::HomeNumber
            | Self::PortedCall
            | Self::PortedMessage
            | Self::Imsi
            | Self::Query
            | Self::Prepaid
            | Self::Call => Some("numbers"),
            Self::MtpRouting | Self::Equipment => None,
        }
    }
}

/// An event while the load runs, with checks of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Drill {
    /// The association of the first HLR ends, and comes back.
    LoseHlr,
    /// The association of the first HLR ends and comes back each second: the route to it oscillates.
    Oscillate,
    /// The STP is killed and started again at once, with full tables.
    Kill,
    /// The HLRs and SMSCs are behind a second STP, with two links of M2PA between both, which are cut in turn every ten seconds.
    CutLinks,
    /// Two mated STPs behind the one that has the nodes translate for one capability point code; the first is killed and started
    /// again.
    LoseMate,
    /// The file of translations is replaced by one that leads each number to another node, and read by a reload.
    Reload,
}

impl StpModel {
    /// HLRs and SMSCs.
    #[must_use]
    pub const fn nodes(&self) -> u16 {
        self.hlrs.saturating_add(self.smscs)
    }

    fn validate_sizes(&self, faults: &mut Faults) {
        let sizes = [("hlrs", self.hlrs, 1), ("smscs", self.smscs, 0)];
        for (key, count, least) in sizes {
            if !(least..=MOST_NODES).contains(&count) {
                let right = format!("{least} to {MOST_NODES}");
                faults.at(key).say(format!("{count} cannot be simulated"), right);
            }
        }
        if self.nodes() > MOST_NODES {
            let wrong = format!("{} HLRs and SMSCs cannot be simulated", self.nodes());
            faults
                .at("smscs")
                .say(wrong, format!("at most {MOST_NODES} together"));
        }
        if !MESSAGE_BYTES.contains(&self.message_bytes) {
            let wrong = format!(
                "{} octets do not fit a UDT, or have no room for it",
                self.message_bytes
            );
            let right = format!("{} to {}", MESSAGE_BYTES.start(), MESSAGE_BYTES.end());
            faults.at("messageBytes").say(wrong, right);
        }
        for (key, count) in [("translations", self.translations), ("numbers", self.numbers)] {
            if count > MOST_NUMBERS {
                let right = format!("at most {MOST_NUMBERS}");
                faults
                    .at(key)
                    .say("are more than have numbers of their own", right);
            }
        }
    }

    fn validate_mix(&self, faults: &mut Faults) {
        let shares = self.mix.shares();
        let sum: f64 = shares.iter().map(|share| share.percent()).sum();
        if (sum - 100.0).abs() > 0.01 {
            faults.at("mix").say(format!("adds up to {sum}%"), "100%");
        }
        for (kind, share) in Kind::ALL.into_iter().zip(shares) {
            if share.percent() <= 0.0 {
                continue;
            }
            let (count, least) = match kind.numbers() {
                Some("translations") => (self.translations, u32::from(self.nodes())),
                Some(_) => (self.numbers, u32::from(self.hlrs)),
                None => (1, 1),
            };
            if let Some(key) = kind.numbers().filter(|_| count < least) {
                let wrong = format!("{count} leave nodes without numbers, which `mix` has messages for");
                faults.at(key).say(wrong, format!("at least {least}"));
            }
        }
        if self.mix.screened.percent() > 0.0 && self.screening_rules == 0 {
            let right = "at least 1, or no `mix.screened`";
            faults.at("screeningRules").say("is 0: nothing is refused", right);
        }
        if self.equipment.is_none() && self.mix.equipment.percent() > 0.0 {
            let right = "lists, or no `mix.equipment`";
            faults.at("equipment").say("is absent", right);
        }
    }
}

impl Validate for StpModel {
    fn validate(&self, faults: &mut Faults) {
        if !(self.mps.is_finite() && self.mps > 0.0) {
            faults
                .at("mps")
                .say("is not a rate", "messages per second, above 0");
        }
        self.validate_sizes(faults);
        self.validate_mix(faults);
        if let Some(equipment) = &self.equipment {
            faults.within("equipment", equipment);
            if equipment.pairs > 0 || equipment.by_pair.percent() > 0.0 {
                let right = "`pairs: 0` and `byPair: 0%`";
                faults
                    .at("equipment.pairs")
                    .say("are asked about by subscriber, which MAP does not name", right);
            }
        }
        let translated = self.mix.translation.percent();
        if matches!(self.drill, Some(Drill::Reload)) && (translated <= 0.0 || self.nodes() < 2) {
            faults.at("drill").say(
                "replaces translations that lead to one node, or that no message needs",
                "at least two nodes, and `mix.translation`",
            );
        }
        if matches!(self.drill, Some(Drill::LoseHlr | Drill::Oscillate)) && self.nodes() < 2 {
            let right = "at least 2 HLRs and SMSCs";
            faults
                .at("hlrs")
                .say("leave no node when one has lost its association", right);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::CallModel;

    fn faults(changes: &[(&str, &str)]) -> String {
        let model = include_str!("../../../callmodels/dsr/vstp-screening.yaml");
        let text = changes.iter().fold(model.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        let report = settings::from_str::<CallModel>(&text, "x.yaml").unwrap_err();
        report.to_string()
    }

    #[test]
    fn each_mistake_is_named_with_its_place() {
        for (changes, place) in [
            (&[("mps: 16000\n  mix", "mps: 0\n  mix")][..], "stp.mps"),
            (&[("translation: 49%", "translation: 39%")], "stp.mix"),
            (&[("hlrs: 6", "hlrs: 0")], "stp.hlrs"),
            (&[("hlrs: 6", "hlrs: 998")], "stp.smscs"),
            (&[("messageBytes: 200", "messageBytes: 90")], "stp.messageBytes"),
            (
                &[("translations: 1000000", "translations: 7")],
                "stp.translations",
            ),
            (
                &[("translations: 1000000", "translations: 10000001")],
                "stp.translations",
            ),
            (
                &[("screeningRules: 100", "screeningRules: 0")],
                "stp.screeningRules",
            ),
            (&[("mtpRouting: 50%", "imsis: 50%")], "stp.numbers"),
            (&[("mtpRouting: 50%", "equipment: 50%")], "stp.equipment"),
            (
                &[("screeningRules: 100", "equipment: {}\n  screeningRules: 100")],
                "stp.equipment.pairs",
            ),
            (
                &[("hlrs: 6", "hlrs: 1"), ("smscs: 2", "drill: reload")],
                "stp.drill",
            ),
            (
                &[
                    ("translation: 49%", "translation: 0%"),
                    ("screened: 1%", "screened: 50%"),
                    ("smscs: 2", "drill: reload"),
                ],
                "stp.drill",
            ),
            (
                &[("hlrs: 6", "hlrs: 1"), ("smscs: 2", "drill: loseHlr")],
                "stp.hlrs",
            ),
            (&[("hlrs: 6", "hlrs: 6\n  msc: 1")], "msc"),
        ] {
            let report = faults(changes);
            assert!(report.contains(place), "{changes:?}: {report}");
        }
    }
}
