//! Point codes of this node.

use settings::Faults;
use ss7_proto::sccp::Format;
use ss7_proto::{Plan, PointCode};

use crate::config::PointCodes;

/// The plan, and the point codes at which this node takes messages.
#[derive(Debug)]
pub(crate) struct Points {
    pub(crate) plan: Plan,
    pub(crate) format: Format,
    /// The origin of what this node sends itself.
    pub(crate) own: PointCode,
    /// Of what this node sends of its own accord.
    pub(crate) network_indicator: u8,
    /// With capability point codes and aliases.
    pub(crate) all: Vec<PointCode>,
}

impl Default for Points {
    fn default() -> Self {
        Self {
            plan: Plan::Itu,
            format: Format::Itu,
            own: PointCode(0),
            network_indicator: 2,
            all: Vec::new(),
        }
    }
}

impl Points {
    /// Whether the network has levels of congestion: national ones may (Q.704 §11.2.4, §11.2.5).
    pub(crate) const fn has_levels(&self) -> bool {
        self.network_indicator >= 2
    }

    pub(super) fn compile(config: &PointCodes, idle: bool, faults: &mut Faults) -> Self {
        let plan = config.plan.plan();
        let mut points = Self {
            plan,
            format: config.plan.format(),
            network_indicator: config.network_indicator,
            ..Self::default()
        };
        // Without links it is not set up yet.
        if idle && config.own.is_empty() && config.also.is_empty() {
            return points;
        }
        if config.network_indicator > 3 {
            faults
                .at("pointCodes.networkIndicator")
                .say("is too large", "0 to 3");
        }
        match plan.parse(&config.own) {
            Ok(own) => {
                points.own = own;
                points.all.push(own);
            }
            Err(error) => faults
                .at("pointCodes.own")
                .say(error.to_string(), "the point code of this STP"),
        }
        for (index, text) in config.also.iter().enumerate() {
            match plan.parse(text) {
                Ok(code) => points.all.push(code),
                Err(error) => faults
                    .at(format!("pointCodes.also[{index}]"))
                    .say(error.to_string(), "a point code of the plan"),
            }
        }
        points
    }

    /// Whether messages to a point code end here.
    pub(crate) fn are(&self, code: PointCode) -> bool {
        self.all.contains(&code)
    }
}
