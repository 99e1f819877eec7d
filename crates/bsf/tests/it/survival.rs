//! A restart keeps what was acknowledged.

use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{binding, config, local, start};

#[test]
fn bindings_survive_a_restart() {
    local(async {
        let mut bsf = start(|_| {});
        let mut paths = Vec::new();
        for number in 0..20 {
            let one = binding(&json!({"ipv4Addr": null, "ipv6Prefix": format!("2001:db8:{number:x}::/48")}));
            paths.push(bsf.path(&bsf.post("pcfBindings", &one).await));
        }
        bsf.ask(Method::DELETE, &paths[3], "", "").await;
        bsf.stop();
        let again = bsf::start(config(bsf.directory.path())).unwrap();
        bsf.origin = format!("http://{}", again.addresses()[0]).parse().unwrap();
        bsf.running = Some(again);
        for number in 0..20 {
            let got = bsf
                .find(&format!("ipv6Prefix=2001:db8:{number:x}:1::1/128"))
                .await;
            let expected = if number == 3 {
                StatusCode::NO_CONTENT
            } else {
                StatusCode::OK
            };
            assert_eq!(got.status, expected, "{number}");
        }
        bsf.stop();
    });
}
