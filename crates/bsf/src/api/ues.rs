//! `/pcf-ue-bindings`: bindings of UEs (TS 29.521 §5.3.6, §5.3.7).

use model::shape::Shape;
use sbi::{Request, Response};

use super::bindings::Served;
use super::fault::Fault;
use super::{features_of, list, pairs, text_of};
use crate::binding::{PcfBinding, UeBinding, shape};
use crate::events::Event;
use crate::worker::Worker;

impl Served for UeBinding {
    const NAME: &'static str = "pcf-ue-bindings";
    const SHAPE: &'static Shape = &shape::UE_BINDING;
    const PATCH: &'static [&'static str] = shape::UE_PATCH;
    const EVENTS: [Event; 3] = [Event::UeChanged; 3];

    async fn discover(worker: &Worker, request: &Request) -> Result<Response, Fault> {
        let (mut supi, mut gpsi) = (None, None);
        let all = pairs(request.query(), &["supi", "gpsi", "supp-feat"])?;
        for (name, value) in &all {
            match &**name {
                "supi" => supi = Some(text_of(name, value)?),
                "gpsi" => gpsi = Some(text_of(name, value)?),
                "supp-feat" => drop(features_of(name, value)?),
                _ => {}
            }
        }
        let (index, identity) = match (supi, gpsi) {
            (Some(supi), _) => (UeBinding::SUPI, supi),
            (None, Some(gpsi)) => (UeBinding::GPSI, gpsi),
            (None, None) => {
                return Err(Fault::QueryMissing {
                    name: "supi",
                    expected: "expected supi or gpsi",
                });
            }
        };
        let key = PcfBinding::identity_key(identity);
        let repository = worker.repository();
        let found = repository.ues.find(index, &key, worker.max_candidates()).await?;
        let same = |wanted: Option<&str>, binding: &UeBinding, name: &str| {
            wanted.is_none_or(|wanted| binding.0.text_of(name) == Some(wanted))
        };
        let matching: Vec<&UeBinding> = found
            .iter()
            .map(|stored| &stored.record)
            .filter(|binding| same(supi, binding, "supi") && same(gpsi, binding, "gpsi"))
            .collect();
        worker.count(match matching.is_empty() {
            true => Event::FoundNothing,
            false => Event::Discovered,
        });
        Ok(list(matching.into_iter().map(|binding| &binding.0)))
    }

    /// All that a PATCH may change is where the PCF is.
    fn is_news(&self, _: &Self) -> bool {
        true
    }
}
