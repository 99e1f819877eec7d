//! Data types of which the PCF reads little and keeps all (TS 29.571, TS 29.512 §5.6.2, TS 29.507 §5.6.2). Types alone are judged.

use model::shape::Shape::{Bool, Integer, List, Nullable, Number, Of, Text};
use model::shape::{ObjectRule, Shape, opt};

use super::common::{AMBR, ARP, COUNT, LINES, SNSSAI, TEXT, at_most_two};
use super::object;

static LIST_TEXT: Shape = List(&TEXT);
/// The tags of customer and service (TS 29.514 §5.6.2.17).
const TWO_TAGS: ObjectRule = |members| at_most_two(members, "vlanTags");

object! {
    /// `VplmnQos`.
    pub(super) VPLMN_QOS = [
        opt("5qi", Integer(0, 255)),
        opt("arp", Of(&ARP)),
        opt("sessionAmbr", Of(&AMBR)),
        opt("maxFbrDl", Text),
        opt("maxFbrUl", Text),
        opt("guaFbrDl", Text),
        opt("guaFbrUl", Text),
    ];
    /// `TraceData`.
    pub(super) TRACE_DATA = [
        opt("traceRef", Text),
        opt("traceDepth", Text),
        opt("neTypeList", Text),
        opt("eventList", Text),
        opt("collectionEntityIpv4Addr", Text),
        opt("collectionEntityIpv6Addr", Text),
        opt("interfaceList", Text),
    ];
    /// `AnGwAddress`.
    pub(super) AN_GW_ADDRESS = [
        opt("anGwIpv4Addr", Text),
        opt("anGwIpv6Addr", Text),
    ];
    /// `SgsnAddress`.
    pub(super) SGSN_ADDRESS = [
        opt("sgsnIpv4Addr", Text),
        opt("sgsnIpv6Addr", Text),
    ];
    /// `ServerAddressingInfo`.
    pub(super) SERVER_ADDRESSING_INFO = [
        opt("ipv4Addresses", List(&TEXT)),
        opt("ipv6Addresses", List(&TEXT)),
        opt("fqdnList", List(&TEXT)),
    ];
    /// `NwdafData`.
    pub(super) NWDAF_DATA = [
        opt("nwdafInstanceId", Text),
        opt("nwdafEvents", List(&TEXT)),
    ];
    /// `EthFlowDescription`.
    pub(super) ETH_FLOW_DESCRIPTION = [
        opt("destMacAddr", Text),
        opt("ethType", Text),
        opt("fDesc", Text),
        opt("fDir", Text),
        opt("sourceMacAddr", Text),
        opt("vlanTags", List(&TEXT)),
        opt("srcMacAddrEnd", Text),
        opt("destMacAddrEnd", Text),
    ] where TWO_TAGS;
    /// `FlowInformation`.
    pub(super) FLOW_INFORMATION = [
        opt("flowDescription", Text),
        opt("ethFlowDescription", Of(&ETH_FLOW_DESCRIPTION)),
        opt("packFiltId", Text),
        opt("packetFilterUsage", Bool),
        opt("tosTrafficClass", Nullable(&TEXT)),
        opt("spi", Nullable(&TEXT)),
        opt("flowLabel", Nullable(&TEXT)),
        opt("flowDirection", Nullable(&TEXT)),
    ];
    /// `NgApCause`.
    pub(super) NG_AP_CAUSE = [
        opt("group", COUNT),
        opt("value", COUNT),
    ];
    /// `RanNasRelCause`.
    pub(super) RAN_NAS_REL_CAUSE = [
        opt("ngApCause", Of(&NG_AP_CAUSE)),
        opt("5gMmCause", COUNT),
        opt("5gSmCause", COUNT),
        opt("epsCause", Text),
    ];
    /// `PacketFilterInfo`.
    pub(super) PACKET_FILTER_INFO = [
        opt("packFiltId", Text),
        opt("packFiltCont", Text),
        opt("tosTrafficClass", Text),
        opt("spi", Text),
        opt("flowLabel", Text),
        opt("flowDirection", Text),
    ];
    /// `TsnBridgeInfo`.
    pub(super) TSN_BRIDGE_INFO = [
        opt("bridgeId", Number),
        opt("dsttAddr", Text),
        opt("dsttPortNum", COUNT),
        opt("dsttResidTime", COUNT),
    ];
    /// `BridgeManagementContainer`.
    pub(super) BRIDGE_MANAGEMENT_CONTAINER = [
        opt("bridgeManCont", Text),
    ];
    /// `PortManagementContainer`.
    pub(super) PORT_MANAGEMENT_CONTAINER = [
        opt("portManCont", Text),
        opt("portNum", COUNT),
    ];
    /// `IpMulticastAddressInfo`.
    pub(super) IP_MULTICAST_ADDRESS_INFO = [
        opt("srcIpv4Addr", Text),
        opt("ipv4MulAddr", Text),
        opt("srcIpv6Addr", Text),
        opt("ipv6MulAddr", Text),
    ];
    /// `InvalidParam`.
    pub(super) INVALID_PARAM = [
        opt("param", Of(&LINES)),
        opt("reason", Of(&LINES)),
    ];
    /// `DddTrafficDescriptor`.
    pub(super) DDD_TRAFFIC_DESCRIPTOR = [
        opt("ipv4Addr", Text),
        opt("ipv6Addr", Text),
        opt("portNumber", COUNT),
        opt("macAddr", Text),
    ];
    /// `CandidateForReplacement`.
    pub(super) CANDIDATE_FOR_REPLACEMENT = [
        opt("snssai", Of(&SNSSAI)),
        opt("dnns", Nullable(&LIST_TEXT)),
    ];
    /// `SliceMbr`.
    pub(super) SLICE_MBR = [
        opt("uplink", Text),
        opt("downlink", Text),
    ];
    /// `MappingOfSnssai`.
    pub(super) MAPPING_OF_SNSSAI = [
        opt("servingSnssai", Of(&SNSSAI)),
        opt("homeSnssai", Of(&SNSSAI)),
    ];
}
