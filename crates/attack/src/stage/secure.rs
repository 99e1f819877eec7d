//! A core of `signalbox up --secure`, with the certificates that it has made.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use http::Method;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use sbi::client::Origin;
use serde_json::{Value, json};

use super::Process;
use crate::answer::{Ask, Got, client_over, send};

/// A function of the core as its certificate names it.
#[derive(Clone)]
pub struct Member {
    /// NF instance id.
    pub id: String,
    /// Its TLS.
    pub tls: Arc<rustls::ClientConfig>,
    nf_type: &'static str,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.id)
    }
}

/// The core.
#[derive(Clone, Debug)]
pub struct Core {
    /// Its NRF.
    pub nrf: Origin,
    /// Its PCF.
    pub pcf: Origin,
    certificates: PathBuf,
}

impl Core {
    /// A core that has started.
    ///
    /// # Errors
    /// When it printed no addresses.
    pub fn of(process: &Process, folder: &Path) -> anyhow::Result<Self> {
        let origin =
            |function: &str| -> anyhow::Result<Origin> { Ok(process.secure_root(function)?.parse()?) };
        Ok(Self {
            nrf: origin("nrf")?,
            pcf: origin("pcf")?,
            certificates: folder.join("state/secure"),
        })
    }

    /// The application function that the person at the terminal is.
    ///
    /// # Errors
    /// When its certificate cannot be read.
    pub fn person(&self) -> anyhow::Result<Member> {
        self.member("you", "AF")
    }

    /// One of the simulated SMFs, which is registered.
    ///
    /// # Errors
    /// When there is none.
    pub fn smf(&self) -> anyhow::Result<Member> {
        let files = std::fs::read_dir(&self.certificates)?;
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let mut names = names.filter_map(|name| name.strip_suffix(".crt").map(str::to_owned));
        let smf = names.find(|name| name.starts_with("simulated-smf-"));
        self.member(&smf.context("no simulated SMF")?, "SMF")
    }

    fn member(&self, name: &str, nf_type: &'static str) -> anyhow::Result<Member> {
        let file = |ending: &str| self.certificates.join(format!("{name}.{ending}"));
        let files = tls::TlsFiles {
            certificate: file("crt"),
            key: file("key"),
            authorities: Some(self.certificates.join("authority.crt")),
            ..tls::TlsFiles::default()
        };
        let der = CertificateDer::from_pem_file(&files.certificate)?;
        let der = String::from_utf8_lossy(&der).into_owned();
        let (_, id) = der
            .split_once("urn:uuid:")
            .context("a certificate without an instance")?;
        Ok(Member {
            id: id.chars().take(36).collect(),
            tls: tls::Material::read(&files)?.client(tls::HTTP2)?,
            nf_type,
        })
    }

    /// Asks the NRF for a token.
    pub async fn ask_token(&self, member: &Member, target: &str, scope: &str) -> Got {
        let (id, nf_type) = (&member.id, member.nf_type);
        let form = format!(
            "grant_type=client_credentials&nfInstanceId={id}&nfType={nf_type}&targetNfType={target}&scope={scope}"
        );
        let ask = Ask::new(Method::POST, "/oauth2/token").with("application/x-www-form-urlencoded", form);
        send(&client_over(nf_type, Some(member.tls.clone())), &self.nrf, &ask).await
    }

    /// A token, as a request has it; none where the NRF grants none.
    pub async fn token(&self, member: &Member, target: &str, scope: &str) -> Option<String> {
        let got = self.ask_token(member, target, scope).await;
        let token = got.json()["access_token"].as_str().map(str::to_owned)?;
        Some(format!("Bearer {token}"))
    }

    /// Sends a request to the PCF.
    pub async fn ask_pcf(&self, member: &Member, token: Option<&str>, ask: Ask) -> Got {
        let ask = match token {
            Some(token) => ask.header("authorization", token),
            None => ask,
        };
        send(
            &client_over(member.nf_type, Some(member.tls.clone())),
            &self.pcf,
            &ask,
        )
        .await
    }

    /// Registers a profile of a type under an instance.
    pub async fn register(&self, member: &Member, nf_type: &str) -> Got {
        let profile = json!({
            "nfInstanceId": member.id, "nfType": nf_type, "nfStatus": "REGISTERED", "ipv4Addresses": ["127.0.0.1"]
        });
        let put = Ask::new(Method::PUT, format!("/nnrf-nfm/v1/nf-instances/{}", member.id)).json(&profile);
        // Once registered, a change needs a token.
        let token = self.token(member, "NRF", "nnrf-nfm").await;
        let put = match token {
            Some(token) => put.header("authorization", token),
            None => put,
        };
        send(
            &client_over(member.nf_type, Some(member.tls.clone())),
            &self.nrf,
            &put,
        )
        .await
    }

    /// An SM policy of the honest SMF: its path, and the token that opens it.
    ///
    /// # Errors
    /// When the core does not serve the SMF in time.
    pub async fn session(&self, smf: &Member) -> anyhow::Result<(String, String)> {
        let context = json!({
            "supi": "imsi-001010000000001", "pduSessionId": 5, "pduSessionType": "IPV4", "dnn": "internet",
            "notificationUri": "https://127.0.0.1:9/smf", "sliceInfo": {"sst": 1}, "ipv4Address": super::HONEST_ADDRESS
        });
        let mut last = String::new();
        // Simulated functions register, and the PCF reads the keys of the NRF.
        for _ in 0..400 {
            if let Some(token) = self.token(smf, "PCF", "npcf-smpolicycontrol").await {
                let post = Ask::new(Method::POST, "/npcf-smpolicycontrol/v1/sm-policies").json(&context);
                let got = self.ask_pcf(smf, Some(&token), post).await;
                if got.status == 201 {
                    let location = got.headers.get("location").and_then(|value| value.to_str().ok());
                    let uri: http::Uri = location.unwrap_or_default().parse()?;
                    return Ok((uri.path().to_owned(), token));
                }
                last = got.text();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bail!("the honest SMF is not served: {last}")
    }
}

/// The configuration of a core on ports and with state of its own.
///
/// # Errors
/// When the program does not show its defaults.
pub fn config(binary: &Path, folder: &Path) -> anyhow::Result<Value> {
    let shown = std::process::Command::new(binary)
        .args(["config", "show", "--json"])
        .output()?;
    let mut config = serde_json::from_slice(&shown.stdout)?;
    move_away(&mut config, folder);
    Ok(config)
}

fn move_away(value: &mut Value, folder: &Path) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match (key.as_str(), &mut *value) {
                    ("listen" | "admin", Value::String(_)) => *value = "127.0.0.1:0".into(),
                    ("listen", Value::Array(several)) => several.fill("127.0.0.1:0".into()),
                    // Each function has a directory of its own: run/nrf, run/bsf.
                    ("directory", Value::String(of)) => {
                        let name = Path::new(of.as_str()).file_name().unwrap_or_default();
                        *value = folder.join("state").join(name).to_string_lossy().into();
                    }
                    _ => move_away(value, folder),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_away(item, folder)),
        _ => {}
    }
}
