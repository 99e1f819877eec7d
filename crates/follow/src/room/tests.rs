//! A room alone: bounds, learned identities, answers.

use super::*;

const SUPI: &str = "imsi-001010000000001";

fn request(room: &Room, body: &str) -> bool {
    let Some(hit) = room.find(|search| search.text(body.as_bytes())) else {
        return false;
    };
    let at: SocketAddr = ([127, 0, 0, 1], 1).into();
    let headers = [("authorization", &b"Bearer secret"[..])];
    let body = bytes::Bytes::copy_from_slice(body.as_bytes());
    let record = Record {
        at: SystemTime::now(),
        direction: Direction::In,
        exchange: room.exchange(),
        cause: None,
        peer: String::new(),
        from: at,
        to: at,
        stream: 1,
        content: Content::request(("POST", "/"), headers.into_iter(), body),
    };
    room.store(&hit, record);
    true
}

#[test]
fn identities_are_learned_and_credentials_are_not_kept() {
    let room = Room::new("test");
    room.follow(SUPI, Duration::from_secs(60)).unwrap();
    assert!(!request(&room, r#"{"ueIpv4":"10.45.0.2"}"#));
    assert!(request(
        &room,
        &format!(r#"{{"supi":"{SUPI}","ipv4Address":"10.45.0.2"}}"#)
    ));
    assert!(request(&room, r#"{"ueIpv4":"10.45.0.2"}"#));
    assert!(!request(&room, r#"{"ueIpv4":"10.45.0.3"}"#));
    let page = room.page(0, None);
    assert_eq!(page.messages.len(), 2);
    let shown = serde_json::to_string(&page).unwrap();
    assert!(!shown.contains("secret"), "{shown}");
    assert_eq!(room.list()[0].learned, ["10.45.0.2"]);
    assert!(room.unfollow(SUPI));
    assert!(!room.unfollow(SUPI));
    assert_eq!((room.page(0, None).messages.len(), room.held()), (0, 0));
    assert!(!request(&room, SUPI));
}

#[test]
fn a_subscriber_has_one_supi() {
    let room = Room::new("test");
    for (identity, supi) in [(SUPI, None), ("msisdn-491700000001", Some(SUPI))] {
        room.follow(identity, MAX_PERIOD).unwrap();
        assert!(request(
            &room,
            &format!(r#"{{"gpsi":"{identity}","supi":"{SUPI}"}}"#)
        ));
        assert!(request(
            &room,
            &format!(r#"{{"gpsi":"{identity}","supi":"imsi-001010000000002"}}"#)
        ));
        assert!(!request(&room, r#"{"supi":"imsi-001010000000002"}"#));
        assert_eq!(room.list()[0].learned.first().map(String::as_str), supi);
        assert!(room.unfollow(identity));
    }
}

#[test]
fn the_learned_identity_that_was_not_used_for_longest_gives_way() {
    let room = Room::new("test");
    room.follow("msisdn-491700000001", MAX_PERIOD).unwrap();
    assert!(request(
        &room,
        &format!(r#"{{"gpsi":"msisdn-491700000001","supi":"{SUPI}"}}"#)
    ));
    for number in 1..=80 {
        assert!(request(
            &room,
            &format!(r#"{{"supi":"{SUPI}","ueIpv4":"10.45.0.{number}"}}"#)
        ));
        assert!(request(&room, r#"{"ueIpv4":"10.45.0.1"}"#));
    }
    assert!(request(&room, r#"{"ueIpv4":"10.45.0.80"}"#) && !request(&room, r#"{"ueIpv4":"10.45.0.2"}"#));
    let listed = room.list();
    assert_eq!((listed[0].learned.len(), listed[0].dropped), (64, 17));
}

#[test]
fn copies_stay_within_their_bounds() {
    let room = Room::new("test");
    room.limit(10_000);
    room.follow(SUPI, Duration::from_secs(60)).unwrap();
    for _ in 0..100 {
        assert!(request(&room, &format!("{SUPI} {}", "x".repeat(1_000))));
    }
    assert!(room.held() <= 10_000);
    let page = room.page(0, None);
    assert_eq!(page.not_kept + page.messages.len() as u64, 100);
    assert!(request(&room, &format!("{SUPI} {}", "x".repeat(20_000))));
    assert_eq!(room.page(0, None).not_kept, page.not_kept + 1);
    for _ in 101..MAX_MESSAGES {
        assert!(request(&room, SUPI));
    }
    assert!(!request(&room, SUPI) && room.list().is_empty());
    assert!(!room.page(0, None).messages.is_empty());
}

#[test]
fn copies_end_without_messages_or_operators() {
    let room = Room::new("test");
    room.follow(SUPI, MAX_PERIOD).unwrap();
    assert!(request(&room, SUPI));
    let minute = Duration::from_secs(60);
    room.sweep(Instant::now());
    assert!(room.is_active());
    let ended = Instant::now() + MAX_PERIOD + minute;
    room.sweep(ended);
    assert!(!room.is_active() && room.held() > 0);
    room.sweep(ended + MAX_PERIOD + minute);
    assert_eq!(room.held(), 0);
}

#[test]
fn time_and_number_of_identities_are_bounded() {
    let room = Room::new("test");
    for bad in [Duration::ZERO, MAX_PERIOD + Duration::from_secs(1)] {
        assert!(matches!(room.follow(SUPI, bad), Err(FollowError::Invalid(_))));
    }
    for number in 0..MAX_FOLLOWED {
        room.follow(&format!("imsi-00101000000{number:04}"), MAX_PERIOD)
            .unwrap();
    }
    assert_eq!(room.follow("imsi-99999", MAX_PERIOD), Err(FollowError::Full));
    room.follow("imsi-001010000000001", Duration::from_nanos(1))
        .unwrap();
    assert_eq!(room.list().len(), MAX_FOLLOWED - 1);
    room.follow("imsi-99999", MAX_PERIOD).unwrap();
}

#[test]
fn following_ends_by_itself_while_other_messages_pass() {
    let room = Room::new("test");
    room.follow(SUPI, Duration::from_nanos(1)).unwrap();
    while room.is_active() {
        assert!(!request(&room, "of another subscriber"));
    }
    assert!(!request(&room, SUPI));
}

#[test]
fn an_answer_without_identities_belongs_to_its_request() {
    let room = Room::new("test");
    room.follow("a.example;1;1", MAX_PERIOD).unwrap();
    let (one, other): (SocketAddr, SocketAddr) = (([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into());
    let frame = |flags: u8, hop: u8, text: &str| {
        let mut frame = vec![1, 0, 0, 0, flags, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, hop, 0, 0, 0, 0];
        frame.extend(text.bytes());
        frame
    };
    room.diameter(
        Direction::In,
        "peer",
        (one, other),
        &frame(0x80, 7, "a.example;1;1"),
    );
    room.diameter(Direction::Out, "peer", (other, one), &frame(0, 8, "x"));
    room.diameter(Direction::Out, "peer", (one, other), &frame(0, 7, "x"));
    room.diameter(Direction::Out, "peer", (other, one), &frame(0, 7, "x"));
    room.diameter(Direction::Out, "peer", (other, one), &frame(0, 7, "x"));
    room.diameter(Direction::Out, "peer", (other, one), &[1, 2]);
    let page = room.page(0, None);
    assert_eq!(page.messages.len(), 2);
    assert_eq!(page.messages[0].exchange, page.messages[1].exchange);
}

#[test]
fn a_traced_exchange_is_linked_to_the_one_before_it() {
    let room = Room::new("test");
    room.follow(SUPI, MAX_PERIOD).unwrap();
    let owner = room.find(|search| search.text(SUPI.as_bytes())).unwrap().owner;
    assert_eq!(room.link(owner, (1, 10)), None);
    assert_eq!(room.link(owner, (1, 11)), None, "one trace needs no link");
    assert_eq!(room.link(owner, (2, 20)), Some((1, 11)));
    assert_eq!(room.link(owner + 1, (3, 30)), None, "another subscriber");
}
