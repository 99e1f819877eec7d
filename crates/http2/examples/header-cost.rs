//! Instructions of header blocks in the steady state, for `valgrind --tool=callgrind --toggle-collect='header_cost::*'`.
//!
//! `header-cost PART ROUNDS`: run it with two counts of rounds under `perf stat -e instructions:u` (or callgrind); the
//! difference of the instructions by the difference of the rounds is the cost of the part.

use std::hint::black_box;

use http::Method;
use http2::fields::name;
use http2::hpack::{Decoder, Encoder, Limits};
use http2::{Fields, RequestHead, Value};

const LIMITS: Limits = Limits {
    list: 64 * 1024,
    fields: 128,
};

/// A request that an AMF sends to a UDM by way of an SCP: 15 fields, of which path, length and timestamp change.
fn request(round: usize) -> RequestHead {
    let path = format!(
        "/nudm-sdm/v2/imsi-00101{:010}/am-data?supported-features=1",
        round % 64
    );
    let value = Value::from_static;
    let path = Value::new(path.as_bytes()).unwrap_or(value("/"));
    let mut head = RequestHead::new(
        Method::POST,
        value("http"),
        value("scp1.5gc.mnc001.mcc001.3gppnetwork.org:8080"),
        path,
    );
    let fields = &mut head.fields;
    fields.append(name::ACCEPT, value("application/json,application/problem+json"));
    fields.append(name::CONTENT_TYPE, value("application/json"));
    fields.set_number(name::CONTENT_LENGTH, 900 + round as u64 % 64);
    fields.append(
        name::USER_AGENT,
        value("AMF-6f3d0c9e-8a55-4a4e-9f0e-2f6f0b1c7a10 amf1.5gc.mnc001.mcc001.3gppnetwork.org"),
    );
    fields.append(
        name::SBI_TARGET_API_ROOT,
        value("http://udm1.5gc.mnc001.mcc001.3gppnetwork.org:8080"),
    );
    fields.append(name::SBI_DISCOVERY_TARGET_NF_TYPE, value("UDM"));
    fields.append(name::SBI_DISCOVERY_REQUESTER_NF_TYPE, value("AMF"));
    fields.append(name::SBI_DISCOVERY_SERVICE_NAMES, value("nudm-sdm"));
    fields.append(name::SBI_MESSAGE_PRIORITY, value("7"));
    fields.append(name::SBI_MAX_RSP_TIME, value("10000"));
    let time = format!("Sun, 22 Nov 2026 20:00:00.{:03} GMT", round % 64);
    fields.append(
        name::SBI_SENDER_TIMESTAMP,
        Value::new(time.as_bytes()).unwrap_or(value("")),
    );
    head
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let part = arguments.next().unwrap_or_default();
    let rounds = arguments
        .next()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(10_000_usize);
    let heads: Vec<RequestHead> = (0..64).map(request).collect();
    let mut encoder = Encoder::new();
    // Values that come twice in succession settle in the first blocks.
    let blocks: Vec<Vec<u8>> = heads.iter().map(|head| block(&mut encoder, head)).collect();
    let mut decoder = Decoder::new(4096);
    let mut fields = Fields::with_capacity(32, 2048);
    for block in &blocks {
        fields.clear();
        black_box(decoder.decode(block, LIMITS, &mut fields).is_ok());
    }
    // The same blocks again hold no insertion.
    let blocks: Vec<Vec<u8>> = heads.iter().map(|head| block(&mut encoder, head)).collect();
    eprintln!(
        "{} fields, list of {} bytes, block of {} bytes",
        fields.len(),
        fields.list_size(),
        blocks[9].len()
    );
    let mut out = Vec::with_capacity(4096);
    for round in 0..rounds {
        let (head, block) = (&heads[round % 64], &blocks[round % 64]);
        match part.as_str() {
            "decode" => {
                fields.clear();
                black_box(decoder.decode(black_box(block), LIMITS, &mut fields).is_ok());
            }
            "decode-new" => {
                let mut fields = Fields::with_capacity(20, 1024);
                black_box(decoder.decode(black_box(block), LIMITS, &mut fields).is_ok());
                black_box(fields);
            }
            "encode" => {
                out.clear();
                encoder.request(black_box(head), &mut out);
                black_box(&out);
            }
            "get-first" => drop(black_box(black_box(&head.fields).get(name::METHOD))),
            "get-last" => drop(black_box(black_box(&head.fields).get(name::SBI_SENDER_TIMESTAMP))),
            "get-none" => drop(black_box(black_box(&head.fields).get(name::VIA))),
            "get-text" => drop(black_box(
                black_box(&head.fields).get("3gpp-Sbi-Message-Priority"),
            )),
            "append" => {
                fields.clear();
                fields.append(
                    black_box(name::VIA),
                    black_box(Value::from_static("SCP-scp1.example")),
                );
                black_box(&fields);
            }
            "clone" => drop(black_box(head.fields.clone())),
            "set" => {
                fields.clear();
                for _ in 0..2 {
                    fields.set(
                        black_box(name::VIA),
                        black_box(Value::from_static("SCP-scp1.example")),
                    );
                }
                black_box(&fields);
            }
            _ => drop(black_box(head)),
        }
    }
}

fn block(encoder: &mut Encoder, head: &RequestHead) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.request(head, &mut out);
    out
}
