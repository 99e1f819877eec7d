//! Where a UE is, and areas (TS 29.571 §5.4.4): the PCF keeps them for policies to read. Types alone are judged.

use model::shape::Shape::{Bool, Integer, List, MaybeEmpty, Of, Text};
use model::shape::opt;

use super::common::{COUNT, PLMN, TEXT};
use super::object;

object! {
    /// `Tai`.
    pub(super) TAI = [
        opt("plmnId", Of(&PLMN)),
        opt("tac", Text),
        opt("nid", Text),
    ];
    /// `Ecgi`.
    pub(super) ECGI = [
        opt("plmnId", Of(&PLMN)),
        opt("eutraCellId", Text),
        opt("nid", Text),
    ];
    /// `GNbId`.
    pub(super) G_NB_ID = [
        opt("bitLength", Integer(22, 32)),
        opt("gNBValue", Text),
    ];
    /// `GlobalRanNodeId`.
    pub(super) GLOBAL_RAN_NODE_ID = [
        opt("plmnId", Of(&PLMN)),
        opt("n3IwfId", Text),
        opt("gNbId", Of(&G_NB_ID)),
        opt("ngeNbId", Text),
        opt("wagfId", Text),
        opt("tngfId", Text),
        opt("nid", Text),
        opt("eNbId", Text),
    ];
    /// `EutraLocation`.
    pub(super) EUTRA_LOCATION = [
        opt("tai", Of(&TAI)),
        opt("ignoreTai", Bool),
        opt("ecgi", Of(&ECGI)),
        opt("ignoreEcgi", Bool),
        opt("ageOfLocationInformation", Integer(0, 32767)),
        opt("ueLocationTimestamp", Text),
        opt("geographicalInformation", Text),
        opt("geodeticInformation", Text),
        opt("globalNgenbId", Of(&GLOBAL_RAN_NODE_ID)),
        opt("globalENbId", Of(&GLOBAL_RAN_NODE_ID)),
    ];
    /// `Ncgi`.
    pub(super) NCGI = [
        opt("plmnId", Of(&PLMN)),
        opt("nrCellId", Text),
        opt("nid", Text),
    ];
    /// `NrLocation`.
    pub(super) NR_LOCATION = [
        opt("tai", Of(&TAI)),
        opt("ncgi", Of(&NCGI)),
        opt("ignoreNcgi", Bool),
        opt("ageOfLocationInformation", Integer(0, 32767)),
        opt("ueLocationTimestamp", Text),
        opt("geographicalInformation", Text),
        opt("geodeticInformation", Text),
        opt("globalGnbId", Of(&GLOBAL_RAN_NODE_ID)),
    ];
    /// `TnapId`.
    pub(super) TNAP_ID = [
        opt("ssId", Text),
        opt("bssId", Text),
        opt("civicAddress", Text),
    ];
    /// `TwapId`.
    pub(super) TWAP_ID = [
        opt("ssId", Text),
        opt("bssId", Text),
        opt("civicAddress", Text),
    ];
    /// `HfcNodeId`.
    pub(super) HFC_NODE_ID = [
        opt("hfcNId", Text),
    ];
    /// `N3gaLocation`.
    pub(super) N3GA_LOCATION = [
        opt("n3gppTai", Of(&TAI)),
        opt("n3IwfId", Text),
        opt("ueIpv4Addr", Text),
        opt("ueIpv6Addr", Text),
        opt("portNumber", COUNT),
        opt("protocol", Text),
        opt("tnapId", Of(&TNAP_ID)),
        opt("twapId", Of(&TWAP_ID)),
        opt("hfcNodeId", Of(&HFC_NODE_ID)),
        opt("gli", Text),
        opt("w5gbanLineType", Text),
        opt("gci", Text),
    ];
    /// `CellGlobalId`.
    pub(super) CELL_GLOBAL_ID = [
        opt("plmnId", Of(&PLMN)),
        opt("lac", Text),
        opt("cellId", Text),
    ];
    /// `ServiceAreaId`.
    pub(super) SERVICE_AREA_ID = [
        opt("plmnId", Of(&PLMN)),
        opt("lac", Text),
        opt("sac", Text),
    ];
    /// `LocationAreaId`.
    pub(super) LOCATION_AREA_ID = [
        opt("plmnId", Of(&PLMN)),
        opt("lac", Text),
    ];
    /// `RoutingAreaId`.
    pub(super) ROUTING_AREA_ID = [
        opt("plmnId", Of(&PLMN)),
        opt("lac", Text),
        opt("rac", Text),
    ];
    /// `UtraLocation`.
    pub(super) UTRA_LOCATION = [
        opt("cgi", Of(&CELL_GLOBAL_ID)),
        opt("sai", Of(&SERVICE_AREA_ID)),
        opt("lai", Of(&LOCATION_AREA_ID)),
        opt("rai", Of(&ROUTING_AREA_ID)),
        opt("ageOfLocationInformation", Integer(0, 32767)),
        opt("ueLocationTimestamp", Text),
        opt("geographicalInformation", Text),
        opt("geodeticInformation", Text),
    ];
    /// `GeraLocation`.
    pub(super) GERA_LOCATION = [
        opt("locationNumber", Text),
        opt("cgi", Of(&CELL_GLOBAL_ID)),
        opt("rai", Of(&ROUTING_AREA_ID)),
        opt("sai", Of(&SERVICE_AREA_ID)),
        opt("lai", Of(&LOCATION_AREA_ID)),
        opt("vlrNumber", Text),
        opt("mscNumber", Text),
        opt("ageOfLocationInformation", Integer(0, 32767)),
        opt("ueLocationTimestamp", Text),
        opt("geographicalInformation", Text),
        opt("geodeticInformation", Text),
    ];
    /// `UserLocation`.
    pub(super) USER_LOCATION = [
        opt("eutraLocation", Of(&EUTRA_LOCATION)),
        opt("nrLocation", Of(&NR_LOCATION)),
        opt("n3gaLocation", Of(&N3GA_LOCATION)),
        opt("utraLocation", Of(&UTRA_LOCATION)),
        opt("geraLocation", Of(&GERA_LOCATION)),
    ];
    /// `PresenceInfo`.
    pub(super) PRESENCE_INFO = [
        opt("praId", Text),
        opt("additionalPraId", Text),
        opt("presenceState", Text),
        opt("trackingAreaList", List(&TAI)),
        opt("ecgiList", List(&ECGI)),
        opt("ncgiList", List(&NCGI)),
        opt("globalRanNodeIdList", List(&GLOBAL_RAN_NODE_ID)),
        opt("globaleNbIdList", List(&GLOBAL_RAN_NODE_ID)),
    ];
    /// `Area`.
    pub(super) AREA = [
        opt("tacs", List(&TEXT)),
        opt("areaCode", Text),
    ];
    /// `WirelineArea`.
    pub(super) WIRELINE_AREA = [
        opt("globalLineIds", List(&TEXT)),
        opt("hfcNIds", List(&TEXT)),
        opt("areaCodeB", Text),
        opt("areaCodeC", Text),
    ];
    /// `WirelineServiceAreaRestriction`.
    pub(super) WIRELINE_SERVICE_AREA_RESTRICTION = [
        opt("restrictionType", Text),
        opt("areas", MaybeEmpty(&WIRELINE_AREA)),
    ];
}
