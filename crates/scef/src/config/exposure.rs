//! What SCS/AS may use, non-IP data delivery, and device triggering.

use std::collections::BTreeMap;

use model::shape::rules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Validate};

/// Non-IP data delivery (TS 23.682 §5.13).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Nidd {
    /// APN of the devices of SCS/AS that are not in `apns`: the HSS authorizes for it, and a connection of another APN is refused.
    /// Empty: any.
    pub apn: String,
    /// APN by SCS/AS (`scsAsId`).
    pub apns: BTreeMap<String, String>,
    /// Largest packet to a device; SCS/AS read it as `maximumPacketSize`, in bits.
    pub max_packet: ByteSize,
    /// How long data is buffered for a device whose SCS/AS gives no `maximumLatency`; longest time also where it gives one.
    pub buffer_time: Period,
    /// Packets that are buffered for a device.
    pub max_packets: usize,
    /// Octets that are buffered for a device.
    pub max_octets: ByteSize,
    /// Pause before data is sent again that was not answered, or whose MME is unreachable.
    pub retry_pause: Period,
    /// Connections of devices (T6a, T6b); further ones are refused.
    pub max_connections: u64,
}

impl Default for Nidd {
    fn default() -> Self {
        Self {
            apn: String::new(),
            apns: BTreeMap::new(),
            max_packet: ByteSize(1_358),
            buffer_time: Period::from_secs(3_600),
            max_packets: 16,
            max_octets: ByteSize::kib(16),
            retry_pause: Period::from_secs(5),
            max_connections: 1_000_000,
        }
    }
}

impl Nidd {
    /// The APN of the devices of an SCS/AS.
    pub(crate) fn apn_of(&self, scs: &str) -> &str {
        self.apns.get(scs).unwrap_or(&self.apn)
    }
}

impl Validate for Nidd {
    fn validate(&self, faults: &mut Faults) {
        for (name, value) in [
            ("maxPacket", self.max_packet.as_usize()),
            ("maxPackets", self.max_packets),
            ("maxOctets", self.max_octets.as_usize()),
        ] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
        for (name, value) in [("bufferTime", self.buffer_time), ("retryPause", self.retry_pause)] {
            if value.is_zero() {
                faults.at(name).say("is 0", "some time, such as 5s");
            }
        }
    }
}

/// Device triggering (TS 23.682 §5.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Triggering {
    /// International number, in digits, by which SMS-SC and devices know the sender of triggers (SM-RP-SMEA). Empty: devices are not
    /// triggered.
    pub sme_address: String,
    /// How long after the validity of a trigger the SMS-SC may report its delivery; then the SCS/AS is notified of `UNCONFIRMED`.
    pub report_time: Period,
}

impl Default for Triggering {
    fn default() -> Self {
        Self {
            sme_address: String::new(),
            report_time: Period::from_secs(60),
        }
    }
}

impl Validate for Triggering {
    fn validate(&self, faults: &mut Faults) {
        if !self.sme_address.is_empty() && rules::number5to15(&self.sme_address).is_err() {
            faults.at("smeAddress").say(
                "is not an international number",
                "5 to 15 digits, such as 4366012345",
            );
        }
    }
}

/// What one SCS/AS may use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Limits {
    /// Requests a second; 0: any number.
    pub rate: u32,
    /// Subscriptions to monitoring events.
    pub subscriptions: usize,
    /// NIDD configurations.
    pub configurations: usize,
    /// Device triggers whose delivery is not reported yet.
    pub triggers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rate: 0,
            subscriptions: 100_000,
            configurations: 100_000,
            triggers: 100_000,
        }
    }
}

impl Validate for Limits {
    fn validate(&self, _: &mut Faults) {}
}
