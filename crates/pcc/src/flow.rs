//! Flow descriptions (TS 29.214 §5.3.8, TS 29.514 `FlowDescription`; IPFilterRule of RFC 6733 §4.3.1).

/// Where packets of a filter go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Downlink,
    Uplink,
    Bidirectional,
}

impl Direction {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Downlink => "DOWNLINK",
            Self::Uplink => "UPLINK",
            Self::Bidirectional => "BIDIRECTIONAL",
        }
    }
}

/// A filter as SMF and PCEF want it: described from the network's side (`permit out`), with its direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Filter {
    pub(crate) description: String,
    pub(crate) direction: Direction,
}

/// Reads a flow description of an AF. A description of uplink packets (`permit in`) is turned around (TS 29.212 §5.3.53:
/// `out` is the only direction of a Flow-Description within Flow-Information).
///
/// # Errors
/// What breaks the restrictions of TS 29.214 §5.3.8: the action is permit, there are no options, no inverted addresses.
pub(crate) fn read(description: &str) -> Result<Filter, &'static str> {
    if description.len() > 512 {
        return Err("a flow description has at most 512 characters");
    }
    let mut words = description.split_ascii_whitespace();
    if words.next() != Some("permit") {
        return Err("a flow description begins with the action `permit`");
    }
    let direction = match words.next() {
        Some("in") => Direction::Uplink,
        Some("out") => Direction::Downlink,
        _ => return Err("the direction `in` or `out` follows the action"),
    };
    let protocol = words.next().unwrap_or_default();
    if protocol != "ip" && protocol.parse::<u8>().is_err() {
        return Err("a protocol number of 0 to 255, or `ip`, follows the direction");
    }
    if words.next() != Some("from") {
        return Err("`from` follows the protocol");
    }
    let rest: Vec<&str> = words.collect();
    let Some(to) = rest.iter().position(|word| *word == "to") else {
        return Err("`to` follows the source");
    };
    let (source, destination) = (end(&rest[..to])?, end(&rest[to + 1..])?);
    let (source, destination) = match direction {
        Direction::Uplink => (destination, source),
        _ => (source, destination),
    };
    Ok(Filter {
        description: format!("permit out {protocol} from {source} to {destination}"),
        direction,
    })
}

/// An address with ports, if any.
fn end(words: &[&str]) -> Result<String, &'static str> {
    let (address, ports) = match words {
        [address] => (address, None),
        [address, ports] => (address, Some(ports)),
        [] => return Err("an address stands after `from` and after `to`"),
        _ => return Err("a flow description has no options after the destination"),
    };
    if !is_address(address) {
        return Err("an address is `any`, `assigned`, or an IP address with a prefix length if wanted");
    }
    match ports {
        Some(ports) if !ports.split(',').all(is_port_range) => {
            Err("ports are numbers or ranges such as 5000-5010, separated by commas")
        }
        Some(ports) => Ok(format!("{address} {ports}")),
        None => Ok((*address).to_owned()),
    }
}

fn is_address(text: &str) -> bool {
    if matches!(text, "any" | "assigned") {
        return true;
    }
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let Ok(address) = address.parse::<std::net::IpAddr>() else {
        return false;
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    length.is_none_or(|length| length.parse::<u8>().is_ok_and(|length| length <= most))
}

fn is_port_range(text: &str) -> bool {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse::<u16>(), last.parse::<u16>()) {
        (Ok(first), Ok(last)) => first <= last,
        _ => false,
    }
}

/// Filters with those that differ only in their direction made one.
pub(crate) fn combine(filters: impl IntoIterator<Item = Filter>) -> Vec<Filter> {
    let mut combined: Vec<Filter> = Vec::new();
    for filter in filters {
        match combined
            .iter_mut()
            .find(|other| other.description == filter.description)
        {
            Some(other) if other.direction != filter.direction => other.direction = Direction::Bidirectional,
            Some(_) => {}
            None => combined.push(filter),
        }
    }
    combined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uplink_descriptions_are_turned_around() {
        let uplink = read("permit in 17 from 10.45.0.1 50000 to  192.0.2.99 40000").unwrap();
        assert_eq!(
            uplink.description,
            "permit out 17 from 192.0.2.99 40000 to 10.45.0.1 50000"
        );
        assert_eq!(uplink.direction, Direction::Uplink);
        let downlink = read("permit out 17 from 192.0.2.99 40000 to 10.45.0.1 50000").unwrap();
        let both = combine([uplink, downlink.clone()]);
        assert_eq!(both.len(), 1);
        assert_eq!(both[0].direction, Direction::Bidirectional);
        assert_eq!(combine([downlink.clone(), downlink.clone()]), [downlink]);
    }

    #[test]
    fn restrictions_hold() {
        for right in [
            "permit out ip from any to assigned",
            "permit out 6 from 2001:db8::/32 80,443,8000-8010 to assigned",
            "permit in 0 from assigned to 10.0.0.0/8",
        ] {
            assert!(read(right).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "deny out ip from any to any",
            "permit ip from any to any",
            "permit out tcp from any to any",
            "permit out 256 from any to any",
            "permit out ip from !10.0.0.1 to any",
            "permit out ip from any",
            "permit out ip from to any",
            "permit out ip from any to any established",
            "permit out ip from any to any 80 frag",
            "permit out 6 from any 90-80 to any",
            "permit out 6 from 10.0.0.0/33 to any",
            "permit out 6 from host.example to any",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
