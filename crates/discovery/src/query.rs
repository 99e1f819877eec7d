//! A discovery query, parsed once (TS 29.510 §6.2.3.2.3.1).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use model::nf_profile::{SmfInfo, VendorSpecificFeature};
use model::{
    Guami, NfInstanceId, NfService, NfType, PlmnId, PlmnSnssai, ServiceName, Snssai, SupportedFeatures, Tai,
};

use super::complex;
use super::fault::ParamFault;
use super::params;
use super::requester::Requester;
use super::service_instance::{self, ServiceInstance};
use super::test::{Param, Test};
use super::version::VersionIndication;

/// Largest `max-payload-size`, in kilo octets.
const MAX_PAYLOAD_KILOBYTES: usize = 2_000;
/// What holds without `max-payload-size`, in kilo octets.
const DEFAULT_PAYLOAD_KILOBYTES: usize = 124;

/// A query, ready to be matched against profiles. `supi` and `gpsi` are not in it: they come with each
/// question, so that a query is parsed once for all subscribers.
#[derive(Debug)]
pub struct Query {
    /// `target-nf-type`.
    pub target: Option<NfType>,
    /// The requester.
    pub requester: Requester,
    /// `service-names`: only these services are shown, and a profile must have one.
    pub services: Vec<ServiceName>,
    /// Whether the query names groups itself.
    pub names_groups: bool,
    /// `target-plmn-list`.
    pub target_plmns: Vec<PlmnId>,
    /// `hnrf-uri`.
    pub home_nrf: Option<String>,
    /// `limit`: profiles at most.
    pub limit: Option<usize>,
    /// `max-payload-size` or `max-payload-size-ext`, in bytes.
    pub max_payload: usize,
    /// `snssais`: the slices asked for, to which those of the answer are narrowed.
    pub slices: Vec<Snssai>,
    /// `plmn-specific-snssai-list`, likewise.
    pub plmn_slices: Vec<PlmnSnssai>,
    /// `guami`: its AMF, or who stands in for it.
    pub guami: Option<Guami>,
    /// `dnn`, `dnai-list` and `redundant-transport`, which must be offered in one of the slices.
    session: params::Session,
    /// What the profiles must fit.
    pub tests: Rc<[Test]>,
    /// What services must fit to be shown.
    pub service: ServiceFilter,
    /// In which order the profiles are answered.
    pub preferences: Preferences,
    /// `requester-features`.
    pub requester_features: SupportedFeatures,
    /// Parameters that test nothing here, in the order of the query: `supi` and `gpsi`, and unknown ones.
    /// A registry ignores unknown ones (TS 29.501 §5.2.2.2); an SCP that has a part of the network does not.
    pub unknown: Vec<String>,
}

/// What a service must fit.
#[derive(Debug, Default)]
pub struct ServiceFilter {
    /// `supported-features`.
    pub supported: Option<SupportedFeatures>,
    /// `required-features`: one per service name, in the order of `service-names`.
    pub required: Vec<SupportedFeatures>,
    /// `target-nf-service-set-id`.
    pub service_set: Option<String>,
    /// `exclude-nfservinst-list`.
    pub excluded: Vec<ServiceInstance>,
    /// `exclude-nfserviceset-list`.
    pub excluded_sets: Vec<String>,
}

/// Vendor-specific features wanted, by private enterprise number.
pub type VendorFeatures = BTreeMap<String, Vec<VendorSpecificFeature>>;

/// Preferences of the query.
#[derive(Debug, Default)]
pub struct Preferences {
    /// `preferred-locality`, and what the extended feature makes of it.
    pub locality: Option<String>,
    /// `preferred-nf-instances`.
    pub instances: Vec<NfInstanceId>,
    /// `preferred-tai`.
    pub tai: Option<Test>,
    /// `preferred-pgw-ind`.
    pub pgw: Option<bool>,
    /// The test that `preferred-pgw-ind` stands for.
    pub(crate) pgw_test: Option<Test>,
    /// `preferred-full-plmn`.
    pub full_plmn: Option<bool>,
    /// `preferred-api-versions`, by service name.
    pub api_versions: BTreeMap<ServiceName, VersionIndication>,
    /// `preferred-collocated-nf-types`.
    pub collocated: Vec<model::CollocatedNfType>,
    /// `preferred-vendor-specific-features`, by service name.
    pub vendor_features: BTreeMap<ServiceName, VendorFeatures>,
    /// `preferred-vendor-specific-nf-features`.
    pub vendor_nf_features: VendorFeatures,
    /// `preferred-analytics-delays`: seconds by analytics event.
    pub analytics_delays: BTreeMap<String, u32>,
    /// `preferences-precedence`: names of the above, most important first.
    pub precedence: Vec<String>,
}

impl Query {
    /// Reads the parameters of a URI. Unknown parameters are ignored (TS 29.501 §5.2.2.2).
    ///
    /// # Errors
    /// The first parameter that is missing or cannot be used.
    pub fn parse(pairs: &[(Cow<'_, str>, Cow<'_, str>)]) -> Result<Self, ParamFault> {
        let (mut query, mut tests) = (Self::empty(), Vec::new());
        for (at, (name, value)) in pairs.iter().enumerate() {
            // Consumers repeat parameters; equal values are accepted, different ones are not.
            match pairs[..at].iter().find(|(earlier, _)| earlier == name) {
                Some((_, earlier)) if earlier == value => continue,
                Some(_) => {
                    return Err(ParamFault::new(
                        name,
                        "expected once; lists are separated by commas",
                    ));
                }
                None => query.take(Param { name, value }, &mut tests)?,
            }
        }
        if query.target.is_none() {
            return Err(ParamFault::missing("target-nf-type"));
        }
        if query.requester.nf_type.is_none() {
            return Err(ParamFault::missing("requester-nf-type"));
        }
        let (required, named) = (query.service.required.len(), query.services.len());
        if required > 0 && required != named {
            let expected = format!("expected as many entries as service-names has, which is {named}");
            return Err(ParamFault::new("required-features", expected));
        }
        // The features are those of one service; with several names they are ambiguous (table 6.2.3.2.3.1 note 4).
        if named != 1 {
            query.service.supported = None;
        }
        let session = std::mem::take(&mut query.session);
        let named = session.names();
        let test = session.into_test(&query.slices);
        tests.extend(test.map(|test| test.of_parameter(&named)));
        query.tests = tests.into();
        query.preferences.join(&query.tests);
        Ok(query)
    }

    fn empty() -> Self {
        Self {
            target: None,
            requester: Requester::default(),
            services: Vec::new(),
            names_groups: false,
            target_plmns: Vec::new(),
            home_nrf: None,
            limit: None,
            max_payload: DEFAULT_PAYLOAD_KILOBYTES * 1_000,
            slices: Vec::new(),
            plmn_slices: Vec::new(),
            guami: None,
            session: params::Session::default(),
            tests: Rc::default(),
            service: ServiceFilter::default(),
            preferences: Preferences::default(),
            requester_features: SupportedFeatures::default(),
            unknown: Vec::new(),
        }
    }

    fn take(&mut self, param: Param<'_>, tests: &mut Vec<Test>) -> Result<(), ParamFault> {
        match param.name {
            "target-nf-type" => self.target = Some(NfType::from(param.text()?)),
            "requester-nf-type" => self.requester.nf_type = Some(NfType::from(param.text()?)),
            "requester-nf-instance-id" => {
                self.requester.instance = Some(param.parsed(NfInstanceId::parse)?);
            }
            "requester-nf-instance-fqdn" => self.requester.fqdn = Some(param.host()?),
            "requester-plmn-list" => self.requester.plmns = param.json_list()?,
            "requester-snpn-list" => self.requester.snpns = param.json_list()?,
            "requester-snssais" => self.requester.slices = param.json_list()?,
            "requester-plmn-specific-snssai-list" => self.requester.plmn_slices = param.json_list()?,
            "requester-features" => self.requester_features = param.parsed(SupportedFeatures::parse)?,
            "service-names" => {
                self.services = param.list()?.into_iter().map(ServiceName::from).collect();
            }
            "hnrf-uri" => {
                let uri = param.text()?;
                uri.parse::<sbi_proto::Origin>()
                    .map_err(|error| param.fault(error.to_string()))?;
                self.home_nrf = Some(uri);
            }
            "limit" => {
                let limit: usize = param.number("expected a number of at least 1")?;
                if limit == 0 {
                    return Err(param.fault("expected a number of at least 1"));
                }
                self.limit = Some(limit);
            }
            "max-payload-size" | "max-payload-size-ext" => {
                let kilobytes: usize = param.number("expected a number of kilo octets")?;
                if param.name == "max-payload-size" && kilobytes > MAX_PAYLOAD_KILOBYTES {
                    let expected =
                        format!("expected at most {MAX_PAYLOAD_KILOBYTES}; max-payload-size-ext takes more");
                    return Err(param.fault(expected));
                }
                self.max_payload = kilobytes.saturating_mul(1_000);
            }
            "dnn" => self.session.dnn = Some(param.text()?),
            "dnai-list" => self.session.dnais = param.list()?,
            "redundant-transport" => self.session.redundant = Some(param.boolean()?),
            "guami" => self.guami = Some(param.json()?),
            "supported-features" => self.service.supported = Some(param.parsed(SupportedFeatures::parse)?),
            "required-features" => {
                let masks: Result<_, _> = param
                    .list()?
                    .iter()
                    .map(|mask| SupportedFeatures::parse(mask))
                    .collect();
                self.service.required = masks.map_err(|expected| param.fault(expected))?;
            }
            "complex-query" => tests.push(complex::parse(param)?.of_parameter(param.name)),
            name if name.starts_with("prefer") => self.preferences.take(param)?,
            _ => {
                match param.name {
                    "group-id-list" => self.names_groups = true,
                    "target-plmn-list" => self.target_plmns = param.json_list()?,
                    "target-nf-service-set-id" => self.service.service_set = Some(param.text()?),
                    "exclude-nfserviceset-list" => self.service.excluded_sets = param.list()?,
                    "exclude-nfservinst-list" => self.service.excluded = service_instance::list(param)?,
                    "snssais" => self.slices = param.json_list()?,
                    "plmn-specific-snssai-list" => self.plmn_slices = param.json_list()?,
                    _ => {}
                }
                match params::test_of(param)? {
                    Some(test) => tests.push(test.of_parameter(param.name)),
                    None => self.unknown.push(param.name.to_owned()),
                }
            }
        }
        Ok(())
    }
}

impl ServiceFilter {
    /// Whether a service of an instance may be shown; `asked` are the names asked for.
    #[must_use]
    pub fn admits(&self, instance: &NfInstanceId, service: &NfService, asked: &[ServiceName]) -> bool {
        let position = asked.iter().position(|name| *name == service.service_name);
        if !asked.is_empty() && position.is_none() {
            return false;
        }
        let features = service.supported_features.as_ref();
        let required = position.and_then(|at| self.required.get(at));
        let required_fits =
            required.is_none_or(|mask| mask.is_empty() || features.is_some_and(|own| own.contains(mask)));
        let supported_fits = self
            .supported
            .as_ref()
            .is_none_or(|mask| mask.is_empty() || features.is_some_and(|own| own.contains(mask)));
        let sets = &service.nf_service_set_id_list;
        required_fits
            && supported_fits
            && self.service_set.as_ref().is_none_or(|set| sets.contains(set))
            && !sets.iter().any(|set| self.excluded_sets.contains(set))
            && !self.excluded.iter().any(|one| one.names(instance, service))
    }
}

impl Preferences {
    /// Makes the preferences that are about an entry of a list those of an entry that matches the query.
    fn join(&mut self, tests: &Rc<[Test]>) {
        let joined = |preference: Test| {
            let tests = tests.clone();
            // A whole profile is ranked only if it matches.
            Test::new(move |view| {
                preference.fits(view) && (!view.is_part() || tests.iter().all(|test| test.fits(view)))
            })
        };
        self.tai = self.tai.take().map(joined);
        self.pgw_test = self
            .pgw
            .map(|wanted| Test::new(move |view| view.smf_infos().any(SmfInfo::is_pgw) == wanted))
            .map(joined);
    }

    fn take(&mut self, param: Param<'_>) -> Result<(), ParamFault> {
        match param.name {
            "preferred-locality" => self.locality = Some(param.text()?),
            "preferred-nf-instances" => {
                let ids: Result<_, _> = param.list()?.iter().map(|id| NfInstanceId::parse(id)).collect();
                self.instances = ids.map_err(|expected| param.fault(expected))?;
            }
            "preferred-tai" => {
                // Reading it first keeps the fault's name right.
                let _: Tai = param.json()?;
                self.tai = params::test_of(Param {
                    name: "tai",
                    value: param.value,
                })?;
            }
            "preferred-pgw-ind" => self.pgw = Some(param.boolean()?),
            "preferred-full-plmn" => self.full_plmn = Some(param.boolean()?),
            "preferred-api-versions" => self.api_versions = param.json()?,
            "preferred-collocated-nf-types" => {
                self.collocated = param
                    .list()?
                    .into_iter()
                    .map(model::CollocatedNfType::from)
                    .collect();
            }
            "preferred-vendor-specific-features" => self.vendor_features = param.json()?,
            "preferred-vendor-specific-nf-features" => self.vendor_nf_features = param.json()?,
            "preferred-analytics-delays" => self.analytics_delays = param.json()?,
            "preferences-precedence" => {
                self.precedence = param.list()?;
                if self.precedence.len() < 2 {
                    return Err(param.fault("expected at least two parameter names"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
