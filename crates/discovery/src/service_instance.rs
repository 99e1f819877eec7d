//! Service instances that a query names.

use model::{NfInstanceId, NfService};
use serde::Deserialize;

use crate::fault::ParamFault;
use crate::test::Param;

/// A service instance, by the instance or by a service set it belongs to (TS 29.510 §6.2.6.2.7).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceInstance {
    service_instance_id: Option<String>,
    nf_instance_id: Option<NfInstanceId>,
    nf_service_set_id: Option<String>,
}

impl ServiceInstance {
    /// Whether it names this service of this instance.
    #[must_use]
    pub fn names(&self, instance: &NfInstanceId, service: &NfService) -> bool {
        let id = self.service_instance_id.as_ref();
        let sets = &service.nf_service_set_id_list;
        id.is_none_or(|id| *id == service.service_instance_id)
            && self.nf_instance_id.is_none_or(|own| own == *instance)
            && self
                .nf_service_set_id
                .as_ref()
                .is_none_or(|set| sets.contains(set))
    }
}

/// Reads the value of `exclude-nfservinst-list`.
pub(crate) fn list(param: Param<'_>) -> Result<Vec<ServiceInstance>, ParamFault> {
    let list: Vec<ServiceInstance> = param.json_list()?;
    if list
        .iter()
        .all(|one| one.nf_instance_id.is_some() != one.nf_service_set_id.is_some())
    {
        return Ok(list);
    }
    Err(param.fault("expected either nfInstanceId or nfServiceSetId in each item"))
}
