//! A range of identities, read from the two texts that name its ends.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::Ipv6Net;

use super::Identity;

/// The longest number: 15 digits of IMSI (TS 23.003 §2.2) or MSISDN (E.164).
const MAX_DIGITS: usize = 15;

/// First and last value of a range; both belong to it, and the first is not after the last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Span {
    /// Numbers of `count` digits, and all longer ones that begin with them.
    Digits {
        count: usize,
        first: u64,
        last: u64,
    },
    /// Names in lower case.
    Names(Box<str>, Box<str>),
    V4(u32, u32),
    V6(u128, u128),
}

impl Span {
    /// Reads a range; without an `end` it is `start` alone.
    ///
    /// # Errors
    /// What is wrong with its ends.
    pub(crate) fn parse(identity: Identity, start: &str, end: &str) -> Result<Self, String> {
        let end = if end.is_empty() { start } else { end };
        let (span, ordered) = match identity {
            Identity::Imsi | Identity::Msisdn => {
                let ((count, first), (other, last)) = (digits(start)?, digits(end)?);
                if count != other {
                    return Err(format!("{start} and {end} differ in the count of digits"));
                }
                (Self::Digits { count, first, last }, first <= last)
            }
            Identity::Impi | Identity::Impu => {
                let (first, last) = (name(start)?, name(end)?);
                let ordered = first <= last;
                (Self::Names(first, last), ordered)
            }
            Identity::Ipv4 => {
                let (first, last) = (ipv4(start)?, ipv4(end)?);
                (Self::V4(first, last), first <= last)
            }
            Identity::Ipv6Prefix => {
                let ((first, _), (_, last)) = (ipv6(start)?, ipv6(end)?);
                (Self::V6(first, last), first <= last)
            }
        };
        match ordered {
            true => Ok(span),
            false => Err(format!("{start} to {end} ends before it begins")),
        }
    }
}

/// How many digits, and their value.
fn digits(text: &str) -> Result<(usize, u64), String> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let plain = (1..=MAX_DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let value = plain.then(|| digits.parse().ok()).flatten();
    value
        .map(|value| (digits.len(), value))
        .ok_or_else(|| format!("`{text}` is not 1 to {MAX_DIGITS} digits"))
}

fn name(text: &str) -> Result<Box<str>, String> {
    match text.is_empty() {
        true => Err("a name is empty".to_owned()),
        false => Ok(text.to_ascii_lowercase().into()),
    }
}

fn ipv4(text: &str) -> Result<u32, String> {
    let address: Result<Ipv4Addr, _> = text.parse();
    address
        .map(u32::from)
        .map_err(|_| format!("`{text}` is not an IPv4 address"))
}

/// First and last address of a prefix, or an address alone.
fn ipv6(text: &str) -> Result<(u128, u128), String> {
    if let Ok(net) = text.parse::<Ipv6Net>() {
        return Ok((net.network().into(), net.broadcast().into()));
    }
    let address: Ipv6Addr = text
        .parse()
        .map_err(|_| format!("`{text}` is not an IPv6 address or prefix"))?;
    Ok((address.into(), address.into()))
}
