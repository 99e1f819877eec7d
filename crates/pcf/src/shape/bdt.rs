//! Bodies of Npcf_BDTPolicyControl (TS 29.554 §5.6.2).

use model::shape::Shape::{Bool, Integer, List, Of, Rule, Text};
use model::shape::{Shape, opt, req, rules};

use super::common::{COUNT, SNSSAI, THRESHOLD, callback, name};
use super::location::{ECGI, GLOBAL_RAN_NODE_ID, NCGI, TAI};
use super::object;

static TAIS: Shape = Of(&TAI);
static ECGIS: Shape = Of(&ECGI);
static NCGIS: Shape = Of(&NCGI);
static NODES: Shape = Of(&GLOBAL_RAN_NODE_ID);

object! {
    /// `TimeWindow` (TS 29.122 §5.2.1.2.13).
    TIME_WINDOW = [
        req("startTime", Rule(rules::date_time)),
        req("stopTime", Rule(rules::date_time)),
    ];
    /// `NetworkAreaInfo` (§5.6.2.8).
    NETWORK_AREA_INFO = [
        opt("ecgis", List(&ECGIS)),
        opt("ncgis", List(&NCGIS)),
        opt("gRanNodeIds", List(&NODES)),
        opt("tais", List(&TAIS)),
    ];
    /// `BdtReqData` (§5.6.2.3).
    pub(crate) BDT_REQUEST = [
        req("aspId", Rule(name)),
        req("desTimeInt", Of(&TIME_WINDOW)),
        opt("dnn", Rule(name)),
        opt("interGroupId", Rule(rules::group_id)),
        opt("notifUri", Rule(callback)),
        opt("nwAreaInfo", Of(&NETWORK_AREA_INFO)),
        req("numOfUes", COUNT),
        req("volPerUe", Of(&THRESHOLD)),
        opt("snssai", Of(&SNSSAI)),
        opt("suppFeat", Rule(rules::features)),
        opt("trafficDes", Text),
        opt("warnNotifReq", Bool),
    ];
    BDT_DATA_PATCH = [req("selTransPolicyId", Integer(0, i64::MAX))];
    BDT_REQUEST_PATCH = [opt("warnNotifReq", Bool)];
    /// `PatchBdtPolicy` (§5.6.2.9). A consumer without the feature PatchCorrection has the members of `BdtPolicyDataPatch` here.
    pub(crate) BDT_PATCH = [
        opt("bdtPolData", Of(&BDT_DATA_PATCH)),
        opt("bdtReqData", Of(&BDT_REQUEST_PATCH)),
        opt("selTransPolicyId", Integer(0, i64::MAX)),
        opt("warnNotifReq", Bool),
    ];
}
