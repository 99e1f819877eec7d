//! How each stage is started.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use http::{Method, StatusCode};
use sbi::client::{Client, Origin};
use serde_json::{Value, json};

use super::{Core, DSR_HOST, HSS, Hss, Poisoned, Process, REALM, Recipe, Server, Stage, Tls, World};
use crate::answer::{Ask, client, client_over, send};
use crate::dose::Dose;
use crate::honest::Plan;

/// The honest producer, a UDM.
pub const PRODUCER: &str = "00000000-0000-4000-8000-0000000000a1";
/// What the honest client asks of it.
pub const PRODUCER_PATH: &str = "/nudm-sdm/v2/imsi-001010000000001/am-data";
/// The subscriber of all honest requests.
pub const SUBSCRIBER: &str = "imsi-001010000000001";

/// What is discovered: `nudm-sdm` of a UDM.
#[must_use]
pub fn disc() -> String {
    "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF&service-names=nudm-sdm".to_owned()
}

/// The same wish in the headers of a request through an SCP.
#[must_use]
pub fn wish(ask: Ask) -> Ask {
    ask.header("3gpp-sbi-discovery-target-nf-type", "UDM")
        .header("3gpp-sbi-discovery-requester-nf-type", "AMF")
        .header("3gpp-sbi-discovery-service-names", "nudm-sdm")
}

/// A profile with one service at this port; members of `more` are added.
#[must_use]
pub fn profile(id: &str, nf_type: &str, service: &str, port: u16, more: &Value) -> Value {
    let mut profile = json!({
        "nfInstanceId": id, "nfType": nf_type, "nfStatus": "REGISTERED", "heartBeatTimer": 3600,
        "ipv4Addresses": ["127.0.0.1"],
        "nfServices": [{
            "serviceInstanceId": "s1", "serviceName": service, "scheme": "http", "nfServiceStatus": "REGISTERED",
            "versions": [{"apiVersionInUri": "v2", "apiFullVersion": "2.0.0"}],
            "ipEndPoints": [{"ipv4Address": "127.0.0.1", "port": port}]
        }]
    });
    if let (Some(profile), Some(more)) = (profile.as_object_mut(), more.as_object()) {
        profile.extend(more.clone());
    }
    profile
}

/// The profile of the honest producer.
#[must_use]
pub fn producer_profile(port: u16) -> Value {
    profile(
        PRODUCER,
        "UDM",
        "nudm-sdm",
        port,
        &json!({"priority": 10, "nfSetIdList": ["set1.udmset.5gc.mnc001.mcc001"]}),
    )
}

/// A PCF's binding of a session with this address.
#[must_use]
pub fn binding(address: &str, number: u32) -> Value {
    json!({
        "supi": format!("imsi-0010100{number:08}"), "ipv4Addr": address, "dnn": "internet", "snssai": {"sst": 1},
        "pcfFqdn": "pcf1.example.org", "pcfDiamHost": "pcf1.example.org", "pcfDiamRealm": "example.org",
        "pcfId": "6f1c7a52-0000-4000-8000-000000000001"
    })
}

const ANY: &str = "127.0.0.1:0";

/// The address of the honest session at a PCF.
pub const HONEST_ADDRESS: &str = "10.61.0.1";

/// A port that is free now: a function whose settings name its admin endpoint sends nothing there.
fn port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind(ANY)?.local_addr()?.port())
}

fn pcf_section(folder: &Path) -> anyhow::Result<Value> {
    Ok(json!({
        "listen": [ANY], "admin": format!("127.0.0.1:{}", port()?), "workers": 1,
        "store": {"embedded": {"directory": folder.join("pcf-store")}},
        "diameter": {"listen": [ANY], "host": "pcf.epc.example", "realm": REALM},
        "overload": {"enabled": false},
        "notifications": {"attempts": 1}
    }))
}

/// The section of a front end before the router, which is on the port that its own section names.
fn front_section(router: u16) -> Value {
    json!({
        "admin": ANY, "workers": 1,
        "targetSets": [{"name": "tsa", "listen": ANY, "backends": [{"name": "mp", "address": format!("127.0.0.1:{router}"), "proxyProtocol": true}]}]
    })
}

fn nrf_section(folder: &Path) -> Value {
    // As in the SCP's section: a slow build on a busy machine would be discarded by how long its requests wait.
    json!({
        "listen": [ANY], "admin": ANY, "workers": 1,
        "store": {"embedded": {"directory": folder.join("nrf-store")}},
        "overload": {"waiting": {"target": "0s", "ageLimit": "0s"}},
        "heartBeat": {"default": "1h", "max": "1h"}
    })
}

fn scp_section(nrf: SocketAddr) -> Value {
    // Load and rates discard nothing here but where an attack is about them: a slow build on a busy machine would.
    json!({
        "listen": [ANY], "admin": ANY, "workers": 1, "fqdn": "scp1.test", "forwardToUnknown": true,
        "nrf": {"roots": [format!("http://{nrf}")], "retryInterval": "100ms", "nfTypes": ["UDM", "SCP"]},
        "discovery": {"order": "scpThenNrf", "timeout": "5s"},
        "policies": [{"responseTimeoutMs": 5000}],
        "protection": {"targetLoad": null}
    })
}

fn bsf_section(folder: &Path) -> Value {
    json!({
        "listen": [ANY], "admin": ANY, "workers": 1, "rx": {"listen": [ANY]},
        "store": {"embedded": {"directory": folder.join("bsf-store")}}
    })
}

fn dsr_section(hss: SocketAddr) -> Value {
    json!({
        "admin": ANY, "workers": 1,
        "localNodes": [{"host": DSR_HOST, "realm": REALM, "listen": [ANY]}],
        "peers": [{"host": HSS, "addresses": [hss.to_string()], "timers": {"reconnectMin": "50ms"}}],
        "dynamicPeers": [{"networks": ["127.0.0.0/8"]}],
        "overload": {"assumedLoad": "0%"}
    })
}

/// `over` laid over `base`, member by member.
fn lay(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (name, value) in over {
                lay(base.entry(name).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

/// What a poisoned NRF answers, changed by the script.
type PoisonedAnswer = Arc<Mutex<(u16, Vec<u8>)>>;

fn poisoned() -> anyhow::Result<Poisoned> {
    let answer: PoisonedAnswer = Arc::new(Mutex::new((
        200,
        br#"{"validityPeriod":1,"nfInstances":[]}"#.to_vec(),
    )));
    let its_answer = answer.clone();
    let server = Server::start(Arc::new(move |seen| {
        let (status, body) = match seen.path.starts_with("/nnrf-disc") || seen.method == Method::GET {
            true => its_answer
                .lock()
                .map(|answer| answer.clone())
                .unwrap_or((500, Vec::new())),
            false => (404, Vec::new()),
        };
        sbi::json::response_of(StatusCode::from_u16(status).unwrap_or_default(), body)
    }))?;
    Ok(Poisoned { server, answer })
}

/// The honest producer: says what it was asked with, a megabyte if so asked, and that it was it.
fn producer() -> anyhow::Result<Server> {
    Server::start(Arc::new(|seen| {
        let pad = if seen.path.contains("/large") {
            1_000_000
        } else {
            0
        };
        let answer = json!({
            "asked": seen.path, "token": seen.header("authorization"), "pad": "x".repeat(pad), "by": "honest"
        });
        sbi::json::response(StatusCode::OK, &answer)
    }))
}

/// What a request to an NRF that requires tokens carries: the producer's own token.
async fn token(client: &Client, origin: &Origin) -> anyhow::Result<String> {
    let form = format!(
        "grant_type=client_credentials&nfInstanceId={PRODUCER}&nfType=UDM&targetNfType=NRF&scope=nnrf-nfm%20nnrf-disc"
    );
    let ask = Ask::new(Method::POST, "/oauth2/token").with("application/x-www-form-urlencoded", form);
    let got = send(client, origin, &ask).await;
    let token = got.json()["access_token"]
        .as_str()
        .map(|token| format!("Bearer {token}"));
    token.with_context(|| format!("the honest producer gets no token: {}", got.text()))
}

async fn register(client: &Client, origin: &Origin, profile: &Value, token: &str) -> anyhow::Result<()> {
    let id = profile["nfInstanceId"].as_str().unwrap_or_default();
    let mut put = Ask::new(Method::PUT, format!("/nnrf-nfm/v1/nf-instances/{id}")).json(profile);
    if !token.is_empty() {
        put = put.header("authorization", token);
    }
    let got = send(client, origin, &put).await;
    ensure!(got.status == 201, "the honest profile is refused: {}", got.text());
    Ok(())
}

/// Asks until the answer is as the plan expects: what the function learns takes its time.
async fn served(client: &Client, origin: &Origin, plan: &Plan) -> anyhow::Result<()> {
    let Plan::Http { ask, expect, .. } = plan else {
        return Ok(());
    };
    let mut last = String::new();
    for _ in 0..200 {
        let got = send(client, origin, ask).await;
        if expect(&got) {
            return Ok(());
        }
        last = got.text();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    anyhow::bail!("the honest client is not served before the attack: {last}")
}

pub(super) async fn build(
    stage: Stage,
    binary: &Path,
    settings: Option<Value>,
    dose: Dose,
) -> anyhow::Result<World> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_owned();
    let (mut beside, mut server, mut hss, mut tls, mut poisoned_nrf, mut nrf) =
        (vec![], None, None, None, None, None);
    let function = stage.function();
    let section = match stage {
        Stage::Nrf | Stage::NrfHeartBeat => nrf_section(&path),
        Stage::NrfTls => {
            let made = Tls::new()?;
            let mut section = nrf_section(&path);
            section["tls"] = made.section(&path)?;
            tls = Some(made);
            section
        }
        Stage::Bsf => bsf_section(&path),
        Stage::BsfPoisoned => {
            let made = poisoned()?;
            let mut section = bsf_section(&path);
            section["nrf"] = json!({"apiRoots": [made.server.root()]});
            poisoned_nrf = Some(made);
            section
        }
        Stage::Scp => {
            let config = json!({"nrf": nrf_section(&path)});
            let process = Process::start(binary, &["nrf"], &config, &path, "")?;
            let address = process.address("nrf SBI")?;
            beside.push(process);
            let honest = producer()?;
            let origin: Origin = format!("http://{address}").parse()?;
            register(
                &client("UDM"),
                &origin,
                &producer_profile(honest.address.port()),
                "",
            )
            .await?;
            server = Some(honest);
            nrf = Some(address);
            scp_section(address)
        }
        Stage::ScpPoisoned => {
            let (made, honest) = (poisoned()?, producer()?);
            let mut section = scp_section(made.server.address);
            section["producers"] = json!([producer_profile(honest.address.port())]);
            section["nrf"]["register"] = false.into();
            nrf = Some(made.server.address);
            (poisoned_nrf, server) = (Some(made), Some(honest));
            section
        }
        Stage::Dsr => {
            let made = Hss::start()?;
            let section = dsr_section(made.address);
            hss = Some(made);
            section
        }
        Stage::FrontEnd => {
            let (made, router) = (Hss::start()?, port()?);
            let mut section = dsr_section(made.address);
            section["localNodes"][0]["listen"] = json!([format!("127.0.0.1:{router}")]);
            section["localNodes"][0]["frontEnds"] = json!(["127.0.0.1/32"]);
            beside.push(Process::start(
                binary,
                &["dsr"],
                &json!({"dsr": section}),
                &path,
                "",
            )?);
            hss = Some(made);
            front_section(router)
        }
        Stage::Pcf => pcf_section(&path)?,
        Stage::PcfTls => {
            let made = Tls::new()?;
            let mut section = pcf_section(&path)?;
            let mut files = made.section(&path)?;
            // What holds where an operator says nothing more than which authorities count.
            if let Some(files) = files.as_object_mut() {
                files.remove("requireClientCertificate");
            }
            section["diameter"]["tls"] = files;
            tls = Some(made);
            section
        }
        Stage::Secure => json!({}),
    };
    if stage == Stage::Secure {
        return secure(binary, folder, dose).await;
    }
    let mut config = json!({});
    config[function] = section;
    if let Some(settings) = settings {
        lay(&mut config[function], settings);
    }
    let process = Process::start(binary, &[function], &config, &path, "")?;
    let admin = process.address(&format!("{function} admin"))?;
    let diameter = process.address(&format!("{function} Diameter")).ok();
    let target = match stage {
        Stage::Dsr => diameter.context("a router without an address")?,
        Stage::FrontEnd => process.address("ipfe TCP")?,
        _ => process.address(&format!("{function} SBI"))?,
    };
    let tick = tick(dose);
    let mut world = World {
        stage,
        plan: Plan::None,
        recipe: Recipe {
            binary: binary.to_owned(),
            functions: vec![function],
            config,
        },
        process,
        beside,
        target,
        diameter,
        admin,
        nrf,
        server,
        poisoned: poisoned_nrf,
        hss,
        tls,
        core: None,
        session: None,
        folder,
    };
    prepare(&mut world, tick).await?;
    Ok(world)
}

/// A core, and an SMF of it as the honest client.
async fn secure(binary: &Path, folder: tempfile::TempDir, dose: Dose) -> anyhow::Result<World> {
    let path = folder.path().to_owned();
    let config = super::secure::config(binary, &path)?;
    let process = Process::up_secure(binary, &config, &path)?;
    let core = Core::of(&process, &path)?;
    let smf = core.smf()?;
    let (session, token) = core.session(&smf).await?;
    let target = format!("{}:{}", core.pcf.host(), core.pcf.port()).parse()?;
    let plan = Plan::Http {
        ask: Ask::get(&*session).header("authorization", token),
        expect: |got| got.status == 200,
        tick: tick(dose),
        tls: Some(smf.tls.clone()),
    };
    let admin = core.nrf.port();
    Ok(World {
        stage: Stage::Secure,
        plan,
        recipe: Recipe {
            binary: binary.to_owned(),
            functions: vec![],
            config,
        },
        process,
        beside: vec![],
        target,
        diameter: None,
        admin: SocketAddr::from(([127, 0, 0, 1], admin)),
        nrf: None,
        server: None,
        poisoned: None,
        hss: None,
        tls: None,
        core: Some(core),
        session: Some(session),
        folder,
    })
}

/// Interval of honest requests.
fn tick(dose: Dose) -> Duration {
    match dose {
        Dose::Quick => Duration::from_millis(20),
        Dose::Full => Duration::from_millis(100),
    }
}

/// Makes the state that the honest client needs, and its plan.
async fn prepare(world: &mut World, tick: Duration) -> anyhow::Result<()> {
    let tls = world
        .tls
        .as_ref()
        .map(|tls| tls.client(&["honest.example", &format!("urn:uuid:{PRODUCER}")]))
        .transpose()?;
    let honest = client_over("UDM-honest", tls.clone());
    let ask: Ask = match world.stage {
        Stage::Nrf | Stage::NrfTls | Stage::NrfHeartBeat => {
            let origin = world.origin()?;
            let required = world.recipe.config["nrf"]["tokens"]["protectOwnServices"] == true;
            let token = match required {
                true => token(&honest, &origin).await?,
                false => String::new(),
            };
            register(&honest, &origin, &producer_profile(8_080), &token).await?;
            match world.stage {
                _ if required => Ask::get(disc()).header("authorization", token),
                Stage::NrfHeartBeat => {
                    Ask::new(Method::PATCH, format!("/nnrf-nfm/v1/nf-instances/{PRODUCER}")).with(
                        "application/json-patch+json",
                        json!([{"op": "replace", "path": "/nfStatus", "value": "REGISTERED"}]).to_string(),
                    )
                }
                _ => Ask::get(disc()),
            }
        }
        Stage::Bsf | Stage::BsfPoisoned => {
            let post =
                Ask::new(Method::POST, "/nbsf-management/v1/pcfBindings").json(&binding("10.0.0.1", 1));
            let got = send(&honest, &world.origin()?, &post).await;
            ensure!(got.status == 201, "the honest binding is refused: {}", got.text());
            Ask::get("/nbsf-management/v1/pcfBindings?ipv4Addr=10.0.0.1")
        }
        Stage::Scp => wish(Ask::get(PRODUCER_PATH)),
        // What is configured needs no NRF: Model C, to the honest producer.
        Stage::ScpPoisoned => {
            let root = world.server.as_ref().map(Server::root).unwrap_or_default();
            Ask::get(PRODUCER_PATH).header("3gpp-sbi-target-apiroot", root)
        }
        Stage::Pcf | Stage::PcfTls => {
            let context = json!({
                "supi": SUBSCRIBER, "pduSessionId": 5, "pduSessionType": "IPV4", "dnn": "internet",
                "notificationUri": "http://127.0.0.1:9/smf", "sliceInfo": {"sst": 1}, "ipv4Address": HONEST_ADDRESS
            });
            let post = Ask::new(Method::POST, "/npcf-smpolicycontrol/v1/sm-policies").json(&context);
            let got = send(&honest, &world.origin()?, &post).await;
            let location = got.headers.get("location").and_then(|value| value.to_str().ok());
            let place: http::Uri = location.context("the honest session is refused")?.parse()?;
            world.session = Some(place.path().to_owned());
            Ask::get(place.path())
        }
        Stage::Secure => anyhow::bail!("a core has a plan of its own"),
        Stage::Dsr | Stage::FrontEnd => {
            world.plan = Plan::Diameter { tick };
            return crate::honest::diameter::served(world.target).await;
        }
    };
    let expect: fn(&crate::answer::Got) -> bool = match world.stage {
        Stage::NrfHeartBeat => |got| matches!(got.status, 200 | 204),
        Stage::Nrf | Stage::NrfTls => {
            |got| got.status == 200 && String::from_utf8_lossy(&got.body).contains(PRODUCER)
        }
        Stage::Bsf | Stage::BsfPoisoned => {
            |got| got.status == 200 && String::from_utf8_lossy(&got.body).contains("pcf1.example.org")
        }
        Stage::Pcf | Stage::PcfTls => |got| got.status == 200,
        _ => |got| got.status == 200 && got.body.ends_with(br#""honest"}"#),
    };
    world.plan = Plan::Http {
        ask,
        expect,
        tick,
        tls,
    };
    served(&honest, &world.origin()?, &world.plan).await
}
