//! RFC 7541 appendix C.

use super::*;
use crate::head::{RequestHead, ResponseHead};
use crate::hpack::huffman;
use crate::hpack::integer::{Input, write_integer};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| (byte as char).to_digit(16).unwrap() as u8)
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[test]
fn integers_are_those_of_appendix_c_1() {
    for (mask, value, bytes) in [(0x1f, 10, "0a"), (0x1f, 1337, "1f9a0a"), (0xff, 42, "2a")] {
        let mut out = Vec::new();
        write_integer(0, mask, value, &mut out);
        assert_eq!(out, hex(bytes));
        let mut input = Input(&out[1..]);
        assert_eq!(input.integer(out[0], mask), Ok(value as u32));
        assert!(input.0.is_empty());
    }
}

#[test]
fn literals_are_those_of_appendix_c_2() {
    for (block, name, value, sensitive, size) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key",
            "custom-header",
            false,
            55,
        ),
        (
            "040c 2f73 616d 706c 652f 7061 7468",
            ":path",
            "/sample/path",
            false,
            0,
        ),
        (
            "1008 7061 7373 776f 7264 0673 6563 7265 74",
            "password",
            "secret",
            true,
            0,
        ),
        ("82", ":method", "GET", false, 0),
    ] {
        let mut decoder = Decoder::new(4096);
        let (list, _) = decoded(&mut decoder, &hex(block)).unwrap();
        assert_eq!(list, {
            let mut expected = Fields::new();
            let value = Value::new(value.as_bytes()).unwrap();
            if sensitive {
                expected.append_sensitive(name, value);
            } else {
                expected.append(name, value);
            }
            expected
        });
        assert_eq!(decoder.table_size(), size, "{name}");
    }
}

const REQUESTS: [&[(&str, &str)]; 3] = [
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
        ("cache-control", "no-cache"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ],
];

const PLAIN_REQUESTS: [&str; 3] = [
    "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
    "8286 84be 5808 6e6f 2d63 6163 6865",
    "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
];

const DATE_1: &str = "Mon, 21 Oct 2013 20:13:21 GMT";
const DATE_2: &str = "Mon, 21 Oct 2013 20:13:22 GMT";
const COOKIE: &str = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

const RESPONSES: [&[(&str, &str)]; 3] = [
    &[
        (":status", "302"),
        ("cache-control", "private"),
        ("date", DATE_1),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "307"),
        ("cache-control", "private"),
        ("date", DATE_1),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "200"),
        ("cache-control", "private"),
        ("date", DATE_2),
        ("location", "https://www.example.com"),
        ("content-encoding", "gzip"),
        ("set-cookie", COOKIE),
    ],
];

fn check(before: &str, blocks: [&str; 3], lists: [&[(&str, &str)]; 3], sizes: [usize; 3]) {
    let mut decoder = Decoder::new(4096);
    decoded(&mut decoder, &hex(before)).unwrap();
    for ((block, list), size) in blocks.into_iter().zip(lists).zip(sizes) {
        let (got, outcome) = decoded(&mut decoder, &hex(block)).unwrap();
        assert_eq!(got, fields(list));
        assert_eq!((outcome.malformed, outcome.over), (None, false));
        assert_eq!((outcome.size, outcome.fields), (got.list_size(), got.len()));
        assert_eq!(decoder.table_size(), size);
    }
}

/// A table of 256 bytes.
const SMALL: &str = "3fe101";

#[test]
fn requests_are_those_of_appendix_c_3_and_c_4() {
    let sizes = [57, 110, 164];
    check("", PLAIN_REQUESTS, REQUESTS, sizes);
    let coded = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    check("", coded, REQUESTS, sizes);
}

#[test]
fn responses_are_those_of_appendix_c_5_and_c_6() {
    let sizes = [222, 222, 215];
    let plain = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
         2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70
         6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d
         54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049
         5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e
         3d31",
    ];
    check(SMALL, plain, RESPONSES, sizes);
    let coded = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
         2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab
         77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f
         9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    check(SMALL, coded, RESPONSES, sizes);
}

#[test]
fn encoder_writes_the_requests_of_appendix_c_3() {
    let mut encoder = Encoder::new();
    for (block, list) in PLAIN_REQUESTS.into_iter().zip(REQUESTS) {
        let head = RequestHead::of_fields(http::Method::GET, fields(list));
        let mut out = Vec::new();
        encoder.request(&head, &mut out);
        assert_eq!(out, hex(block));
    }
}

#[test]
fn encoded_responses_of_appendix_c_5_are_decoded() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
    encoder.peer_table_size(256);
    for list in RESPONSES {
        let mut head = ResponseHead::new(list[0].1.parse().unwrap());
        head.fields = fields(&list[1..]);
        let mut out = Vec::new();
        encoder.response(&head, &mut out);
        let (got, _) = decoded(&mut decoder, &out).unwrap();
        assert_eq!(got, fields(list));
    }
}

#[test]
fn huffman_code_of_each_byte_is_decoded() {
    let mut all: Vec<u8> = (0..=255).collect();
    for _ in 0..4 {
        let mut text = Vec::new();
        huffman::decode(&huffman::encode(&all), &mut text).unwrap();
        assert_eq!(text, all);
        all.extend(all.clone().iter().rev().map(|byte| byte.wrapping_mul(7)));
    }
}
