//! Tables, messages of a roaming partner, and an application that sees them.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use diameter_proto::known::{self, application};
use diameter_proto::{AvpFlags, AvpKey, MessageBuilder, MessageMut, Origin, ResultCode, Routing};
use dsr_app::{Answered, Flow, Installed, Memo, Out, Request, Resumer, Seated, Ticket, Turn, View, seat};
use dsr_dsa::{Dsa, config};

pub(crate) const HOME: &str = "epc.mnc001.mcc262.3gppnetwork.org";
pub(crate) const FRANCE: &str = "epc.mnc010.mcc208.3gppnetwork.org";
pub(crate) const USA: &str = "epc.mnc150.mcc310.3gppnetwork.org";
/// A peer of the set `west`, and one of ours.
pub(crate) const FOREIGN_PEER: &str = "ipx.west.example";
pub(crate) const OWN_PEER: &str = "dra.EPC.mnc001.mcc262.3gppnetwork.org";

pub(crate) const IN_FRANCE: [u8; 3] = [0x02, 0xf8, 0x01];
pub(crate) const IN_USA: [u8; 3] = [0x13, 0x00, 0x51];

pub(crate) const DETECT: &str = "Detection_Only,Yes,,,";
pub(crate) const DROP: &str = "Detection_And_Correction_By_Drop,Yes,,,";
pub(crate) const ANSWER: &str = "Detection_And_Correction_By_Send_Answer,Yes,5012,,not permitted";

/// Commands of S6a.
pub(crate) const ULR: u32 = 316;
pub(crate) const CLR: u32 = 317;
pub(crate) const AIR: u32 = 318;
pub(crate) const IDR: u32 = 319;
pub(crate) const DSR: u32 = 320;
pub(crate) const PUR: u32 = 321;
pub(crate) const RSR: u32 = 322;
pub(crate) const NOR: u32 = 323;

/// After this time no message of an earlier place is in flight.
pub(crate) const RACE: Duration = Duration::from_secs(31);

/// Every measure, in order.
pub(crate) const MEASURES: [&str; 20] = [
    "AppIdWL",
    "AppCmdCst",
    "RealmWLScr",
    "OhOrCstChk",
    "DrOrMatch",
    "VplmnORCst",
    "RealmIMSICst",
    "SubsIdenValid",
    "SpecAVPScr",
    "AVPInstChk",
    "AVPWLScr",
    "OhOrFrmChk",
    "SesIdValChk",
    "DhDrFrmChk",
    "MsgRateMon",
    "TimeDistChk",
    "PreLocChk",
    "SrcHostValHss",
    "SrcHostValMme",
    "SesIntValChk",
];

/// Operating modes, with what becomes of a message that a measure finds to be wrong, and its outcome.
pub(crate) const MODES: [(&str, Fate, &str); 3] = [
    (DETECT, Fate::WentOn, "detected"),
    (DROP, Fate::Dropped, "dropped"),
    (ANSWER, Fate::Answered(5012), "answered"),
];

const TABLES: &[(&str, &str)] = &[
    (
        "Foreign_WL_Peers_Cfg_Sets",
        "Cfg_Set_Name,Peers\nwest,ipx.west.example;ipx2.west.example\neast,ipx.east.example\n",
    ),
    (
        "Realm_List",
        "Network_Type,Realm,Cfg_Set_Name\nHome_Network,epc.mnc001.mcc262.3gppnetwork.org,\n\
         Foreign_Network,epc.mnc010.mcc208.3gppnetwork.org,west\nForeign_Network,epc.mnc150.mcc310.3gppnetwork.org,west\n",
    ),
    (
        "MCC_MNC_List",
        "Network_Type,MCC_MNC\nHome_Network,26201\nForeign_Network,20810\nForeign_Network,310150\n",
    ),
    ("AppIdWL_Config", "Application_ID\n16777251\n"),
    (
        "AppCmdCst_Config",
        "Application_ID,Command_Codes\n16777251,316;317;318;319;320;321;323\n",
    ),
    (
        "VplmnORCst_Config",
        "Application_ID,Command_Codes\n16777251,316;318\n",
    ),
    ("RealmIMSICst_Config", "MCC,MNC_List\n262,01;02\n"),
    (
        "SpecAVPScr_Config",
        "Application_ID,Command_Code,Message_Type,AVP_Name,AVP_Value\n16777251,316,Request,RAT-Type,WLAN\n\
         16777251,316,Both,Terminal-Information;Software-Version,66\n",
    ),
    (
        "AVPInstChk_Config",
        "Application_ID,Command_Code,Message_Type,AVP_Name,Minimum_Instance,Maximum_Instance\n\
         16777251,316,Request,Visited-PLMN-Id,0,1\n16777251,316,Request,Terminal-Information;IMEI,0,1\n",
    ),
    (
        "AVPWLScr_Config",
        "Application_ID,Command_Code,Message_Type,AVP_Names\n16777251,316,Request,\
         Session-Id;Origin-Host;Origin-Realm;Destination-Host;Destination-Realm;User-Name;Visited-PLMN-Id;RAT-Type;\
         Terminal-Information;IMEI;Software-Version;Failed-AVP\n",
    ),
    (
        "MsgRateMon_Config",
        "Application_ID,Command_Code,Messages_Per_Second,Peer\n16777251,318,2,*\n",
    ),
    (
        "IMSI_Exception_Config",
        "Start_Address,End_Address,CounterMeasures\n2620199,,*\n2081099,,*\n3102699,,*\n",
    ),
];

/// Writes a table, whole at once.
pub(crate) fn write(directory: &Path, name: &str, text: &str) {
    let part = directory.join("part");
    std::fs::write(&part, text).unwrap();
    std::fs::rename(part, directory.join(format!("{name}.csv"))).unwrap();
}

/// The measures that are on: each in the form `NAME,MODE`.
pub(crate) fn measures(rows: &[String]) -> String {
    let rows: String = rows
        .iter()
        .map(|row| {
            let mut fields = row.splitn(3, ',');
            let (name, mode, rest) = (
                fields.next().unwrap(),
                fields.next().unwrap(),
                fields.next().unwrap(),
            );
            format!("{name},Enable,{mode},{rest}\n")
        })
        .collect();
    format!(
        "CounterMeasure_Type,Admin_Status,Operating_Mode,Continue_If_Vulnerable,Result_Code,Vendor_ID,Error_Message\n{rows}"
    )
}

/// A directory with every table, and these measures on.
pub(crate) fn tables(rows: &[String]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in TABLES {
        write(directory.path(), name, text);
    }
    write(
        directory.path(),
        "Security_Countermeasure_Config",
        &measures(rows),
    );
    directory
}

pub(crate) fn settings(directory: &Path) -> config::Dsa {
    config::Dsa {
        tables: Some(directory.to_owned()),
        learning: settings::Period::from_secs(0),
        ..config::Dsa::default()
    }
}

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    WentOn,
    Dropped,
    Answered(u32),
}

/// An application that sees messages.
pub(crate) struct Bench {
    pub(crate) application: Arc<dyn Installed>,
    seat: Rc<dyn Seated>,
    pub(crate) now: Instant,
    _directory: Option<tempfile::TempDir>,
}

impl Bench {
    pub(crate) fn new(rows: &[String]) -> Self {
        let directory = tables(rows);
        let mut bench = Self::with(&settings(directory.path()));
        bench._directory = Some(directory);
        bench
    }

    /// With one measure on.
    pub(crate) fn one(measure: &str, mode: &str) -> Self {
        Self::new(&[format!("{measure},{mode}")])
    }

    pub(crate) fn with(settings: &config::Dsa) -> Self {
        let application: Arc<dyn Installed> = Arc::new(Dsa::load(settings).unwrap());
        let seat = seat(application.clone());
        Self {
            application,
            seat,
            now: Instant::now(),
            _directory: None,
        }
    }

    /// Takes an application of these settings in place of the one before; `meanwhile` sees it before the worker does.
    pub(crate) fn reload(&mut self, settings: &config::Dsa, meanwhile: impl FnOnce(&dyn Installed)) {
        self.application = Arc::new(Dsa::load(settings).unwrap());
        meanwhile(&*self.application);
        let application = self.application.clone();
        self.seat = application.seat(0, &(), &Resumer::none(), Some(self.seat.as_any()));
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    /// Shows a request of that peer.
    pub(crate) fn request(&mut self, peer: &str, message: &MessageMut) -> Fate {
        self.shown(peer, message, &mut Memo::default())
    }

    fn shown(&mut self, peer: &str, message: &MessageMut, memo: &mut Memo) -> Fate {
        let routing = Routing::scan(message, b"").unwrap();
        let request = Request {
            message,
            view: &View::new(message.application(), message.command(), 10, &routing),
            peer,
            names: &Origin::new("dsr.example", "example"),
        };
        let turn = Turn {
            now: self.now,
            ticket: Ticket::default(),
            memo,
            out: &mut Out::default(),
            is_congested: false,
        };
        fate(&self.seat.request(turn, &request))
    }

    /// Shows a request, and where it goes on its answer.
    pub(crate) fn exchange(&mut self, peer: &str, message: &MessageMut, answer: &MessageMut) -> Fate {
        let mut memo = Memo::default();
        let fate_of_request = self.shown(peer, message, &mut memo);
        if fate_of_request != Fate::WentOn {
            return fate_of_request;
        }
        let turn = Turn {
            now: self.now,
            ticket: Ticket::default(),
            memo: &mut memo,
            out: &mut Out::default(),
            is_congested: false,
        };
        let answered = Answered {
            request: &diameter_proto::Message::parse(bytes_of(message)).unwrap(),
            answer,
            names: &Origin::new("dsr.example", "example"),
        };
        fate(&self.seat.answer(turn, &answered))
    }

    /// Findings of a measure: partner, outcome and count.
    pub(crate) fn findings(&self, measure: &str) -> Vec<(String, &'static str, u64)> {
        let all = self.application.findings().into_iter();
        all.filter(|found| found.measure == measure)
            .map(|found| (found.partner, found.outcome, found.count))
            .collect()
    }
}

fn bytes_of(message: &MessageMut) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(message.as_bytes())
}

fn fate(flow: &Flow<'_>) -> Fate {
    match flow {
        Flow::Next => Fate::WentOn,
        Flow::Drop => Fate::Dropped,
        Flow::Answer(fault) => Fate::Answered(fault.code.0),
        other => panic!("{other:?}"),
    }
}

/// A request of S6a.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) application: u32,
    pub(crate) command: u32,
    pub(crate) host: String,
    pub(crate) realm: String,
    pub(crate) to_host: Option<String>,
    pub(crate) to_realm: String,
    pub(crate) imsi: String,
    pub(crate) visited: Option<[u8; 3]>,
    pub(crate) session_first: bool,
    pub(crate) more: fn(&mut MessageBuilder),
}

impl Sent {
    /// Of an MME in France, about one of our subscribers.
    pub(crate) fn new(command: u32) -> Self {
        Self {
            application: application::S6A,
            command,
            host: format!("mme1.{FRANCE}"),
            realm: FRANCE.to_owned(),
            to_host: None,
            to_realm: HOME.to_owned(),
            imsi: "262011234567890".to_owned(),
            visited: Some(IN_FRANCE),
            session_first: true,
            more: |_| (),
        }
    }

    /// Of an HSS in France, about a subscriber of it who is here.
    pub(crate) fn of_hss(command: u32) -> Self {
        Self {
            host: format!("hss1.{FRANCE}"),
            imsi: "208101234567890".to_owned(),
            visited: None,
            ..Self::new(command)
        }
    }

    /// Of an MME of ours, about a subscriber of France.
    pub(crate) fn of_ours(command: u32) -> Self {
        Self {
            host: format!("mme1.{HOME}"),
            realm: HOME.to_owned(),
            to_realm: FRANCE.to_owned(),
            imsi: "208101234567890".to_owned(),
            visited: Some([0x62, 0xf2, 0x10]),
            ..Self::new(command)
        }
    }

    /// About a subscriber whom measures let pass.
    pub(crate) fn excepted(&self) -> Self {
        let imsi = format!("{}99{}", &self.imsi[..5], &self.imsi[7..]);
        Self { imsi, ..self.clone() }
    }

    pub(crate) fn message(&self) -> MessageMut {
        let mut builder = MessageBuilder::request(self.command, self.application);
        let session = format!("{};1;2", self.host);
        if self.session_first {
            builder.put(known::SESSION_ID, &session);
        }
        builder
            .put(known::ORIGIN_HOST, &self.host)
            .put(known::ORIGIN_REALM, &self.realm);
        if !self.session_first {
            builder.put(known::SESSION_ID, &session);
        }
        builder
            .maybe(known::DESTINATION_HOST, self.to_host.as_deref())
            .put(known::DESTINATION_REALM, &self.to_realm);
        if !self.imsi.is_empty() {
            builder.put(known::USER_NAME, &self.imsi);
        }
        if let Some(visited) = &self.visited {
            builder.put(known::VISITED_PLMN_ID, &visited[..]);
        }
        (self.more)(&mut builder);
        builder.finish().unwrap()
    }

    /// An answer of this host.
    pub(crate) fn answer(&self, host: &str, code: u32) -> MessageMut {
        let mut builder = MessageBuilder::answer(&self.message());
        builder
            .put(known::RESULT_CODE, ResultCode(code).0)
            .put(known::ORIGIN_HOST, host)
            .put(known::ORIGIN_REALM, &self.to_realm);
        builder.finish().unwrap()
    }
}

pub(crate) fn home_hss() -> String {
    format!("hss.{HOME}")
}

/// Sends a request that its home network answers with success.
pub(crate) fn succeeds(bench: &mut Bench, sent: &Sent) -> Fate {
    bench.exchange(FOREIGN_PEER, &sent.message(), &sent.answer(&home_hss(), 2001))
}

/// A subscriber authenticates and registers in France.
pub(crate) fn registers(bench: &mut Bench, imsi: &str) {
    for command in [AIR, ULR] {
        let sent = Sent {
            imsi: imsi.to_owned(),
            ..Sent::new(command)
        };
        assert_eq!(succeeds(bench, &sent), Fate::WentOn);
    }
}

/// A request of an MME in the USA about our subscriber.
pub(crate) fn in_usa(command: u32) -> Sent {
    Sent {
        host: format!("mme9.{USA}"),
        realm: USA.to_owned(),
        visited: Some(IN_USA),
        ..Sent::new(command)
    }
}

/// An AVP as it is.
pub(crate) fn raw(builder: &mut MessageBuilder, vendor: u32, code: u32, data: &[u8]) {
    let flags = if vendor == 0 {
        AvpFlags::MANDATORY
    } else {
        AvpFlags(AvpFlags::MANDATORY.0 | AvpFlags::VENDOR.0)
    };
    builder.put_raw(AvpKey { vendor, code }, flags, data);
}

/// The lines of a file, once there are this many.
pub(crate) fn lines_of(file: &std::path::Path, count: usize) -> Vec<String> {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if text.matches('\n').count() >= count {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(std::time::Instant::now() < deadline, "{count} lines: {text}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
