//! Profiles of subscribers in a real directory, and what happens while it is slow, unreachable or refers to another.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use http::StatusCode;
use pcf::config::{LdapAttribute, LdapFallback, LdapType, UnknownUser};
use pcf::{Config, Event};
use serde_json::json;
use settings::{Period, Validate as _};
use testpeer::sbi::Got;
use tls::authority::Authority;

use crate::slapd::{ADMIN, SUBSCRIBERS, Slapd};
use crate::support::{Pcf, SM_POLICIES, context, local, start};

/// A project whose session rule is named by the subscriber's tier and quota.
fn project(folder: &Path) {
    let text = concat!(
        "name: test\nservice: sm\nblocks:\n",
        "  - if: {$gt: [$subscriber.quota, 40]}\n    then:\n",
        "      - sessionRule:\n          sessRuleId: {$concat: [$subscriber.tier, \"-large\"]}\n",
        "    else:\n",
        "      - sessionRule:\n          sessRuleId: {$first: [$subscriber.tier, none]}\n",
    );
    std::fs::write(folder.join("project.yaml"), text).unwrap();
}

struct Bed {
    pcf: Pcf,
    _folder: tempfile::TempDir,
}

/// A PCF that reads profiles of this directory.
fn bed(slapd: &Slapd, change: impl FnOnce(&mut Config)) -> Bed {
    let folder = tempfile::tempdir().unwrap();
    project(folder.path());
    let password = folder.path().join("password");
    std::fs::write(&password, format!("{}\n", ADMIN.1)).unwrap();
    let pcf = start(|config| {
        config.policy.sm = Some(folder.path().to_owned());
        config.pds.deadline = Period::from_secs(20);
        set(config, &slapd.url, password);
        change(config);
    });
    Bed { pcf, _folder: folder }
}

fn set(config: &mut Config, url: &str, password: PathBuf) {
    let ldap = &mut config.pds.ldap;
    ldap.url = url.to_owned();
    ldap.bind_dn = ADMIN.0.to_owned();
    ldap.password_file = Some(password);
    ldap.base = SUBSCRIBERS.to_owned();
    for (member, attribute, of) in [
        ("tier", "TIER", LdapType::Text),
        ("quota", "quota", LdapType::Number),
    ] {
        let attribute = LdapAttribute {
            attribute: attribute.to_owned(),
            of,
        };
        ldap.attributes.insert(member.to_owned(), attribute);
    }
    let default = json!({"tier": "bronze"});
    ldap.default = default.as_object().unwrap().clone();
}

async fn create(pcf: &Pcf, supi: &str) -> Got {
    pcf.post(SM_POLICIES, &context(&json!({"supi": supi}))).await
}

/// The name of the session rule that a subscriber gets.
async fn rule(pcf: &Pcf, supi: &str) -> String {
    let made = create(pcf, supi).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
    let rules = made.json["sessRules"].as_object();
    rules
        .and_then(|rules| rules.keys().next())
        .cloned()
        .unwrap_or_default()
}

const ONE: &str = "imsi-001010000000001";
const DOUBLE: &str = "imsi-001010000000002";
const UNKNOWN: &str = "imsi-001019999999999";

#[test]
fn policies_read_the_profile_of_a_subscriber() {
    local(async {
        let Some(slapd) = Slapd::start(None) else { return };
        let bed = bed(&slapd, |_| {});
        let pcf = &bed.pcf;
        let count = |event| pcf.running().count(event);
        assert_eq!(rule(pcf, ONE).await, "gold-large");
        assert_eq!(rule(pcf, ONE).await, "gold-large");
        assert_eq!((count(Event::LdapQueried), count(Event::LdapCached)), (1, 1));
        assert_eq!(rule(pcf, UNKNOWN).await, "bronze");
        assert_eq!(count(Event::LdapUnknown), 1);
        // A value that ends the filter early is escaped, and finds no one.
        assert_eq!(rule(pcf, "imsi-*)(imsi=001010000000001").await, "bronze");
        // Two entries fit, so that neither is used.
        assert_eq!(rule(pcf, DOUBLE).await, "bronze");
        assert_eq!((count(Event::LdapFailed), count(Event::LdapDefaulted)), (1, 1));
    });
}

#[test]
fn an_unknown_user_is_refused_where_the_settings_say_so() {
    local(async {
        let Some(slapd) = Slapd::start(None) else { return };
        let bed = bed(&slapd, |config| {
            config.pds.ldap.unknown_user = UnknownUser::Reject;
        });
        let refused = create(&bed.pcf, UNKNOWN).await;
        assert_eq!(
            (refused.status, refused.cause()),
            (StatusCode::BAD_REQUEST, "USER_UNKNOWN")
        );
        assert_eq!(rule(&bed.pcf, ONE).await, "gold-large");
    });
}

#[test]
fn a_user_whom_the_directory_knows_is_valid_though_the_udr_does_not_know_it() {
    local(async {
        let Some(slapd) = Slapd::start(None) else { return };
        let udr = testpeer::sbi::Server::start(|_| {
            sbi::problem::Problem::of_status(StatusCode::NOT_FOUND).into_response()
        });
        let bed = bed(&slapd, |config| {
            config.pds.udr.enabled = true;
            config.pds.udr.api_roots = vec![udr.root()];
            config.pds.validate_user = pcf::config::ValidateUser::Required;
        });
        assert_eq!(rule(&bed.pcf, ONE).await, "gold-large");
        let refused = create(&bed.pcf, UNKNOWN).await;
        assert_eq!(
            (refused.status, refused.cause()),
            (StatusCode::BAD_REQUEST, "USER_UNKNOWN")
        );
    });
}

#[test]
fn a_directory_that_is_slow_leaves_the_fallback_to_decide_within_the_deadline() {
    local(async {
        let Some(slapd) = Slapd::start(None) else { return };
        let bed = bed(&slapd, |config| {
            config.pds.deadline = Period::from_millis(1_500);
            config.pds.cache.age = Period::from_millis(1);
        });
        let pcf = &bed.pcf;
        let count = |event| pcf.running().count(event);
        let patience = async { while rule(pcf, ONE).await != "gold-large" {} };
        tokio::time::timeout(Duration::from_secs(60), patience)
            .await
            .unwrap();
        slapd.freeze();
        // What was cached, whatever its age; the default for another.
        assert_eq!(rule(pcf, ONE).await, "gold-large");
        assert_eq!(rule(pcf, UNKNOWN).await, "bronze");
        assert!(count(Event::LdapStale) >= 1 && count(Event::LdapDefaulted) >= 1);
        slapd.thaw();
        let before = count(Event::LdapUnknown);
        let answers = async {
            while count(Event::LdapUnknown) == before {
                rule(pcf, UNKNOWN).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), answers)
            .await
            .unwrap();
    });
}

#[test]
fn a_directory_that_is_gone_comes_back() {
    local(async {
        let Some(mut slapd) = Slapd::start(None) else {
            return;
        };
        let bed = bed(&slapd, |config| {
            config.pds.ldap.fallback = LdapFallback::Reject;
            config.pds.cache.age = Period::from_millis(1);
        });
        let pcf = &bed.pcf;
        assert_eq!(rule(pcf, ONE).await, "gold-large");
        slapd.kill();
        let began = Instant::now();
        for _ in 0..5 {
            let refused = create(pcf, ONE).await;
            assert_eq!(
                refused.status,
                StatusCode::SERVICE_UNAVAILABLE,
                "{}",
                refused.json
            );
        }
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "no request waits for a deadline"
        );
        assert_eq!(pcf.running().count(Event::LdapRejected), 5);
        slapd.restart();
        let back = async {
            while create(pcf, ONE).await.status != StatusCode::CREATED {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), back).await.unwrap();
    });
}

#[test]
fn referrals_are_not_followed_and_counted() {
    local(async {
        let Some(slapd) = Slapd::start(None) else { return };
        for base in [
            "dc=other,dc=org",
            "ou=elsewhere,dc=example,dc=org",
            "dc=example,dc=org",
        ] {
            let bed = bed(&slapd, |config| config.pds.ldap.base = base.to_owned());
            assert_eq!(rule(&bed.pcf, UNKNOWN).await, "bronze", "{base}");
            assert_eq!(bed.pcf.running().count(Event::LdapReferral), 1, "{base}");
        }
    });
}

#[test]
fn a_wrong_password_opens_nothing() {
    local(async {
        let Some(slapd) = Slapd::start(None) else { return };
        let files = tempfile::tempdir().unwrap();
        let wrong = files.path().join("wrong");
        std::fs::write(&wrong, "guessed").unwrap();
        let bed = bed(&slapd, |config| config.pds.ldap.password_file = Some(wrong));
        assert_eq!(rule(&bed.pcf, ONE).await, "bronze");
        assert_eq!(bed.pcf.running().count(Event::LdapFailed), 1);
    });
}

#[test]
fn a_directory_over_tls_has_to_have_a_certificate_of_the_authority() {
    local(async {
        let files = tempfile::tempdir().unwrap();
        let (authority, other) = (Authority::new("lab").unwrap(), Authority::new("other").unwrap());
        let identity = authority.issue(&["localhost"]).unwrap();
        let write = |name: &str, text: &str| {
            let path = files.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        write("cert.pem", &identity.certificate);
        write("key.pem", &identity.key);
        let trusted = write("ca.pem", authority.pem());
        let distrusted = write("other.pem", other.pem());
        let Some(slapd) = Slapd::start(Some(files.path())) else {
            return;
        };
        for (authorities, expected) in [(trusted, "gold-large"), (distrusted, "bronze")] {
            let bed = bed(&slapd, |config| config.pds.ldap.authorities = Some(authorities));
            assert_eq!(rule(&bed.pcf, ONE).await, expected);
        }
    });
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let faults = |change: &dyn Fn(&mut Config)| -> String {
        let mut config = Config::default();
        set(&mut config, "ldap://127.0.0.1:389", "password".into());
        change(&mut config);
        let mut faults = settings::Faults::default();
        config.pds.validate(&mut faults);
        format!("{faults:?}")
    };
    let good = faults(&|_| ());
    for change in [
        &(|config: &mut Config| config.pds.ldap.url = "http://127.0.0.1".to_owned()) as &dyn Fn(&mut Config),
        &|config| config.pds.ldap.url = "ldaps://127.0.0.1".to_owned(),
        &|config| config.pds.ldap.password_file = None,
        &|config| config.pds.ldap.attributes.clear(),
        &|config| config.pds.ldap.parallel = 0,
    ] {
        assert_ne!(faults(change), good);
    }
    // A file that is missing keeps the PCF from starting.
    let directory = tempfile::tempdir().unwrap();
    let mut config = crate::support::config(directory.path());
    set(
        &mut config,
        "ldap://127.0.0.1:389",
        directory.path().join("missing"),
    );
    let reason = pcf::start(config).err().unwrap().to_string();
    assert!(reason.contains("pds.ldap.passwordFile"), "{reason}");
}
