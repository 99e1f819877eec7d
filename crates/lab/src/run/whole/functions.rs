//! The five functions of a run and their peers: UDR, CHF.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};

use crate::call::Peers;
use crate::run::children::{Guarded, Simulator};
use crate::run::policy::network::{amf_info, register};
use crate::run::policy::projects;
use crate::run::rig::{Place, RigError, free_address, write_config};
use callmodel::policy::{Complexity, Source};
use callmodel::whole::CoreModel;
use report::measure::Usage;
use simulators::{PolicySubscribers, RoleName, Settings};
use workload::policy::FIRST_IMSI;

/// Realm of the PCF and the BSF in Diameter.
const REALM: &str = "example.org";
const BSF_HOST: &str = "bsf.example.org";
const PCF_HOST: &str = "pcf.example.org";

/// A function that runs.
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) admin: SocketAddr,
    process: Guarded,
}

impl Function {
    pub(super) fn usage(&self) -> Usage {
        self.process.process().usage().unwrap_or_default()
    }
}

/// All functions of a run.
pub(super) struct Core {
    /// In the order in which they start.
    pub(super) functions: Vec<Function>,
    pub(super) simulators: Vec<Simulator>,
    nrf: SocketAddr,
    scp: SocketAddr,
    bsf: SocketAddr,
    router: SocketAddr,
}

impl Core {
    /// Starts everything. `consumers`: where the AMF, the SMF and the AF are.
    pub(super) fn start(model: &CoreModel, place: &Place, consumers: SocketAddr) -> Result<Self, RigError> {
        let mut core = Self {
            functions: Vec::new(),
            simulators: Vec::new(),
            nrf: free_address()?,
            scp: free_address()?,
            bsf: free_address()?,
            router: free_address()?,
        };
        let (pcf, pcf_rx, bsf_rx) = (free_address()?, free_address()?, free_address()?);
        let nrf = format!("http://{}", core.nrf);
        let address = core.nrf;
        core.function(
            place,
            "nrf",
            address,
            json!({
                "heartBeat": {"max": "24h"}, "tokens": {"requireRegistration": false},
            }),
        )?;
        core.peers_of_pcf(model, place, consumers)?;
        let address = core.bsf;
        core.function(
            place,
            "bsf",
            address,
            json!({
                "nrf": {"apiRoots": [nrf]},
                "rx": {"listen": [bsf_rx], "host": BSF_HOST, "realm": REALM},
            }),
        )?;
        let folders = projects::write(Complexity::High, place)?;
        core.function(
            place,
            "pcf",
            pcf,
            json!({
                "nrf": {"apiRoots": [nrf]},
                "bsf": {"apiRoots": [format!("http://{}", core.bsf)],
                    "binding": {"pcfDiamHost": PCF_HOST, "pcfDiamRealm": REALM}},
                "policy": {"sm": folders.sm, "am": folders.am, "ue": folders.ue},
                "pds": {"deadline": "3s", "udr": {"enabled": true},
                    "chf": {"enabled": true, "services": ["sm", "am"]}},
                // The PCF connects to the BSF, which sends it the AARs of its sessions.
                "diameter": {"listen": [pcf_rx], "host": PCF_HOST, "realm": REALM,
                    "peers": [{"host": BSF_HOST, "addresses": [bsf_rx]}]},
            }),
        )?;
        let address = core.scp;
        core.function(
            place,
            "scp",
            address,
            json!({
                "nrf": {"roots": [nrf], "nfTypes": ["PCF"], "retryInterval": "200ms"},
                "directory": place.folder.join("scp"),
            }),
        )?;
        let address = core.router;
        core.function(
            place,
            "dsr",
            address,
            json!({
                "localNodes": [{"host": "dsr.ims.example", "realm": "ims.example", "listen": [address]}],
                "peers": [{"host": BSF_HOST, "addresses": [bsf_rx]}],
                "routing": {
                    "realmRoutes": [{"realm": REALM, "routeList": "bsf"}],
                    "routeLists": [{"name": "bsf", "groups": ["bsf"]}],
                    "routeGroups": [{"name": "bsf", "peers": [{"host": BSF_HOST}]}],
                },
            }),
        )?;
        Ok(core)
    }

    /// Where the legs of a call go.
    pub(super) fn peers(&self, patience: Duration) -> Peers {
        Peers {
            nrf: self.nrf,
            scp: self.scp,
            bsf: self.bsf,
            router: self.router,
            realm: REALM.to_owned(),
            patience,
            secure: None,
        }
    }

    pub(super) fn stop(self) {
        for function in self.functions.into_iter().rev() {
            function.process.stop();
        }
    }

    /// Starts a function with these settings, beside those that all have.
    fn function(
        &mut self,
        place: &Place,
        name: &'static str,
        address: SocketAddr,
        own: Value,
    ) -> Result<(), RigError> {
        let admin = free_address()?;
        let mut settings = json!({"admin": admin, "workers": 1});
        if let (Some(settings), Value::Object(own)) = (settings.as_object_mut(), own) {
            settings.extend(own);
            if name != "dsr" {
                settings.insert("listen".to_owned(), json!([address]));
            }
            if matches!(name, "nrf" | "bsf" | "pcf") {
                // A run begins without state, also in a folder that was used before.
                let store = place.empty_folder(&format!("{name}-store"))?;
                settings.insert("store".to_owned(), json!({"embedded": {"directory": store}}));
            }
        }
        let file = place.folder.join(format!("{name}.yaml"));
        write_config(&file, json!({name: settings}), None)?;
        let mut process = place.start(name, &file, &place.function_cpus)?;
        process.wait_for(address)?;
        self.functions.push(Function { name, admin, process });
        Ok(())
    }

    /// Starts UDR and CHF, and registers them and the AMF at the NRF.
    fn peers_of_pcf(
        &mut self,
        model: &CoreModel,
        place: &Place,
        consumers: SocketAddr,
    ) -> Result<(), RigError> {
        let amf = json!({"amfInfo": amf_info()});
        register(self.nrf, 1, ("AMF", "namf-comm"), consumers, amf)?;
        let peers = [
            ("UDR", "nudr-dr", RoleName::Udr, model.udr),
            ("CHF", "nchf-spendinglimitcontrol", RoleName::Chf, model.chf),
        ];
        for (row, (nf_type, service, role, Source { latency })) in (2..).zip(peers) {
            let settings = Settings {
                role,
                latency,
                udr: PolicySubscribers {
                    first: FIRST_IMSI,
                    count: model.subscribers,
                },
                ..Settings::default()
            };
            let name = nf_type.to_ascii_lowercase();
            let started = Simulator::start(&place.program, &name, &settings, &place.lab_cpus, &place.folder)?;
            let address = started.addresses.first().copied();
            let address =
                address.ok_or_else(|| RigError::Settings(format!("the simulator {name} listens nowhere")))?;
            self.simulators.push(started);
            let info = match nf_type {
                "UDR" => json!({"udrInfo": {"supportedDataSets": ["POLICY"]}}),
                _ => json!({}),
            };
            register(self.nrf, row, (nf_type, service), address, info)?;
        }
        Ok(())
    }
}
