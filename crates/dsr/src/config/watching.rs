//! Thresholds of indicators, and traces.

use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Percent, Period, Validate};

use super::Conditions;

/// Thresholds at which an indicator raises an alarm. Changes while running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Indicators {
    /// The time over which indicators are averaged.
    pub interval: Period,
    /// 10204 MpCPUAvg, minor above this while no mate (`peers[].mate`) is available.
    pub mp_cpu: Percent,
    /// 10204 MpCPUAvg, minor above this while a mate is available: its load would come as well.
    pub mp_cpu_with_mate: Percent,
    /// 10133 RxMsgSizeAvg, minor above this.
    pub message_size: ByteSize,
    /// 10500 RxConnAvgMPS: messages per second on a connection that count as 100 %, where its peer has no maximum.
    pub connection_mps: u32,
    /// 10500 RxConnAvgMPS, minor above this share.
    pub connection_minor: Percent,
    /// 10500 RxConnAvgMPS, major above this share.
    pub connection_major: Percent,
    /// 10501 MP Message Rate, minor above this share of the profile of a message processor.
    pub traffic_minor: Percent,
    /// 10501 MP Message Rate, major above this share; absent: never. The guide names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic_major: Option<Percent>,
    /// 10501 MP Message Rate, critical above this share; absent: never. The guide names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic_critical: Option<Percent>,
    /// Average time from a request to its answer, minor above this; 0s: never.
    pub hold_time: Period,
    /// 10503 PDU Message Pool, minor above this share of `limits.pendingBytes`.
    pub pdu_pool: Percent,
    /// 31052 CPU_UtilPct_Average of the machine, minor above this.
    pub system_cpu: Percent,
    /// 31056 RAM_UtilPct_Average of the machine, minor above this.
    pub system_memory: Percent,
}

impl Default for Indicators {
    fn default() -> Self {
        Self {
            interval: Period::from_secs(30),
            mp_cpu: Percent::new(60.0),
            mp_cpu_with_mate: Percent::new(30.0),
            message_size: ByteSize(2000),
            connection_mps: 10_000,
            connection_minor: Percent::new(50.0),
            connection_major: Percent::new(80.0),
            traffic_minor: Percent::new(60.0),
            traffic_major: None,
            traffic_critical: None,
            hold_time: Period::from_secs(1),
            pdu_pool: Percent::new(80.0),
            system_cpu: Percent::new(60.0),
            system_memory: Percent::new(80.0),
        }
    }
}

impl Validate for Indicators {
    fn validate(&self, faults: &mut Faults) {
        if self.interval.is_zero() {
            faults.at("interval").say("is 0", "a period such as 30s");
        }
        if self.connection_major <= self.connection_minor {
            faults
                .at("connectionMajor")
                .say("is not above connectionMinor", "more than connectionMinor");
        }
        let mut below = ("trafficMinor", self.traffic_minor);
        for (key, share) in [
            ("trafficMajor", self.traffic_major),
            ("trafficCritical", self.traffic_critical),
        ] {
            let Some(share) = share else { continue };
            if share <= below.1 {
                faults.at(key).say(
                    format!("is not above {}", below.0),
                    format!("more than {}", below.0),
                );
            }
            below = (key, share);
        }
    }
}

/// Files of measurements, one CSV for each interval. Changes while running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Measurements {
    /// Directory of the files: `dsr-20261122T230500Z.csv`, named by the end of the interval. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Length of an interval. Intervals end at multiples of it, by the clock in UTC.
    pub interval: Period,
    /// Number of files that are kept; the oldest are deleted first.
    pub keep: usize,
}

impl Default for Measurements {
    /// Five minutes; the files of a week.
    fn default() -> Self {
        Self {
            directory: None,
            interval: Period::from_secs(300),
            keep: 2016,
        }
    }
}

impl Validate for Measurements {
    fn validate(&self, faults: &mut Faults) {
        if self.interval.duration().as_secs() == 0 {
            faults
                .at("interval")
                .say("is less than a second", "a period such as 5m");
        }
        if self.keep == 0 {
            faults.at("keep").say("keeps no file", "at least 1");
        }
    }
}

/// Which messages are written down, for troubleshooting. Changes while running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Trace {
    /// Directory of the files: `NAME.pcapng` (Wireshark) and `NAME.log` for each point.
    pub directory: PathBuf,
    /// Messages that are cached to be searched (`signalbox dsr traces TEXT`); the oldest are evicted.
    pub cached_messages: usize,
    /// Bytes of these messages.
    pub cached_bytes: ByteSize,
    /// Admin endpoints of other routers, siblings and mates, that a search queries as well.
    #[schemars(with = "Vec<String>")]
    pub collect_from: Vec<SocketAddr>,
    /// Trigger points. A transaction whose request matches is written with all its messages.
    pub points: Vec<TracePoint>,
}

impl Default for Trace {
    fn default() -> Self {
        Self {
            directory: "run/dsr/trace".into(),
            cached_messages: 10_000,
            cached_bytes: ByteSize(32 * 1024 * 1024),
            collect_from: Vec::new(),
            points: Vec::new(),
        }
    }
}

/// A trigger point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct TracePoint {
    /// Name of its files.
    pub name: String,
    /// Conditions on a request.
    pub when: Conditions,
    /// Only requests of these peers; empty: of any.
    pub peers: Vec<String>,
    /// Messages written to each file at most.
    pub messages: u64,
    /// Generations of its files: a file that is full, or exists when the router starts, becomes `NAME.1.pcapng`, that
    /// one `NAME.2.pcapng`, and the earliest is deleted. 1: a start empties the file, and no message is written once it
    /// is full.
    #[schemars(range(min = 1))]
    pub files: usize,
}

impl Default for TracePoint {
    fn default() -> Self {
        Self {
            name: String::new(),
            when: Conditions::default(),
            peers: Vec::new(),
            messages: 10_000,
            files: 1,
        }
    }
}

impl Validate for Trace {
    fn validate(&self, faults: &mut Faults) {
        for (index, point) in self.points.iter().enumerate() {
            let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if point.name.is_empty() || !point.name.chars().all(good) {
                faults.at(format!("points[{index}].name")).say(
                    format!("`{}` names no file", point.name),
                    "letters, digits, - and _",
                );
            }
            if point.files == 0 {
                faults
                    .at(format!("points[{index}].files"))
                    .say("keeps no file", "at least 1");
            }
            point
                .when
                .validate_within(&format!("points[{index}].when"), faults);
        }
        if self.points.len() > usize::from(u8::MAX) {
            faults.at("points").say("are too many", "at most 255");
        }
    }
}
