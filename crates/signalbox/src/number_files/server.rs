//! Records into a subscriber database server that runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use sbi::Body;
use sbi::client::{Client, ClientConfig, Origin, SendOptions};

use super::progress::Display;
use super::spool::Spool;
use crate::failure::Failure;

/// Records of a request, which the server writes as one transaction.
const MOST_RECORDS: usize = 1_000;
/// Bytes of a request: the server takes 16 MiB by default.
const MOST_BYTES: usize = 4 << 20;
/// Time for the answer to a request.
const DEADLINE: Duration = Duration::from_secs(60);

/// The server, and what proves who sends.
#[derive(Debug, Args)]
#[command(next_help_heading = "Subscriber database server")]
pub(super) struct Server {
    /// Write records, names among them, into a subscriber database server in place of FILE: http://HOST:8095 or https://HOST:8095
    #[arg(long, value_name = "URL", id = "sds")]
    sds: Option<String>,
    /// File with an access token (scope sds-provisioning), read for each request of a thousand records
    #[arg(long, value_name = "FILE", requires = "sds")]
    token_file: Option<PathBuf>,
    /// PEM file of the authorities that the server's certificate is checked by (https)
    #[arg(long, value_name = "FILE", requires = "sds")]
    sds_authorities: Option<PathBuf>,
    /// PEM file with the certificate that is shown to the server
    #[arg(long, value_name = "FILE", requires_all = ["sds", "sds_key"])]
    sds_certificate: Option<PathBuf>,
    /// PEM file with its key
    #[arg(long, value_name = "FILE", requires = "sds_certificate")]
    sds_key: Option<PathBuf>,
}

impl Server {
    /// Sends all records of a spool; returns the offset of the last transaction.
    ///
    /// # Errors
    /// What the server has refused, and how many records were written before.
    pub(super) fn send(&self, spool: &mut Spool, display: &mut Display) -> Result<u64, Failure> {
        let url = self.sds.as_deref().unwrap_or_default();
        let origin: Result<Origin, _> = url.parse();
        let origin = origin.map_err(|error| Failure::Usage(format!("--sds {url}: {error}")))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        if url.starts_with("https:") && self.sds_authorities.is_none() {
            return Err(Failure::Usage(format!(
                "--sds {url}: https needs --sds-authorities, the authorities that the server's certificate is checked by"
            )));
        }
        let client = self.client()?;
        let sending = self.send_all(&client, &origin, spool, display);
        Ok(tokio::task::LocalSet::new()
            .block_on(&runtime, sending)
            .with_context(|| url.to_owned())?)
    }

    fn client(&self) -> Result<Client, Failure> {
        let files = tls::TlsFiles {
            certificate: self.sds_certificate.clone().unwrap_or_default(),
            key: self.sds_key.clone().unwrap_or_default(),
            authorities: self.sds_authorities.clone(),
            ..tls::TlsFiles::default()
        };
        let tls = files
            .authorities
            .is_some()
            .then(|| tls::Material::read(&files))
            .transpose();
        let tls = tls.and_then(|material| material.map(|material| material.client(tls::HTTP2)).transpose());
        let tls = tls.context("--sds-authorities, --sds-certificate and --sds-key")?;
        let config = ClientConfig {
            user_agent: "signalbox-import".to_owned(),
            ..ClientConfig::default()
        };
        Ok(Client::with_names(Arc::new(config), tls.map(Into::into), None))
    }

    async fn send_all(
        &self,
        client: &Client,
        origin: &Origin,
        spool: &mut Spool,
        display: &mut Display,
    ) -> anyhow::Result<u64> {
        let (all, mut sent, mut offset) = (spool.lines(), 0, 0);
        let mut records = spool.records()?.peekable();
        while records.peek().is_some() {
            let (mut body, mut count) = (String::new(), 0);
            while count < MOST_RECORDS
                && body.len() < MOST_BYTES
                && let Some(record) = records.next()
            {
                body.push_str(&record?);
                body.push('\n');
                count += 1;
            }
            // For each request: a token ends, and its file gets the next one meanwhile.
            let token = self.token_file.as_deref().map(token).transpose();
            let written = match token {
                Ok(token) => post(client, origin, token.as_deref(), body).await,
                Err(unreadable) => Err(unreadable),
            };
            let so_far = || format!("{sent} of {all} records were written; the import may be repeated");
            offset = written.with_context(so_far)?;
            sent += count as u64;
            display.show("records written", sent, Some(sent as f64 / all.max(1) as f64));
        }
        Ok(offset)
    }
}

/// The token of a file as the value of a header.
fn token(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("--token-file {}", path.display()))?;
    Ok(format!("Bearer {}", text.trim()))
}

/// Writes the records of a body; the offset of the last transaction.
async fn post(client: &Client, origin: &Origin, token: Option<&str>, body: String) -> anyhow::Result<u64> {
    let mut request = http::Request::post("/records").header("content-type", "text/csv");
    if let Some(token) = token {
        request = request.header("authorization", token);
    }
    let options = SendOptions {
        deadline: DEADLINE,
        ..SendOptions::default()
    };
    let answer = client
        .send(origin, request.body(Body::from(body))?, options)
        .await?;
    let status = answer.status();
    let body = answer.into_body().into_bytes();
    let document: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |member: &str| document.get(member).and_then(serde_json::Value::as_str);
    if !status.is_success() {
        bail!(
            "status {status}: {}",
            text("detail").or(text("title")).unwrap_or("no reason")
        );
    }
    let offset = document.get("offset").and_then(serde_json::Value::as_u64);
    offset.ok_or_else(|| anyhow!("the answer has no offset"))
}
