//! Commands to try at a secure core.

use super::{PERSON, Secure};
use crate::started::{Started, interface};

/// Commands for a shell; each works after those before it.
pub(crate) fn page(secure: &Secure, started: &[Started]) -> String {
    let root = |function| interface(started, function, "SBI").unwrap_or_default();
    let (nrf, scp, bsf) = (root("nrf"), root("scp"), root("bsf"));
    let folder = secure.folder().display();
    format!(
        r#"
All interfaces use mutual TLS and require access tokens. Certificates and keys are in {folder}.
`you.crt` names an application function. It registers by its certificate, and asks for a token for each service.

Try, in one shell:
  you() {{ curl --silent --show-error --cacert {folder}/authority.crt --cert {folder}/you.crt --key {folder}/you.key "$@"; echo; }}
  token() {{ you {nrf}/oauth2/token -d "grant_type=client_credentials&nfInstanceId={PERSON}&nfType=AF&targetNfType=$1&scope=$2" | sed 's/.*"access_token":"\([^"]*\)".*/\1/'; }}
  you {nrf}/nnrf-nfm/v1/nf-instances/{PERSON} -X PUT -H 'content-type: application/json' -d '{{"nfInstanceId":"{PERSON}","nfType":"AF","nfStatus":"REGISTERED","ipv4Addresses":["127.0.0.1"]}}'
  you '{nrf}/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AF' -H "authorization: Bearer $(token NRF nnrf-disc)"
  you {scp}/nudm-sdm/v1/imsi-001010000000001/am-data -H "authorization: Bearer $(token UDM nudm-sdm)" -H '3gpp-Sbi-Discovery-target-nf-type: UDM' -H '3gpp-Sbi-Discovery-requester-nf-type: AF' -H '3gpp-Sbi-Discovery-service-names: nudm-sdm'
  you '{bsf}/nbsf-management/v1/pcfBindings?ipv4Addr=10.0.0.1' -H "authorization: Bearer $(token BSF nbsf-management)"
"#
    )
}
