//! Views over `MediaComponent` and `MediaSubComponent` (TS 29.514 §5.6.2.7, §5.6.2.8).

use serde_json::{Value, json};

use crate::flow::{self, Filter};
use crate::json;
use crate::mapping::Mapping;
use crate::rate;
use crate::refusal::{Cause, Refusal};

/// A media component.
pub(super) struct Component<'a> {
    /// The key of the map, for pointers.
    pub(super) key: &'a str,
    pub(super) number: u32,
    pub(super) value: &'a Value,
    flows: Vec<Flow<'a>>,
}

/// A flow of a component; a component without flows has one with the number 0.
pub(super) struct Flow<'a> {
    pub(super) number: u32,
    pub(super) value: &'a Value,
    filters: Vec<Filter>,
    status: &'a str,
}

/// Bit rates of both directions, in bit/s.
#[derive(Clone, Copy, Default)]
pub(super) struct Rates {
    pub(super) uplink: Option<u64>,
    pub(super) downlink: Option<u64>,
}

/// The components of a request.
pub(super) fn read<'a>(request: &'a Value, mapping: &Mapping) -> Result<Vec<Component<'a>>, Refusal> {
    let mut components = Vec::new();
    for (key, value) in json::entries(request, "medComponents") {
        if components.len() >= mapping.components {
            let most = mapping.components;
            return Err(Refusal::invalid(
                "/medComponents",
                format!("more than {most} media components"),
            ));
        }
        let at = format!("/medComponents/{key}");
        let number = number(value, "medCompN", &at)?;
        if components
            .iter()
            .any(|other: &Component<'_>| other.number == number)
        {
            return Err(Refusal::invalid(at, format!("medCompN {number} stands twice")));
        }
        let flows = flows(value, &at, mapping)?;
        components.push(Component {
            key,
            number,
            value,
            flows,
        });
    }
    Ok(components)
}

fn number(value: &Value, member: &str, at: &str) -> Result<u32, Refusal> {
    json::uint(value, member)
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| {
            Refusal::invalid(
                format!("{at}/{member}"),
                format!("{member} is an integer of 0 to 4294967295"),
            )
        })
}

fn flows<'a>(component: &'a Value, at: &str, mapping: &Mapping) -> Result<Vec<Flow<'a>>, Refusal> {
    let inherited = status(component, at)?;
    let mut flows: Vec<Flow<'a>> = Vec::new();
    for (key, value) in json::entries(component, "medSubComps") {
        let at = format!("{at}/medSubComps/{key}");
        if flows.len() >= mapping.flows {
            return Err(Refusal::invalid(at, format!("more than {} flows", mapping.flows)));
        }
        let number = number(value, "fNum", &at)?;
        if flows.iter().any(|other| other.number == number) {
            return Err(Refusal::invalid(at, format!("fNum {number} stands twice")));
        }
        let status = match status(value, &at)? {
            Some(status) => status,
            None => inherited_status(value, inherited),
        };
        flows.push(Flow {
            number,
            value,
            filters: filters(value, &at)?,
            status,
        });
    }
    if flows.is_empty() {
        // Traffic that an application identifier describes.
        let status = inherited.unwrap_or("ENABLED");
        flows.push(Flow {
            number: 0,
            value: component,
            filters: Vec::new(),
            status,
        });
    }
    Ok(flows)
}

/// RTCP flows are open in both directions where the media are open in one (TS 29.214 §5.3.11).
fn inherited_status<'a>(flow: &Value, inherited: Option<&'a str>) -> &'a str {
    match inherited {
        Some("ENABLED-UPLINK" | "ENABLED-DOWNLINK") if is_rtcp(flow) => "ENABLED",
        Some(status) => status,
        None => "ENABLED",
    }
}

fn status<'a>(value: &'a Value, at: &str) -> Result<Option<&'a str>, Refusal> {
    let Some(status) = value.get("fStatus") else {
        return Ok(None);
    };
    match status.as_str() {
        Some(status @ ("ENABLED-UPLINK" | "ENABLED-DOWNLINK" | "ENABLED" | "DISABLED" | "REMOVED")) => {
            Ok(Some(status))
        }
        _ => Err(Refusal::invalid(
            format!("{at}/fStatus"),
            "fStatus is ENABLED-UPLINK, ENABLED-DOWNLINK, ENABLED, DISABLED or REMOVED",
        )),
    }
}

fn filters(flow: &Value, at: &str) -> Result<Vec<Filter>, Refusal> {
    let descriptions = json::items(flow, "fDescs").iter().enumerate();
    let filters = descriptions.map(|(index, description)| {
        flow::read(description.as_str().unwrap_or_default())
            .map_err(|why| Refusal::new(Cause::FilterRestrictions, format!("{at}/fDescs/{index}"), why))
    });
    Ok(flow::combine(filters.collect::<Result<Vec<_>, _>>()?))
}

fn is_rtcp(flow: &Value) -> bool {
    json::text(flow, "flowUsage") == Some("RTCP")
}

impl<'a> Component<'a> {
    /// Flows that are not removed.
    pub(super) fn live_flows(&self) -> impl Iterator<Item = &Flow<'a>> {
        let removed = json::text(self.value, "fStatus") == Some("REMOVED");
        self.flows
            .iter()
            .filter(move |flow| !removed && flow.status != "REMOVED")
    }

    pub(super) fn media_type(&self) -> &'a str {
        json::text(self.value, "medType").unwrap_or("OTHER")
    }

    /// A bit rate; a wrong one is refused.
    pub(super) fn rate(&self, value: &Value, member: &str) -> Result<Option<u64>, Refusal> {
        let Some(text) = value.get(member) else {
            return Ok(None);
        };
        let bits = text.as_str().and_then(rate::bits);
        bits.map(Some).ok_or_else(|| {
            Refusal::invalid(
                format!("/medComponents/{}/{member}", self.key),
                format!("{member} is a bit rate such as \"64 Kbps\""),
            )
        })
    }

    /// A pair of bit rates of the component.
    pub(super) fn rates(&self, value: &Value, uplink: &str, downlink: &str) -> Result<Rates, Refusal> {
        Ok(Rates {
            uplink: self.rate(value, uplink)?,
            downlink: self.rate(value, downlink)?,
        })
    }
}

impl Flow<'_> {
    pub(super) fn is_rtcp(&self) -> bool {
        is_rtcp(self.value)
    }

    pub(super) fn is_signalling(&self) -> bool {
        json::text(self.value, "flowUsage") == Some("AF_SIGNALLING")
    }

    pub(super) fn status(&self) -> &str {
        self.status
    }

    /// `FlowInformation` of each filter; none where an application stands for the flow.
    pub(super) fn flow_infos(&self) -> Option<Value> {
        let traffic_class = self.value.get("tosTrCl");
        let with_class = |mut info: Value| {
            json::put(json::object(&mut info), "tosTrafficClass", traffic_class.cloned());
            info
        };
        let ip = self.filters.iter().map(|filter| {
            with_class(json!({
                "flowDescription": filter.description,
                "packetFilterUsage": true,
                "flowDirection": filter.direction.name(),
            }))
        });
        let ethernet = json::items(self.value, "ethfDescs").iter().map(|description| {
            let direction = json::text(description, "fDir").unwrap_or("BIDIRECTIONAL");
            with_class(json!({"ethFlowDescription": description, "packetFilterUsage": true, "flowDirection": direction}))
        });
        let infos: Vec<Value> = ip.chain(ethernet).collect();
        (!infos.is_empty()).then_some(Value::Array(infos))
    }
}
