//! Forged tokens and assertions, and certificates used for others.

use std::path::Path;
use std::rc::Rc;
use std::sync::OnceLock;

use http::Method;
use serde_json::{Value, json};
use testpeer::tokens::{self, Key};

use crate::answer::{Ask, client_over};
use crate::attack::{Attack, attack};
use crate::field::Field;
use crate::stage::Stage::{Nrf, NrfTls, Scp};
use crate::stage::{PRODUCER, PRODUCER_PATH, disc, profile, wish};

const ALL: &[Attack] = &[
    attack(
        "tokens.forgeries",
        "access tokens that the NRF did not issue, or not like that",
        Nrf,
        |f| Box::pin(forgeries(f)),
    )
    .with_settings(|| json!({"tokens": {"protectOwnServices": true, "requireRegistration": false}})),
    attack(
        "tokens.impersonation",
        "a certificate of one instance, requests in the name of another",
        NrfTls,
        |f| Box::pin(impersonation(f)),
    ),
    attack(
        "tokens.assertions",
        "client credentials assertions that are forged, or signed by another's key",
        Scp,
        |f| Box::pin(assertions(f)),
    )
    .with_settings(assertion_settings),
];

pub(super) fn all() -> Vec<Attack> {
    ALL.to_vec()
}

fn now() -> u64 {
    std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0, |since| since.as_secs())
}

/// The key with which the NRF signs, found where it keeps its state: only so are tokens right but for one thing.
fn signing_key(folder: &Path) -> Option<Key> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).ok()?.flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else if entry.file_name() == "token-key.der" {
                return Key::from_der(&std::fs::read(entry.path()).ok()?);
            }
        }
    }
    None
}

async fn forgeries(field: Rc<Field>) -> anyhow::Result<()> {
    let form = format!(
        "grant_type=client_credentials&nfInstanceId={PRODUCER}&nfType=UDM&targetNfType=NRF&scope=nnrf-disc"
    );
    let ask = Ask::new(Method::POST, "/oauth2/token").with("application/x-www-form-urlencoded", form);
    let got = field.ask(&ask).await;
    let good = got.json()["access_token"].as_str().unwrap_or_default().to_owned();
    let Some((header, claims)) = tokens::parts(&good) else {
        anyhow::bail!("the NRF grants no token: {}", got.text());
    };
    let folder = field.world.borrow().folder.path().to_owned();
    let Some(real) = signing_key(&folder) else {
        anyhow::bail!("the NRF's key is not where it was");
    };
    let disc = |token: &str| Ask::get(disc()).header("authorization", format!("Bearer {token}"));
    let got = field.ask(&disc(&good)).await;
    field.check(got.status == 200, format_args!("a good token: {}", got.text()));
    let own = real.sign(&header, &claims);
    field.check(
        field.ask(&disc(&own)).await.status == 200,
        "the harness signs wrongly",
    );

    let evil = Key::generate();
    let with = |base: &Value, more: Value| {
        let mut value = base.clone();
        if let (Some(value), Some(more)) = (value.as_object_mut(), more.as_object()) {
            value.extend(more.clone());
        }
        value
    };
    let jwks = field.ask(&Ask::get("/oauth2/jwks")).await;
    let mut forged: Vec<(&str, String)> = vec![
        ("nothing", String::new()),
        ("not three parts", "a.b".to_owned()),
        ("alg none", tokens::unsigned(&with(&header, json!({"alg": "none"})), &claims) + "."),
        ("no signature", tokens::unsigned(&header, &claims) + "."),
        ("another's signature", evil.sign(&header, &claims)),
        ("zero signature", format!("{}.{}", tokens::unsigned(&header, &claims), "A".repeat(86))),
        ("HS256 with the key set", tokens::hs256(&with(&header, json!({"alg": "HS256"})), &claims, &jwks.body)),
        ("HS256 with the public key", tokens::hs256(&with(&header, json!({"alg": "HS256"})), &claims, real.public_pem().as_bytes())),
        ("a kid that is a path", evil.sign(&with(&header, json!({"kid": "../../../dev/null"})), &claims)),
        ("an unknown kid", evil.sign(&with(&header, json!({"kid": "x"})), &claims)),
        ("a key in the header", evil.sign(&with(&header, json!({"jwk": evil.jwk()})), &claims)),
        ("a link to a key", evil.sign(&with(&header, json!({"jku": "http://127.0.0.1:9/jwks"})), &claims)),
        ("a certificate in the header", evil.sign(&with(&header, json!({"x5c": ["AAAA"]})), &claims)),
        ("60 KB", "a".repeat(60_000)),
        ("depth", evil.sign(&header, &json!({"a": serde_json::from_str::<Value>(&format!("{}{}", "[".repeat(100), "]".repeat(100))).unwrap_or_default()}))),
    ];
    // Right but for one thing: signed with the NRF's key.
    for (what, more) in [
        ("over", json!({"exp": now() - 3_600})),
        ("an end that is a text", json!({"exp": "never"})),
        ("not yet", json!({"nbf": now() + 36_000})),
        ("for another service", json!({"scope": "nudm-sdm"})),
        ("for another audience", json!({"aud": "UDM"})),
        ("without an audience", json!({"aud": []})),
    ] {
        forged.push((what, real.sign(&header, &with(&claims, more))));
    }
    let critical = with(&header, json!({"crit": ["exp-2"], "exp-2": 1}));
    forged.push(("critical and unknown", real.sign(&critical, &claims)));
    for (what, token) in forged {
        for _ in 0..field.of(20, 1) {
            let got = field.ask(&disc(&token)).await;
            let refused = matches!(got.status, 0 | 400 | 401 | 403 | 431);
            field.check(refused, format_args!("a token ({what}): answered {}", got.status));
        }
    }
    Ok(())
}

async fn impersonation(field: Rc<Field>) -> anyhow::Result<()> {
    const EVIL: &str = "00000000-0000-4000-8000-0000000000e9";
    const VICTIM: &str = "00000000-0000-4000-8000-0000000000e8";
    for names in [
        vec!["evil.example".to_owned(), format!("urn:uuid:{EVIL}")],
        vec!["client".to_owned()],
    ] {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let shown = names.join(", ");
        let tls = match &field.world.borrow().tls {
            Some(tls) => tls.client(&names)?,
            None => anyhow::bail!("a stage without certificates"),
        };
        let evil = client_over("AF-attacker", Some(tls));
        let form = format!(
            "grant_type=client_credentials&nfInstanceId={PRODUCER}&nfType=UDM&targetNfType=NRF&scope=nnrf-nfm"
        );
        let of = |id: &str| format!("/nnrf-nfm/v1/nf-instances/{id}");
        let priority = json!([{"op": "replace", "path": "/priority", "value": 9}]).to_string();
        for (what, ask) in [
            (
                "registers another",
                Ask::new(Method::PUT, of(VICTIM)).json(&profile(VICTIM, "AMF", "namf-comm", 9, &json!({}))),
            ),
            (
                "registers over another",
                Ask::new(Method::PUT, of(PRODUCER)).json(&profile(
                    PRODUCER,
                    "UDM",
                    "nudm-sdm",
                    9,
                    &json!({}),
                )),
            ),
            (
                "gets a token as another",
                Ask::new(Method::POST, "/oauth2/token").with("application/x-www-form-urlencoded", form),
            ),
            (
                "changes another",
                Ask::new(Method::PATCH, of(PRODUCER)).with("application/json-patch+json", priority),
            ),
            ("deregisters another", Ask::new(Method::DELETE, of(PRODUCER))),
        ] {
            let got = field.ask_as(&evil, &ask).await;
            field.check(
                matches!(got.status, 400 | 401 | 403),
                format_args!("a certificate of {shown} {what}: {}", got.status),
            );
        }
    }
    Ok(())
}

const CONSUMER: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64";

/// Two keys: `a` is the consumer's, `b` that of another consumer.
struct Keys {
    a: Key,
    b: Key,
    folder: Option<tempfile::TempDir>,
}

fn keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| {
        let keys = Keys {
            a: Key::generate(),
            b: Key::generate(),
            folder: tempfile::tempdir().ok(),
        };
        if let Some(folder) = &keys.folder {
            // A file that is missing shows when the SCP starts.
            let _ = std::fs::write(folder.path().join("a.pem"), keys.a.public_pem());
            let _ = std::fs::write(folder.path().join("b.pem"), keys.b.public_pem());
        }
        keys
    })
}

fn assertion_settings() -> Value {
    let folder = keys()
        .folder
        .as_ref()
        .map(|folder| folder.path().to_owned())
        .unwrap_or_default();
    json!({"security": {"assertions": {"mode": "check", "keys": [
        {"id": "a", "file": folder.join("a.pem"), "instances": [CONSUMER]},
        {"id": "b", "file": folder.join("b.pem"), "instances": ["00000000-0000-4000-8000-0000000000b0"]}
    ]}}})
}

async fn assertions(field: Rc<Field>) -> anyhow::Result<()> {
    let keys = keys();
    let header = |kid: &str| json!({"alg": "ES256", "typ": "JWT", "kid": kid});
    let claims = |more: Value| {
        let mut claims = json!({"sub": CONSUMER, "iat": now() - 10, "exp": now() + 600, "aud": ["SCP"]});
        if let (Some(claims), Some(more)) = (claims.as_object_mut(), more.as_object()) {
            claims.extend(more.clone());
        }
        claims
    };
    let none = claims(json!({}));
    let ask =
        |assertion: &str| wish(Ask::get(PRODUCER_PATH)).header("3gpp-sbi-client-credentials", assertion);
    let good = keys.a.sign(&header("a"), &none);
    let got = field.ask(&ask(&good)).await;
    field.check(
        got.status == 200,
        format_args!("a good assertion: {}", got.text()),
    );
    for (what, forged) in [
        (
            "alg none",
            tokens::unsigned(&json!({"alg": "none", "kid": "a"}), &none) + ".",
        ),
        ("no signature", tokens::unsigned(&header("a"), &none) + "."),
        (
            "HS256 with the public key",
            tokens::hs256(
                &json!({"alg": "HS256", "kid": "a"}),
                &none,
                keys.a.public_pem().as_bytes(),
            ),
        ),
        ("another's key under this name", keys.b.sign(&header("a"), &none)),
        ("another's key and its name", keys.b.sign(&header("b"), &none)),
        ("a kid that is a path", keys.b.sign(&header("../b"), &none)),
        (
            "a key in the header",
            keys.b.sign(&json!({"alg": "ES256", "jwk": keys.b.jwk()}), &none),
        ),
        (
            "over",
            keys.a.sign(
                &header("a"),
                &claims(json!({"exp": now() - 600, "iat": now() - 1_000})),
            ),
        ),
        (
            "not yet",
            keys.a.sign(&header("a"), &claims(json!({"nbf": now() + 36_000}))),
        ),
        (
            "for another",
            keys.a.sign(&header("a"), &claims(json!({"aud": ["NRF"]}))),
        ),
        (
            "too long",
            keys.a
                .sign(&header("a"), &claims(json!({"exp": now() + 1_000_000_000}))),
        ),
        (
            "without a subject",
            keys.a.sign(&header("a"), &claims(json!({"sub": null}))),
        ),
        (
            "a subject that the key is not bound to",
            keys.a.sign(&header("a"), &claims(json!({"sub": PRODUCER}))),
        ),
        (
            "critical and unknown",
            keys.a
                .sign(&json!({"alg": "ES256", "kid": "a", "crit": ["x"], "x": 1}), &none),
        ),
        ("text", "x".repeat(20_000)),
    ] {
        let got = field.ask(&ask(&forged)).await;
        field.check(
            matches!(got.status, 0 | 400 | 401 | 403 | 431),
            format_args!("an assertion ({what}): answered {}", got.status),
        );
    }
    Ok(())
}
