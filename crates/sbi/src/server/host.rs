//! Whom a request is for.

use http::header::HOST;
use http::request::Parts;

/// Whether Host, where there is one, names what `:authority` names. A proxy and a server that look at different
/// ones would judge and serve different requests (RFC 9113 §8.3.1, RFC 9110 §7.2).
pub(super) fn check(head: &Parts) -> Result<(), &'static str> {
    let mut hosts = head.headers.get_all(HOST).iter();
    let Some(host) = hosts.next() else { return Ok(()) };
    if hosts.next().is_some() {
        return Err("more than one Host");
    }
    let Some(authority) = head.uri.authority() else {
        return Ok(());
    };
    let default = match head.uri.scheme_str() {
        Some("https") => ":443",
        _ => ":80",
    };
    let (host, authority) = (host.as_bytes(), authority.as_str().as_bytes());
    let [host, authority] =
        [host, authority].map(|name| name.strip_suffix(default.as_bytes()).unwrap_or(name));
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
        let mut request = http::Request::builder().uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        check(&request.body(()).unwrap().into_parts().0)
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
