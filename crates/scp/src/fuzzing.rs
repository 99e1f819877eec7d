//! Bodies of the fuzz targets of this crate: arbitrary bytes for each parser, and the properties that must hold. Not
//! part of its interface. The suite runs them for a moment, the targets in `fuzz/` for hours.

use http::Method;
use routing::network::{Network, Producer};
use sbi::{Fields, Value, json, name};

use crate::mediation::{Document, Engine, Mediated, TriggerPoint};

/// Bytes as a profile from an NRF: every endpoint of the parsed producer has a valid URI.
pub fn producer(bytes: &[u8]) {
    let _ = Producer::parse(bytes);
    let Ok(producer) = Producer::learned(bytes) else {
        return;
    };
    let producer = std::sync::Arc::new(producer);
    let network = Network::new([producer.clone()]);
    assert_eq!(network.len(), 1);
    for service in &producer.services {
        let _ = network.of_service(&service.name);
        let _ = network.of_producer(&producer.id, &service.name).count();
    }
}

/// The first line as an operator's rules, the rest as the body of a message that meets them.
pub fn mediation(bytes: &[u8]) {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return;
    };
    let (rules, body) = bytes.split_at(end);
    let Ok(rules) = serde_json::from_slice(rules) else {
        return;
    };
    let Ok(engine) = Engine::compile(&rules) else {
        return;
    };
    let mut headers = Fields::new();
    headers.set(name::CONTENT_TYPE, json::JSON);
    headers.set("x", Value::from_static("aaa"));
    let mut document = Document::new(body.to_vec().into());
    let mut message = Mediated {
        method: &Method::POST,
        path: "/nudm-sdm/v2/imsi-1",
        query: None,
        status: None,
        headers: &mut headers,
        document: &mut document,
    };
    let outcome = engine.run(TriggerPoint::RequestIngress, "nudm-sdm", &mut message);
    if !outcome.body_changed {
        assert_eq!(document.into_bytes(), body);
    }
}
