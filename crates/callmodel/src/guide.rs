//! What the benchmark guide printed, and its processor use turned into time per transaction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};

/// What the guide measured.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Guide {
    /// Ingress transactions per second aimed at.
    pub target_tps: f64,
    /// Transactions per second reached.
    pub achieved_tps: f64,
    /// Ingress transactions per second that the processor time is divided by.
    pub ingress_tps: f64,
    /// How long the guide's run was.
    pub duration: Period,
    /// Connections into the function.
    #[serde(default)]
    pub connections_in: Option<u32>,
    /// Connections from the function.
    #[serde(default)]
    pub connections_out: Option<u32>,
    /// Latencies, each for a stretch of the way.
    #[serde(default)]
    pub latency: Vec<GuideLatency>,
    /// Messages of each service of the guide's function, where it prints those.
    #[serde(default)]
    pub services: Vec<GuideService>,
    /// Processor use of each service while the load ran.
    #[serde(default)]
    pub cpu: Vec<GuideCpu>,
    /// What of the deployment is not in `cpu`.
    #[serde(default)]
    pub cpu_excludes: Option<String>,
}

/// One row of a latency table.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GuideLatency {
    /// The stretch, as the guide names it.
    pub stretch: String,
    /// The operation of ours that it is comparable to.
    #[serde(default)]
    pub operation: Option<String>,
    /// Shortest.
    #[serde(default)]
    pub min: Option<Period>,
    /// Arithmetic mean.
    #[serde(default)]
    pub mean: Option<Period>,
    /// Median.
    #[serde(default)]
    pub p50: Option<Period>,
    /// 90th percentile.
    #[serde(default)]
    pub p90: Option<Period>,
    /// 95th percentile.
    #[serde(default)]
    pub p95: Option<Period>,
    /// 99th percentile.
    #[serde(default)]
    pub p99: Option<Period>,
    /// Longest.
    #[serde(default)]
    pub max: Option<Period>,
}

/// Messages of one service, requests and answers in both directions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GuideService {
    /// Name of the service.
    pub service: String,
    /// Messages per second; absent: not printed.
    #[serde(default)]
    pub mps: Option<f64>,
    /// Its mean latency.
    #[serde(default)]
    pub mean: Option<Period>,
    /// The messages of ours that do the same; absent: ours is done within the process, without a message.
    #[serde(default)]
    pub counterpart: Option<Counterpart>,
}

/// Messages of a function, as its peers count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Counterpart {
    /// Transactions that arrive.
    Ingress,
    /// Those of SM policies.
    Sm,
    /// Those of AM policies.
    Am,
    /// Those of UE policies.
    Ue,
    /// All that the function sends to others.
    Egress,
    /// What it sends to the NRF.
    Nrf,
    /// To the UDR.
    Udr,
    /// To the CHF.
    Chf,
    /// To the BSF.
    Bsf,
}

/// Processor use of one service: either what it is given and how much of that it used, or the cores directly.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GuideCpu {
    /// Name of the service.
    pub service: String,
    /// How many of it ran.
    pub pods: u32,
    /// Cores each is given.
    #[serde(default)]
    pub cores_per_pod: Option<f64>,
    /// The share of them in use, on average.
    #[serde(default)]
    pub percent: Option<Percent>,
    /// Cores in use over all pods, where the guide prints that.
    #[serde(default)]
    pub cores: Option<f64>,
}

impl GuideCpu {
    /// Cores in use over all pods.
    #[must_use]
    pub fn cores_used(&self) -> f64 {
        match (self.cores, self.cores_per_pod, self.percent) {
            (Some(cores), ..) => cores,
            (None, Some(each), Some(percent)) => f64::from(self.pods) * each * percent.fraction(),
            _ => 0.0,
        }
    }

    /// How [`GuideCpu::cores_used`] comes about, for reports.
    #[must_use]
    pub fn arithmetic(&self) -> String {
        match (self.cores, self.cores_per_pod, self.percent) {
            (Some(cores), ..) => format!("{cores} cores over {} pods, as printed", self.pods),
            (None, Some(each), Some(percent)) => {
                format!(
                    "{} × {each} × {}% = {:.3}",
                    self.pods,
                    percent.percent(),
                    self.cores_used()
                )
            }
            _ => "not printed".to_owned(),
        }
    }
}

impl Guide {
    /// Cores in use over all services.
    #[must_use]
    pub fn cores_used(&self) -> f64 {
        self.cpu.iter().map(GuideCpu::cores_used).sum()
    }

    /// Processor time per ingress transaction, in microseconds.
    #[must_use]
    pub fn cpu_us_per_transaction(&self) -> Option<f64> {
        let cores = self.cores_used();
        (cores > 0.0 && self.ingress_tps > 0.0).then(|| cores * 1e6 / self.ingress_tps)
    }
}

impl Validate for Guide {
    fn validate(&self, faults: &mut Faults) {
        for (at, row) in self.cpu.iter().enumerate() {
            if row.cores.is_none() && (row.cores_per_pod.is_none() || row.percent.is_none()) {
                faults.at(format!("cpu[{at}]")).say(
                    "does not say how much was used",
                    "`cores`, or both `coresPerPod` and `percent`",
                );
            }
        }
        if self.ingress_tps <= 0.0 {
            faults
                .at("ingressTps")
                .say("is not a rate", "transactions per second, above 0");
        }
    }
}
