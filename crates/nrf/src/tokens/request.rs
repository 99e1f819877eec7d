//! `AccessTokenReq`: a form (TS 29.510 §6.3.5.2.2).

use model::shape::rules;
use model::{ExtSnssai, NfInstanceId, NfType, PlmnId, PlmnIdNid, Snssai};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

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
    pub requester_plmns: Vec<PlmnId>,
    pub requester_snssais: Vec<ExtSnssai>,
    pub requester_fqdn: Option<String>,
    pub requester_snpns: Vec<PlmnIdNid>,
    pub target_plmn: Option<PlmnId>,
    pub target_snpn: Option<PlmnIdNid>,
    pub target_snssais: Vec<Snssai>,
    pub target_nsis: Vec<String>,
    pub target_nf_set_id: Option<String>,
    pub target_nf_service_set_id: Option<String>,
    pub home_nrf: Option<String>,
    pub source_nf_instance_id: Option<NfInstanceId>,
}

/// Lists: each parameter is a JSON list, or an item of the list (`explode` of OpenAPI 3.0).
const LISTS: &[&str] = &[
    "requesterPlmnList",
    "requesterSnssaiList",
    "requesterSnpnList",
    "targetSnssaiList",
    "targetNsiList",
];

/// Reads the form.
///
/// # Errors
/// The OAuth error and what was wrong.
pub fn parse(body: &[u8]) -> Result<Request, TokenFault> {
    let form = Form::read(body)?;
    let field = |name: &'static str| form.get(name);
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
    let instance = |name: &'static str| -> Result<Option<NfInstanceId>, TokenFault> {
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
        requester_plmn: form.json("requesterPlmn")?,
        requester_plmns: form.list("requesterPlmnList")?,
        requester_snssais: form.list("requesterSnssaiList")?,
        requester_fqdn: field("requesterFqdn").map(host).transpose()?,
        requester_snpns: form.list("requesterSnpnList")?,
        target_plmn: form.json("targetPlmn")?,
        target_snpn: form.json("targetSnpn")?,
        target_snssais: form.list("targetSnssaiList")?,
        target_nsis: form.texts("targetNsiList"),
        target_nf_set_id: field("targetNfSetId").map(str::to_owned),
        target_nf_service_set_id: field("targetNfServiceSetId").map(str::to_owned),
        home_nrf: field("hnrfAccessTokenUri").map(str::to_owned),
        source_nf_instance_id: instance("sourceNfInstanceId")?,
    })
}

/// A name of a host, which need not be fully qualified.
fn host(text: &str) -> Result<String, TokenFault> {
    rules::with_host_names(true, || rules::fqdn(text))
        .map_err(|expected| TokenFault::request(format!("requesterFqdn: {expected}")))?;
    Ok(text.to_owned())
}

/// The parameters of a form (`application/x-www-form-urlencoded`), decoded, in their order.
struct Form(Vec<(String, String)>);

impl Form {
    fn read(body: &[u8]) -> Result<Self, TokenFault> {
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
            let (Ok(name), Ok(value)) = (decode(name), decode(value)) else {
                return Err(TokenFault::request("the form is not UTF-8"));
            };
            let again = fields.iter().any(|(known, _)| *known == name);
            if again && !LISTS.contains(&&*name) {
                return Err(TokenFault::request(format!("{name} occurs twice")));
            }
            fields.push((name, value));
        }
        Ok(Self(fields))
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(known, _)| known == name);
        named.map(|(_, value)| value.as_str())
    }

    fn get<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next()
    }

    fn json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, TokenFault> {
        self.get(name).map(|text| parsed(text, name)).transpose()
    }

    fn list<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, TokenFault> {
        let mut items = Vec::new();
        for text in self.all(name) {
            match text.trim_start().starts_with('[') {
                true => items.extend(parsed::<Vec<T>>(text, name)?),
                false => items.push(parsed(text, name)?),
            }
        }
        Ok(items)
    }

    /// A list of strings: an item is plain text.
    fn texts(&self, name: &str) -> Vec<String> {
        let items = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| vec![text.to_owned()]);
        self.all(name).flat_map(items).collect()
    }
}

fn parsed<T: DeserializeOwned>(text: &str, name: &str) -> Result<T, TokenFault> {
    serde_json::from_str(text).map_err(|error| TokenFault::request(format!("{name}: expected JSON: {error}")))
}
