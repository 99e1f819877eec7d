//! Over Diameter: peers that act on what is another's.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::BytesMut;
use diameter_proto::{Dictionary, Message, MessageBuilder, known, next_frame, text};

use crate::attacks::diameter::raw::{Raw, cer};
use crate::field::Field;

const PATIENCE: Duration = Duration::from_secs(10);
const CCR_I: &str = "CCR\nCC-Request-Type = INITIAL_REQUEST\nCC-Request-Number = 0\n\
    Subscription-Id = { Subscription-Id-Type = END_USER_IMSI Subscription-Id-Data = \"001010000000077\" }\n\
    Framed-IP-Address = 0x0a3f0001\nIP-CAN-Type = 3GPP-EPS\nRAT-Type = EUTRAN\nCalled-Station-Id = \"internet\"";
const CCR_U: &str = "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = 1";
const CCR_T: &str =
    "CCR\nCC-Request-Type = TERMINATION_REQUEST\nCC-Request-Number = 9\nTermination-Cause = DIAMETER_LOGOUT";
const AAR: &str = "AAR\nAF-Application-Identifier = 0x494d53\nFramed-IP-Address = 0x0a3f0001";
const STR: &str = "STR\nTermination-Cause = DIAMETER_LOGOUT";

fn diameter(field: &Field) -> anyhow::Result<SocketAddr> {
    field.world.borrow().diameter.context("a stage without Diameter")
}

/// A request of this origin for a session.
fn request(what: &str, session: &str, origin: &str) -> anyhow::Result<Vec<u8>> {
    let (command, rest) = what.split_once('\n').unwrap_or((what, ""));
    let application = if command == "CCR" { 16_777_238 } else { 16_777_236 };
    let whole = format!(
        "{command} app={application} flags=RP {{\nSession-Id = \"{session}\"\nAuth-Application-Id = {application}\n\
         Origin-Host = \"{origin}\"\nOrigin-Realm = \"epc.example\"\nDestination-Realm = \"epc.example\"\n{rest}\n}}"
    );
    let message =
        text::parse(&whole, Dictionary::standard()).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let mut builder = MessageBuilder::request(message.command(), message.application());
    builder.identifiers(7, 7);
    builder.append_encoded(message.avps().remaining());
    Ok(builder.finish()?.as_bytes().to_vec())
}

/// The result of a request; none without an answer.
async fn result(peer: &mut Raw, what: &str, session: &str, origin: &str) -> anyhow::Result<Option<u32>> {
    peer.send(&request(what, session, origin)?).await;
    // Requests of the function (RAR, ASR) may come before the answer.
    for _ in 0..8 {
        let (messages, ended) = peer.read_until(1, PATIENCE).await;
        for message in &messages {
            if let Ok(Some(result)) = message.get(known::RESULT_CODE) {
                return Ok(Some(result));
            }
            if message
                .get(known::EXPERIMENTAL_RESULT)
                .is_ok_and(|found| found.is_some())
            {
                return Ok(Some(0));
            }
        }
        if ended || messages.is_empty() {
            break;
        }
    }
    Ok(None)
}

const OWNER: &str = "pcef1.epc.example";
const AF: &str = "pcscf1.epc.example";
const STRANGER: &str = "stranger.epc.example";

pub(super) async fn foreign_gx(field: Rc<Field>) -> anyhow::Result<()> {
    let target = diameter(&field)?;
    let mut owner = Raw::admitted(target, OWNER).await?;
    let mut stranger = Raw::admitted(target, STRANGER).await?;
    let session = "pcef1.epc.example;1;1";
    let begun = result(&mut owner, CCR_I, session, OWNER).await?;
    field.check(
        begun == Some(2001),
        format_args!("the owner's session begins with {begun:?}"),
    );
    for origin in [STRANGER, OWNER] {
        for (what, name) in [(CCR_U, "CCR-U"), (CCR_I, "CCR-I"), (CCR_T, "CCR-T")] {
            let got = result(&mut stranger, what, session, origin).await?;
            field.check(
                got != Some(2001),
                format_args!("a stranger's {name} as {origin} for another's session: 2001"),
            );
        }
    }
    let left = result(&mut owner, CCR_U, session, OWNER).await?;
    field.check(
        left == Some(2001),
        format_args!("the owner's session is left with {left:?}"),
    );
    result(&mut owner, CCR_T, session, OWNER).await?;
    Ok(())
}

pub(super) async fn foreign_rx(field: Rc<Field>) -> anyhow::Result<()> {
    let target = diameter(&field)?;
    let mut pcef = Raw::admitted(target, OWNER).await?;
    let mut af = Raw::admitted(target, AF).await?;
    let mut stranger = Raw::admitted(target, STRANGER).await?;
    let (gx, rx) = ("pcef1.epc.example;1;2", "pcscf1.epc.example;1;9");
    result(&mut pcef, CCR_I, gx, OWNER).await?;
    let begun = result(&mut af, AAR, rx, AF).await?;
    field.check(
        begun == Some(2001),
        format_args!("the AF's session begins with {begun:?}"),
    );
    for origin in [STRANGER, AF] {
        for (what, name) in [(AAR, "AAR"), (STR, "STR")] {
            let got = result(&mut stranger, what, rx, origin).await?;
            field.check(
                got != Some(2001),
                format_args!("a stranger's {name} as {origin} for another's session: 2001"),
            );
        }
    }
    let ended = result(&mut af, STR, rx, AF).await?;
    field.check(
        ended == Some(2001),
        format_args!("the AF ends its own session with {ended:?}"),
    );
    result(&mut pcef, CCR_T, gx, OWNER).await?;
    Ok(())
}

/// A Gx session under the name by which an Rx session is filed hides that one.
pub(super) async fn names(field: Rc<Field>) -> anyhow::Result<()> {
    let target = diameter(&field)?;
    let mut pcef = Raw::admitted(target, OWNER).await?;
    let mut af = Raw::admitted(target, AF).await?;
    let mut stranger = Raw::admitted(target, STRANGER).await?;
    let (gx, rx) = ("pcef1.epc.example;1;3", "pcscf1.epc.example;1;10");
    result(&mut pcef, CCR_I, gx, OWNER).await?;
    let begun = result(&mut af, AAR, rx, AF).await?;
    field.check(
        begun == Some(2001),
        format_args!("the AF's session begins with {begun:?}"),
    );
    let other = CCR_I
        .replace("0x0a3f0001", "0x0a3f0002")
        .replace("000077", "000078");
    for name in ["rx", "gx", "sy", "sd", "ue-policy"] {
        result(&mut stranger, &other, &format!("{name}:{rx}"), STRANGER).await?;
    }
    let ended = result(&mut af, STR, rx, AF).await?;
    field.check(
        ended == Some(2001),
        format_args!("the AF ends its own session with {ended:?}"),
    );
    for name in ["rx", "gx", "sy", "sd", "ue-policy"] {
        result(&mut stranger, CCR_T, &format!("{name}:{rx}"), STRANGER).await?;
    }
    result(&mut pcef, CCR_T, gx, OWNER).await?;
    Ok(())
}

/// The result of capabilities that are exchanged over TLS; none where the connection is refused.
fn capabilities(target: SocketAddr, config: Arc<rustls::ClientConfig>, host: &str) -> Option<u32> {
    let name = rustls::pki_types::ServerName::try_from("127.0.0.1").ok()?;
    let mut connection = rustls::ClientConnection::new(config, name).ok()?;
    let mut socket = std::net::TcpStream::connect_timeout(&target, PATIENCE).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut stream = rustls::Stream::new(&mut connection, &mut socket);
    stream
        .write_all(&cer(host, Some([127, 0, 0, 1].into())).ok()?)
        .ok()?;
    let (mut read, mut chunk) = (BytesMut::new(), [0; 4_096]);
    loop {
        let count = stream.read(&mut chunk).ok().filter(|count| *count > 0)?;
        read.extend_from_slice(chunk.get(..count)?);
        if let Ok(Some(message)) = next_frame(&mut read, 1 << 20) {
            let message: Message = message.freeze();
            return message.get(known::RESULT_CODE).ok().flatten();
        }
    }
}

pub(super) async fn unproven(field: Rc<Field>) -> anyhow::Result<()> {
    let target = diameter(&field)?;
    let (none, good, other) = {
        let world = field.world.borrow();
        let tls = world.tls.as_ref().context("a stage without certificates")?;
        (tls.stranger()?, tls.peer(&[OWNER])?, tls.peer(&[AF])?)
    };
    for (what, config, welcome) in [
        ("its own certificate", good, true),
        ("no certificate", none, false),
        ("another's certificate", other, false),
    ] {
        let result = tokio::task::spawn_blocking(move || capabilities(target, config, OWNER)).await?;
        field.check(
            (result == Some(2001)) == welcome,
            format_args!("{OWNER} with {what}: {result:?}"),
        );
    }
    Ok(())
}
