//! The table of bindings as a database shows it to other tools, and the audit of bindings in a database.

use std::process::{Command, Stdio};
use std::time::Duration;

use http::StatusCode;
use serde_json::json;

use crate::audit::{GONE, WELL, audited, nrf_with_well};
use crate::databases::Servers;
use crate::support::{binding, local, start};

/// A row of `pcf_binding`, its columns separated by tabs.
fn row(servers: &Servers, columns: &str, supi: &str) -> Option<String> {
    let node = servers.address(1);
    let select = format!("SELECT {columns} FROM signalbox.pcf_binding WHERE supi = '{supi}'");
    let output = Command::new("mariadb")
        .args([
            "-h",
            &node.host,
            "-usignalbox",
            "-psignalbox",
            "--batch",
            "--skip-column-names",
        ])
        .args(["-P", &node.port.to_string(), "-e", &select])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().next().map(str::to_owned)
}

#[test]
fn the_columns_say_what_the_binding_says_and_when_it_was_audited() {
    let Some(servers) = Servers::sites(1) else { return };
    local(async {
        let (_nrf, address) = nrf_with_well();
        let bsf = start(|config| {
            audited(config, address);
            config.store = servers.config("site-1", &[1]);
            // The third walk would remove it.
            config.audit.attempts = 1_000_000;
        });
        let all = json!({"supi": "imsi-001010000000001", "ipDomain": "corp", "ipv6Prefix": "2001:db8:7::/48",
            "macAddr48": "00-1b-21-3c-9d-f0", "recoveryTime": "2020-01-01T00:00:00Z"});
        for (supi, pcf, last) in [
            ("imsi-001010000000001", WELL, 1),
            ("imsi-001010000000002", GONE, 2),
        ] {
            let mut more = all.clone();
            (more["supi"], more["pcfId"]) = (json!(supi), json!(pcf));
            more["ipv4Addr"] = json!(format!("10.0.0.{last}"));
            let made = bsf.post("pcfBindings", &binding(&more)).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        }
        let columns = "LENGTH(binding_id), ipv4_addr, ip_domain, ipv6_prefix, mac_addr_48, dnn, supi, gpsi, snssai_sd, \
             snssai_sst, site_id, json_content LIKE '%\"dnn\"%', ABS(TIMESTAMPDIFF(SECOND, created_date_time, UTC_TIMESTAMP())) < 600, \
             ABS(last_access_timestamp / 1000 - UNIX_TIMESTAMP()) < 600";
        let expected = "16\t10.0.0.1\tcorp\t2001:db8:7::/48\t00-1b-21-3c-9d-f0\tinternet\timsi-001010000000001\t\
             msisdn-15551234567\t00000a\t1\tsite-1\t1\t1\t1";
        assert_eq!(row(&servers, columns, "imsi-001010000000001").unwrap(), expected);
        let audit =
            "audit_attempts > 0, ABS(TIMESTAMPDIFF(SECOND, last_audited_date_time, UTC_TIMESTAMP())) < 600";
        for (supi, expected) in [("imsi-001010000000001", "0\t1"), ("imsi-001010000000002", "1\t1")] {
            let begun = std::time::Instant::now();
            while row(&servers, audit, supi).as_deref() != Some(expected) {
                assert!(
                    begun.elapsed() < Duration::from_secs(60),
                    "{:?}",
                    row(&servers, audit, supi)
                );
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    });
}
