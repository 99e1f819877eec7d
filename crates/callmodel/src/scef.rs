//! The traffic of an SCEF: servers of devices (SCS/AS) at T8, MMEs at T6a, an HSS at S6t and S6m, an SMS-SC at T4.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};

/// The traffic of an SCEF. There are as many MMEs as `load.connections`, and as many connections at T8.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ScefModel {
    /// Non-IP data delivery.
    pub nidd: Nidd,
    /// Monitoring of devices.
    pub monitoring: Monitoring,
    /// Device triggers a second.
    pub triggers: f64,
    /// Devices, each with a NIDD configuration and a connection before the load.
    #[schemars(range(min = 1, max = 100_000))]
    pub devices: u32,
    /// SCS/AS; devices are dealt to them in turn.
    #[schemars(range(min = 1, max = 100))]
    pub servers: u32,
    /// How long the HSS and the SMS-SC take to answer.
    #[serde(default)]
    pub latency: Period,
    /// How long after it has accepted a trigger the SMS-SC reports its delivery.
    #[serde(default)]
    pub report_after: Period,
    /// What happens while the load runs.
    #[serde(default)]
    pub drill: Option<Drill>,
}

/// Non-IP data delivery (TS 23.682 §5.13), each in requests a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Nidd {
    /// Data for devices.
    pub mt: f64,
    /// Data of devices.
    pub mo: f64,
    /// Share of the data for devices that finds its device unreachable (5653): it is buffered, and sent again after a CMR.
    pub unreachable: Percent,
    /// Octets of data.
    #[schemars(range(min = 4, max = 1_358))]
    pub octets: u16,
}

/// Monitoring (TS 23.682 §5.6), each in requests a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Monitoring {
    /// Subscriptions that begin; as many end.
    pub subscriptions: f64,
    /// Reports of MMEs.
    pub reports: f64,
    /// Subscriptions that stand before the load.
    #[schemars(range(min = 32, max = 1_000_000))]
    pub standing: u32,
}

/// What happens while the load runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Drill {
    /// The SCEF is killed and started again.
    Kill,
    /// The HSS is killed and started again.
    LoseHss,
    /// One SCS/AS does not answer notifications, then answers 503.
    SlowServer,
}

/// Messages that the SCEF reads for one of each: requests, and answers to its own requests, at T8 and over Diameter.
pub mod messages {
    /// POST, TDA.
    pub const MT: f64 = 2.0;
    /// CMR, another TDA, and the answer to the notification of the delivery.
    pub const MT_BUFFERED: f64 = 3.0;
    /// ODR, and the answer to the notification.
    pub const MO: f64 = 2.0;
    /// POST, CIA, DELETE, CIA.
    pub const SUBSCRIPTION: f64 = 4.0;
    /// RIR, and the answer to the notification.
    pub const REPORT: f64 = 2.0;
    /// POST, SIA, DTA, DRR, and the answer to the notification.
    pub const TRIGGER: f64 = 5.0;
}

impl ScefModel {
    /// Messages a second of non-IP data delivery, monitoring and device triggering.
    #[must_use]
    pub fn thirds(&self) -> [f64; 3] {
        let (nidd, monitoring) = (&self.nidd, &self.monitoring);
        let buffered = messages::MT_BUFFERED * nidd.unreachable.fraction();
        [
            nidd.mt * (messages::MT + buffered) + nidd.mo * messages::MO,
            monitoring.subscriptions * messages::SUBSCRIPTION + monitoring.reports * messages::REPORT,
            self.triggers * messages::TRIGGER,
        ]
    }

    /// Messages a second.
    #[must_use]
    pub fn mps(&self) -> f64 {
        self.thirds().iter().sum()
    }

    /// Requests a second of SCS/AS.
    #[must_use]
    pub fn of_servers(&self) -> f64 {
        self.nidd.mt + 2.0 * self.monitoring.subscriptions + self.triggers
    }

    /// Requests a second of MMEs, without the CMRs of devices that were unreachable.
    #[must_use]
    pub fn of_mmes(&self) -> f64 {
        self.nidd.mo + self.monitoring.reports
    }

    /// Requests a second.
    #[must_use]
    pub fn requests(&self) -> f64 {
        self.of_servers() + self.of_mmes()
    }
}

impl Validate for ScefModel {
    fn validate(&self, faults: &mut Faults) {
        for (key, rate) in [
            ("nidd.mt", self.nidd.mt),
            ("nidd.mo", self.nidd.mo),
            ("monitoring.subscriptions", self.monitoring.subscriptions),
            ("monitoring.reports", self.monitoring.reports),
            ("triggers", self.triggers),
        ] {
            if !rate.is_finite() || rate <= 0.0 {
                faults.at(key).say("is not a rate", "requests a second, above 0");
            }
        }
    }
}

/// External Identifier of a device (TS 23.003 §19.7.2).
#[must_use]
pub fn external_id(device: u32) -> String {
    format!("device-{device}@iot.example.org")
}

/// The device of an External Identifier.
#[must_use]
pub fn device_of(external_id: &str) -> Option<u32> {
    let number = external_id.strip_prefix("device-")?;
    number.strip_suffix("@iot.example.org")?.parse().ok()
}

/// IMSI of a device.
#[must_use]
pub fn imsi(device: u32) -> String {
    format!("00101{device:010}")
}

/// The device of an IMSI.
#[must_use]
pub fn device_of_imsi(imsi: &str) -> Option<u32> {
    imsi.strip_prefix("00101")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_are_in_thirds() {
        for name in [
            "dsr/scef",
            "dsr/scef-kill",
            "dsr/scef-lose-hss",
            "dsr/scef-slow-as",
        ] {
            let model = crate::find(name).unwrap().model.scef.unwrap();
            let whole = if name == "dsr/scef" { 5000.0 } else { model.mps() };
            for third in model.thirds() {
                assert!((third / whole - 1.0 / 3.0).abs() < 0.005, "{name}: {third}");
            }
        }
    }

    #[test]
    fn a_device_has_two_identities() {
        assert_eq!(device_of(&external_id(4_711)), Some(4_711));
        assert_eq!(device_of_imsi(&imsi(4_711)), Some(4_711));
        assert_eq!(imsi(4_711).len(), 15);
        for wrong in ["device-@iot.example.org", "device-1@example.org", "1"] {
            assert_eq!(device_of(wrong), None, "{wrong}");
        }
    }
}
