//! Whom a request is for.

use http2::Fields;
use http2::name::{AUTHORITY, HOST, SCHEME};

/// Whether Host, where there is one, names what `:authority` names. A proxy and a server that look at different
/// ones would judge and serve different requests (RFC 9113 §8.3.1, RFC 9110 §7.2).
pub(super) fn check(fields: &Fields) -> Result<(), &'static str> {
    let mut hosts = fields.get_all(HOST);
    let Some(host) = hosts.next() else { return Ok(()) };
    if hosts.next().is_some() {
        return Err("more than one Host");
    }
    let Some(authority) = fields.get(AUTHORITY) else {
        return Ok(());
    };
    let default = match fields.get(SCHEME) {
        Some(scheme) if scheme == "https" => ":443",
        _ => ":80",
    };
    let [host, authority] = [host, authority].map(|name| {
        let name = name.as_bytes();
        name.strip_suffix(default.as_bytes()).unwrap_or(name)
    });
    if host.eq_ignore_ascii_case(authority) {
        Ok(())
    } else {
        Err("Host and :authority name different servers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(uri: &str, hosts: &[&str]) -> Result<(), &'static str> {
        let mut fields = Fields::new();
        let value = |text| http2::Value::new(str::as_bytes(text)).unwrap();
        if let Some((scheme, rest)) = uri.split_once("://") {
            fields.append(SCHEME, value(scheme));
            fields.append(AUTHORITY, value(rest.trim_end_matches('/')));
        }
        for host in hosts {
            fields.append(HOST, value(host));
        }
        check(&fields)
    }

    #[test]
    fn one_name_however_written() {
        for hosts in [&[][..], &["nrf.example"], &["NRF.example"], &["nrf.example:80"]] {
            assert_eq!(checked("http://nrf.example/", hosts), Ok(()), "{hosts:?}");
        }
        assert_eq!(checked("https://nrf.example:443/", &["nrf.example"]), Ok(()));
        assert_eq!(checked("/", &["nrf.example"]), Ok(()), "no :authority");
        for hosts in [
            &["a.example"][..],
            &["nrf.example:81"],
            &["nrf.example"; 2],
            &[""],
        ] {
            assert!(checked("http://nrf.example/", hosts).is_err(), "{hosts:?}");
        }
        assert!(checked("/", &["nrf.example"; 2]).is_err());
        assert!(checked("https://nrf.example/", &["nrf.example:80"]).is_err());
    }
}
