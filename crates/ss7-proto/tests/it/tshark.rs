//! tshark reads everything that we write.

use ss7_proto::m3ua::{Message, PPID};

use crate::capture::judge;
use crate::exercise::every_m3ua;

#[test]
fn every_m3ua_message_decodes_without_a_complaint() {
    let messages = every_m3ua();
    let fields = [
        "-T",
        "fields",
        "-e",
        "m3ua.message_class",
        "-e",
        "m3ua.message_type",
    ];
    let Some((read, complaints)) = judge(PPID, &messages, &fields) else {
        return;
    };
    assert_eq!(complaints, "");
    let ours: String = messages
        .iter()
        .map(|octets| Message::parse(octets).unwrap().message_type())
        .map(|kind| format!("{}\t{}\n", kind.class() as u8, kind.number()))
        .collect();
    assert_eq!(read, ours);
}

#[test]
fn the_parameters_of_data_and_registration_read_the_same() {
    let fields = "m3ua.protocol_data_opc m3ua.protocol_data_dpc m3ua.protocol_data_si m3ua.protocol_data_ni \
                  m3ua.protocol_data_sls m3ua.routing_context m3ua.network_appearance";
    let mut arguments = vec!["-T", "fields"];
    for field in fields.split(' ').filter(|field| !field.is_empty()) {
        arguments.extend(["-e", field]);
    }
    let messages = [crate::exercise::data(&[0x09])];
    let Some((read, _)) = judge(PPID, &messages, &arguments) else {
        return;
    };
    assert_eq!(read.trim_end(), "1234\t6545\t3\t2\t11\t77\t1");
}
