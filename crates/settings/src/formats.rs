//! Human formats of texts: how each is checked and named. The types are in [`crate::types`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::types::{ByteSize, HostPort, Percent, Period};

/// Checks a text by the `format` of its schema; formats of others are not judged here.
pub(crate) fn check(format: &str, text: &str) -> Result<(), String> {
    fn parsed<T: std::str::FromStr>(text: &str) -> Result<(), String>
    where
        T::Err: std::fmt::Display,
    {
        text.parse::<T>().map(drop).map_err(|error| error.to_string())
    }
    let plainly = |good: bool, what: &str| {
        if good {
            Ok(())
        } else {
            Err(format!("is no {what}"))
        }
    };
    match format {
        "period" => parsed::<Period>(text),
        "byte-size" => parsed::<ByteSize>(text),
        "percent" => parsed::<Percent>(text),
        "host-port" => parsed::<HostPort>(text),
        "socket-address" => plainly(text.parse::<SocketAddr>().is_ok(), "address with port"),
        "ip" => plainly(text.parse::<IpAddr>().is_ok(), "IP address"),
        "ipv4" => plainly(text.parse::<Ipv4Addr>().is_ok(), "IPv4 address"),
        "ipv6" => plainly(text.parse::<Ipv6Addr>().is_ok(), "IPv6 address"),
        _ => Ok(()),
    }
}

/// What a text of this format must be, as the object of "expected …".
pub(crate) fn phrase(format: &str) -> Option<&'static str> {
    Some(match format {
        "period" => "a period with its unit, such as 150ms, 30s, 5m, 24h",
        "byte-size" => "a size in bytes, such as 64KiB, 1MiB, 1500",
        "percent" => "a percentage from 0% to 100%, such as 10%",
        "host-port" => "a host and port, such as db.example.net:3306 or [::1]:3306",
        "socket-address" => "an IP address and port, such as 127.0.0.1:8010 or [::]:8010",
        "socket-addresses" => "an IP address and port, or a list of them, such as 127.0.0.1:8010",
        "ip" => "an IP address",
        "ipv4" => "an IPv4 address",
        "ipv6" => "an IPv6 address",
        _ => return None,
    })
}

/// The name of the format in the reference page.
pub(crate) fn short(format: &str) -> Option<&'static str> {
    Some(match format {
        "period" => "period",
        "byte-size" => "size",
        "percent" => "percentage",
        "host-port" => "host:port",
        "socket-address" => "address:port",
        "socket-addresses" => "address:port, or a list of them",
        "ip" | "ipv4" | "ipv6" => "IP address",
        _ => return None,
    })
}
