//! What the crate gives to a PCF: documents and AVPs, by the standard's names.

mod bdt;
mod decision;
mod fuzz;
mod gx;
mod media;
mod rx;
mod sy;
mod usage;

use diameter_proto::check::{Strictness, check};
use diameter_proto::known::{self, application};
use diameter_proto::{AvpWriter, Dictionary, Message, MessageBuilder, text};

/// A message as text, read.
fn parse(text: &str) -> Message {
    let message = text::parse(text, Dictionary::standard()).unwrap();
    check(&message, Dictionary::standard(), Strictness::Pedantic).unwrap();
    message
}

/// What was written, as text without the message around it, after a check against the dictionary's grammar.
fn written(command: u32, application: u32, put: impl FnOnce(&mut AvpWriter)) -> String {
    let mut message = MessageBuilder::request(command, application);
    message
        .put(known::SESSION_ID, "pcrf;1;1")
        .put(known::AUTH_APPLICATION_ID, application)
        .put(known::ORIGIN_HOST, "pcrf.example")
        .put(known::ORIGIN_REALM, "example")
        .put(known::DESTINATION_REALM, "example")
        .put(known::DESTINATION_HOST, "peer.example");
    if application == application::GX {
        message.put(known::RE_AUTH_REQUEST_TYPE, 0);
    }
    let before = message.as_bytes().len();
    put(&mut message);
    let body = message.as_bytes()[before..].to_vec();
    let message = message.finish().unwrap().freeze();
    check(&message, Dictionary::standard(), Strictness::Pedantic).unwrap();
    let mut alone = MessageBuilder::request(command, application);
    alone.append_encoded(&body);
    let alone = alone.finish().unwrap().freeze();
    let printed = text::print(&alone, Dictionary::standard()).to_string();
    let lines: Vec<&str> = printed.lines().collect();
    lines[1..lines.len() - 1].join("\n")
}
