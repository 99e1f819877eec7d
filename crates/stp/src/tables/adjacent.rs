//! Adjacent nodes: what link sets of M2PA need beside others.

use settings::Faults;
use ss7_proto::PointCode;

use super::Points;
use crate::config::{Config, LinkSet, NumberingPlan, Role};

/// The most links of a set: a signalling link code has four bits (Q.704 §15.2).
const LINKS: usize = 16;

/// The point code of the adjacent node; `None` for a link set of M3UA.
pub(super) fn compile(
    config: &Config,
    set: &LinkSet,
    points: &Points,
    at: &str,
    faults: &mut Faults,
) -> Option<PointCode> {
    let Some(text) = &set.point_code else {
        let role = |name: &String| {
            config
                .links
                .iter()
                .find(|link| link.name == *name)
                .map(|link| link.role)
        };
        if set.links.iter().any(|name| role(name) == Some(Role::M2pa)) {
            let what = "is absent, and a link of the set has role `m2pa`";
            let right = "the point code of the adjacent node";
            faults.at(format!("{at}.pointCode")).say(what, right);
        }
        return None;
    };
    if set.routing_context.is_some() {
        let what = "is of M3UA, and `pointCode` makes the link set one of M2PA";
        faults
            .at(format!("{at}.routingContext"))
            .say(what, "one of the two");
    }
    if config.point_codes.plan == NumberingPlan::Japan {
        let what =
            "makes the link set one of M2PA, whose management this STP does not have in the form of Japan";
        let right = "`pointCodes.plan` itu, ansi or china, or links of M3UA";
        faults.at(format!("{at}.pointCode")).say(what, right);
    }
    if set.links.len() > LINKS {
        let what = format!("has {} links", set.links.len());
        faults
            .at(format!("{at}.links"))
            .say(what, format!("at most {LINKS} links of role `m2pa`"));
    }
    match points.plan.parse(text) {
        Ok(code) => Some(code),
        Err(error) => {
            let right = "the point code of the adjacent node";
            faults.at(format!("{at}.pointCode")).say(error.to_string(), right);
            None
        }
    }
}
