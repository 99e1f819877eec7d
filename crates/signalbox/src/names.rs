//! Names of hosts in a statically linked program, by hickory.
//!
//! The resolver of glibc loads modules of the machine (`/etc/nsswitch.conf`), which a static program can only do where
//! that machine has the glibc it was built with; elsewhere it ends. All of the standard library and of other crates
//! resolves by `getaddrinfo`, so a static program has this one in its place. It reads /etc/hosts and /etc/resolv.conf. A
//! program that is linked dynamically keeps the resolver of its machine.

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ptr;

use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, TokioResolver};
use libc::addrinfo;

/// One address of an answer, with the memory that its pointers point into.
#[repr(C)]
struct Entry {
    /// First, so that a pointer to it is one to the entry.
    info: addrinfo,
    address: libc::sockaddr_storage,
}

/// The addresses of a host, as a list for [`freeaddrinfo`] (POSIX.1-2017).
///
/// # Safety
///
/// As POSIX has it: texts end with a zero byte, `hints` is null or valid, `result` can be written.
#[allow(unsafe_code)]
#[cfg_attr(target_feature = "crt-static", unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    result: *mut *mut addrinfo,
) -> c_int {
    // SAFETY: the caller passes null or a text that ends with a zero byte.
    let text = |text: *const c_char| match text.is_null() {
        true => Some(""),
        false => unsafe { CStr::from_ptr(text) }.to_str().ok(),
    };
    let (Some(host), Some(service)) = (text(node), text(service)) else {
        return libc::EAI_NONAME;
    };
    let Some(port) = port(service) else {
        return libc::EAI_SERVICE;
    };
    // SAFETY: the caller passes null or a valid structure.
    let hints = unsafe { hints.as_ref() };
    let found = match addresses(
        host,
        hints.is_some_and(|hints| hints.ai_flags & libc::AI_PASSIVE != 0),
    ) {
        Ok(found) => found,
        Err(code) => return code,
    };
    let family = hints.map_or(libc::AF_UNSPEC, |hints| hints.ai_family);
    let wanted = found.into_iter().filter(|ip| match family {
        libc::AF_INET => ip.is_ipv4(),
        libc::AF_INET6 => ip.is_ipv6(),
        _ => true,
    });
    let (kind, protocol) = match hints {
        Some(hints) if hints.ai_socktype != 0 => (hints.ai_socktype, hints.ai_protocol),
        _ => (libc::SOCK_STREAM, libc::IPPROTO_TCP),
    };
    let mut first = ptr::null_mut();
    for ip in wanted.collect::<Vec<_>>().into_iter().rev() {
        first = entry(SocketAddr::new(ip, port), kind, protocol, first);
    }
    if first.is_null() {
        return libc::EAI_NONAME;
    }
    // SAFETY: the caller passes a place that can be written.
    unsafe { *result = first };
    0
}

/// Frees a list of [`getaddrinfo`].
///
/// # Safety
///
/// The list is one of ours, or null, and used no more.
#[allow(unsafe_code)]
#[cfg_attr(target_feature = "crt-static", unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn freeaddrinfo(mut list: *mut addrinfo) {
    while !list.is_null() {
        // SAFETY: each element was made by `entry`, whose first member it is.
        let entry = unsafe { Box::from_raw(list.cast::<Entry>()) };
        list = entry.info.ai_next;
    }
}

fn port(service: &str) -> Option<u16> {
    match service {
        "" => Some(0),
        _ => service.parse().ok(),
    }
}

/// An element of a list before `next`.
#[allow(unsafe_code)]
fn entry(address: SocketAddr, kind: c_int, protocol: c_int, next: *mut addrinfo) -> *mut addrinfo {
    // SAFETY: both are plain numbers and pointers, for which zero is a value.
    let mut entry: Box<Entry> = Box::new(unsafe { std::mem::zeroed() });
    let place = &raw mut entry.address;
    let (family, length) = match address {
        SocketAddr::V4(address) => {
            let plain = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(address.ip().octets()),
                },
                sin_zero: [0; 8],
            };
            // SAFETY: `sockaddr_storage` has room and alignment for every kind of address.
            unsafe { place.cast::<libc::sockaddr_in>().write(plain) };
            (libc::AF_INET, size_of::<libc::sockaddr_in>())
        }
        SocketAddr::V6(address) => {
            let plain = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr {
                    s6_addr: address.ip().octets(),
                },
                sin6_scope_id: 0,
            };
            // SAFETY: as above.
            unsafe { place.cast::<libc::sockaddr_in6>().write(plain) };
            (libc::AF_INET6, size_of::<libc::sockaddr_in6>())
        }
    };
    entry.info.ai_family = family;
    entry.info.ai_socktype = kind;
    entry.info.ai_protocol = protocol;
    entry.info.ai_addrlen = length as libc::socklen_t;
    entry.info.ai_next = next;
    let entry = Box::into_raw(entry);
    // SAFETY: `entry` is valid and stays where it is until `freeaddrinfo`.
    unsafe {
        (*entry).info.ai_addr = (&raw mut (*entry).address).cast();
        &raw mut (*entry).info
    }
}

/// The addresses of a host, or the code of an error. Without a name those of this machine (RFC 3493 §6.1).
fn addresses(host: &str, is_for_listening: bool) -> Result<Vec<IpAddr>, c_int> {
    if let Ok(ip) = host.parse() {
        return Ok(vec![ip]);
    }
    if host.is_empty() {
        let [v6, v4] = match is_for_listening {
            true => ["::", "0.0.0.0"],
            false => ["::1", "127.0.0.1"],
        };
        return Ok([v6, v4].iter().filter_map(|ip| ip.parse().ok()).collect());
    }
    // As with glibc a name of the file is not looked for elsewhere, whichever kind of address the file lacks.
    let of_file = of_hosts_file(host);
    if !of_file.is_empty() {
        return Ok(in_order(of_file));
    }
    let found = on_a_thread(host.to_owned()).map_err(|error| match error {
        // The first is final; another try may do better with the others.
        Some(error) if error.is_nx_domain() || error.is_no_records_found() => libc::EAI_NONAME,
        Some(_) => libc::EAI_AGAIN,
        None => libc::EAI_FAIL,
    })?;
    Ok(in_order(found))
}

/// Of RFC 6724 §6 rules 1 and 6: what can be reached first, then IPv6.
fn in_order(mut found: Vec<IpAddr>) -> Vec<IpAddr> {
    found.sort_by_cached_key(|ip| (!has_route(*ip), ip.is_ipv4()));
    found
}

/// What /etc/hosts has for a name.
fn of_hosts_file(host: &str) -> Vec<IpAddr> {
    let (Ok(hosts), Ok(name)) = (Hosts::from_system(), Name::from_str_relaxed(host)) else {
        return Vec::new();
    };
    let of_kind = |kind| hosts.lookup_static_host(&Query::query(name.clone(), kind));
    let lookups = [RecordType::AAAA, RecordType::A].into_iter().filter_map(of_kind);
    lookups
        .flat_map(|lookup| {
            let records = lookup.answers().iter().filter_map(|record| record.data.ip_addr());
            records.collect::<Vec<_>>()
        })
        .collect()
}

/// Resolves a name on a thread of its own: a caller may be in the middle of a runtime, where another cannot start.
fn on_a_thread(host: String) -> Result<Vec<IpAddr>, Option<NetError>> {
    let resolve = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|_| None)?;
        let found = runtime.block_on(async {
            let found = resolver()?.lookup_ip(host.as_str()).await?;
            Ok(found.iter().collect())
        });
        found.map_err(Some)
    };
    let thread = std::thread::Builder::new()
        .name("names".to_owned())
        .spawn(resolve);
    thread
        .and_then(|thread| {
            thread
                .join()
                .map_err(|_| io::Error::other("the resolver panicked"))
        })
        .map_err(|_| None)?
}

/// By the files of this machine at this moment: a lookup by name is rare, and a changed file counts at once.
fn resolver() -> Result<TokioResolver, NetError> {
    let mut builder = TokioResolver::builder_tokio().unwrap_or_else(|_| {
        // resolv.conf(5): without the file, the server of this machine.
        let servers = vec![NameServerConfig::udp_and_tcp([127, 0, 0, 1].into())];
        let servers = ResolverConfig::from_name_servers(servers);
        TokioResolver::builder_with_config(servers, TokioRuntimeProvider::default())
    });
    builder.options_mut().ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    builder.build()
}

/// Whether the machine has a route to an address; nothing is sent.
fn has_route(ip: IpAddr) -> bool {
    let any: IpAddr = match ip {
        IpAddr::V4(_) => [0; 4].into(),
        IpAddr::V6(_) => [0; 16].into(),
    };
    UdpSocket::bind((any, 0)).is_ok_and(|socket| socket.connect((ip, 9)).is_ok())
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use std::ffi::CString;

    use super::*;

    /// What a caller in C gets.
    fn ask(host: &str, service: &str, family: c_int) -> Result<Vec<String>, c_int> {
        let (host, service) = (CString::new(host).unwrap(), CString::new(service).unwrap());
        // SAFETY: zero is a value of each member.
        let mut hints: addrinfo = unsafe { std::mem::zeroed() };
        hints.ai_family = family;
        let mut list = ptr::null_mut();
        // SAFETY: all pointers are valid.
        let code = unsafe { getaddrinfo(host.as_ptr(), service.as_ptr(), &raw const hints, &raw mut list) };
        if code != 0 {
            return Err(code);
        }
        let (mut found, mut next) = (Vec::new(), list);
        // SAFETY: the list is ours, and is freed after it.
        while let Some(info) = unsafe { next.as_ref() } {
            let bytes =
                unsafe { std::slice::from_raw_parts(info.ai_addr.cast::<u8>(), info.ai_addrlen as usize) };
            assert_eq!(
                i32::from(u16::from_ne_bytes([bytes[0], bytes[1]])),
                info.ai_family
            );
            let port = u16::from_be_bytes([bytes[2], bytes[3]]);
            let ip: IpAddr = match info.ai_family {
                libc::AF_INET => <[u8; 4]>::try_from(&bytes[4..8]).unwrap().into(),
                _ => <[u8; 16]>::try_from(&bytes[8..24]).unwrap().into(),
            };
            found.push(SocketAddr::new(ip, port).to_string());
            next = info.ai_next;
        }
        unsafe { freeaddrinfo(list) };
        Ok(found)
    }

    #[test]
    fn addresses_and_names_become_lists() {
        assert_eq!(
            ask("192.0.2.7", "8010", libc::AF_UNSPEC).unwrap(),
            ["192.0.2.7:8010"]
        );
        assert_eq!(
            ask("2001:db8::7", "", libc::AF_UNSPEC).unwrap(),
            ["[2001:db8::7]:0"]
        );
        assert_eq!(ask("localhost", "1", libc::AF_INET).unwrap(), ["127.0.0.1:1"]);
        assert_eq!(ask("", "1", libc::AF_UNSPEC).unwrap(), ["[::1]:1", "127.0.0.1:1"]);
    }

    #[test]
    fn what_cannot_be_has_the_code_for_it() {
        assert_eq!(ask("192.0.2.7", "", libc::AF_INET6), Err(libc::EAI_NONAME));
        assert_eq!(ask("nrf.invalid", "", libc::AF_UNSPEC), Err(libc::EAI_NONAME));
        assert_eq!(ask("192.0.2.7", "http", libc::AF_UNSPEC), Err(libc::EAI_SERVICE));
    }

    #[test]
    fn a_caller_may_be_within_a_runtime() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(async { ask("localhost", "", libc::AF_INET) });
        assert_eq!(found.unwrap(), ["127.0.0.1:0"]);
        assert!(on_a_thread("localhost".to_owned()).is_ok_and(|found| !found.is_empty()));
    }
}
