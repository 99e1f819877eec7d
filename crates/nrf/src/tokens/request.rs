//! `AccessTokenReq`: a form (TS 29.510 §6.3.5.2.2).

use model::{NfInstanceId, NfType, PlmnId, Snssai};
use percent_encoding::percent_decode_str;

use super::issuer::TokenFault;

/// A request for a token.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // Member for member the table named above.
pub struct Request {
    pub nf_instance_id: NfInstanceId,
    pub nf_type: Option<NfType>,
    pub scopes: Vec<String>,
    pub target_nf_type: Option<NfType>,
    pub target_nf_instance_id: Option<NfInstanceId>,
    pub requester_plmn: Option<PlmnId>,
    pub target_plmn: Option<PlmnId>,
    pub target_snssais: Vec<Snssai>,
    pub target_nsis: Vec<String>,
    pub target_nf_set_id: Option<String>,
    pub target_nf_service_set_id: Option<String>,
}

/// Reads the form.
///
/// # Errors
/// The OAuth error and what was wrong.
pub fn parse(body: &[u8]) -> Result<Request, TokenFault> {
    let text = std::str::from_utf8(body).map_err(|_| TokenFault::request("the form is not text"))?;
    let mut fields: Vec<(String, String)> = Vec::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| {
            let spaces = text.replace('+', " ");
            percent_decode_str(&spaces)
                .decode_utf8()
                .map(std::borrow::Cow::into_owned)
        };
        match (decode(name), decode(value)) {
            (Ok(name), Ok(value)) if !fields.iter().any(|(known, _)| *known == name) => {
                fields.push((name, value));
            }
            (Ok(name), Ok(_)) => return Err(TokenFault::request(format!("{name} is there twice"))),
            _ => return Err(TokenFault::request("the form is not UTF-8")),
        }
    }
    let field = |name: &str| {
        fields
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    };
    match field("grant_type") {
        Some("client_credentials") => {}
        Some(_) => {
            return Err(TokenFault::new(
                "unsupported_grant_type",
                "expected client_credentials",
            ));
        }
        None => return Err(TokenFault::request("grant_type is missing")),
    }
    let instance = |name: &str| -> Result<Option<NfInstanceId>, TokenFault> {
        let parsed = field(name).map(|text| NfInstanceId::parse(text));
        parsed
            .transpose()
            .map_err(|expected| TokenFault::request(format!("{name}: {expected}")))
    };
    let scopes: Vec<String> = field("scope")
        .unwrap_or_default()
        .split(' ')
        .filter(|s| !s.is_empty())
        .map(str::to_owned)
        .collect();
    let scope_fits = |scope: &String| {
        scope
            .bytes()
            .all(|b| (0x21..=0x7e).contains(&b) && b != b'"' && b != b'\\')
    };
    if scopes.is_empty() || !scopes.iter().all(scope_fits) {
        return Err(TokenFault::new(
            "invalid_scope",
            "scope is missing or not a list of service names",
        ));
    }
    Ok(Request {
        nf_instance_id: instance("nfInstanceId")?
            .ok_or_else(|| TokenFault::request("nfInstanceId is missing"))?,
        nf_type: field("nfType").map(NfType::from),
        scopes,
        target_nf_type: field("targetNfType").map(NfType::from),
        target_nf_instance_id: instance("targetNfInstanceId")?,
        requester_plmn: json(field("requesterPlmn"), "requesterPlmn")?,
        target_plmn: json(field("targetPlmn"), "targetPlmn")?,
        target_snssais: json(field("targetSnssaiList"), "targetSnssaiList")?.unwrap_or_default(),
        target_nsis: json(field("targetNsiList"), "targetNsiList")?.unwrap_or_default(),
        target_nf_set_id: field("targetNfSetId").map(str::to_owned),
        target_nf_service_set_id: field("targetNfServiceSetId").map(str::to_owned),
    })
}

fn json<T: serde::de::DeserializeOwned>(text: Option<&str>, name: &str) -> Result<Option<T>, TokenFault> {
    let parsed = text.map(serde_json::from_str).transpose();
    parsed.map_err(|error| TokenFault::request(format!("{name}: expected JSON: {error}")))
}
