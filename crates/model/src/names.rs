//! The open enumerations of TS 29.510 §6.1.6.3 and TS 29.571 that more than one function names.

use crate::open_enum;

open_enum! {
    /// NF types known to an NRF (TS 29.510 §6.1.6.3.3).
    NfType {
        Nrf = "NRF",
        Udm = "UDM",
        Amf = "AMF",
        Smf = "SMF",
        Ausf = "AUSF",
        Nef = "NEF",
        Pcf = "PCF",
        Smsf = "SMSF",
        Nssf = "NSSF",
        Udr = "UDR",
        Lmf = "LMF",
        Gmlc = "GMLC",
        FiveGEir = "5G_EIR",
        Sepp = "SEPP",
        Upf = "UPF",
        N3iwf = "N3IWF",
        Af = "AF",
        Udsf = "UDSF",
        Bsf = "BSF",
        Chf = "CHF",
        Nwdaf = "NWDAF",
        Pcscf = "PCSCF",
        Cbcf = "CBCF",
        Hss = "HSS",
        Ucmf = "UCMF",
        SorAf = "SOR_AF",
        Spaf = "SPAF",
        Mme = "MME",
        Scsas = "SCSAS",
        Scef = "SCEF",
        Scp = "SCP",
        Nssaaf = "NSSAAF",
        Icscf = "ICSCF",
        Scscf = "SCSCF",
        Dra = "DRA",
        ImsAs = "IMS_AS",
        Aanf = "AANF",
        FiveGDdnmf = "5G_DDNMF",
        Nsacf = "NSACF",
        Mfaf = "MFAF",
        Easdf = "EASDF",
        Dccf = "DCCF",
        MbSmf = "MB_SMF",
        Tsctsf = "TSCTSF",
        Adrf = "ADRF",
        GbaBsf = "GBA_BSF",
        Cef = "CEF",
        MbUpf = "MB_UPF",
        Nswof = "NSWOF",
        Pkmf = "PKMF",
        Mnpf = "MNPF",
        SmsGmsc = "SMS_GMSC",
        SmsIwmsc = "SMS_IWMSC",
        Mbsf = "MBSF",
        Mbstf = "MBSTF",
        Panf = "PANF",
    }
}

open_enum! {
    /// Status of an NF instance in the NRF (TS 29.510 §6.1.6.3.7).
    NfStatus {
        Registered = "REGISTERED",
        Suspended = "SUSPENDED",
        Undiscoverable = "UNDISCOVERABLE",
    }
}

open_enum! {
    /// Status of an NF service instance (TS 29.510 §6.1.6.3.8).
    NfServiceStatus {
        Registered = "REGISTERED",
        Suspended = "SUSPENDED",
        Undiscoverable = "UNDISCOVERABLE",
    }
}

open_enum! {
    /// Event of a notification (TS 29.510 §6.1.6.3.6).
    NotificationEventType {
        NfRegistered = "NF_REGISTERED",
        NfDeregistered = "NF_DEREGISTERED",
        NfProfileChanged = "NF_PROFILE_CHANGED",
    }
}

open_enum! {
    /// Data sets and subsets of a UDR (TS 29.510 §6.1.6.3.8).
    DataSetId {
        Subscription = "SUBSCRIPTION",
        Policy = "POLICY",
        Exposure = "EXPOSURE",
        Application = "APPLICATION",
        APfd = "A_PFD",
        AAfti = "A_AFTI",
        AIptv = "A_IPTV",
        ABdt = "A_BDT",
        ASpd = "A_SPD",
        AEasd = "A_EASD",
        AAmi = "A_AMI",
        PUe = "P_UE",
        PScd = "P_SCD",
        PBdt = "P_BDT",
        PPlmnue = "P_PLMNUE",
        PNsscd = "P_NSSCD",
        PMbscd = "P_MBSCD",
    }
}

open_enum! {
    /// NF types that can be collocated with another (TS 29.510 §6.1.6.3.21).
    CollocatedNfType {
        Upf = "UPF",
        Smf = "SMF",
        MbUpf = "MB_UPF",
        MbSmf = "MB_SMF",
    }
}

open_enum! {
    /// Names of NF services (TS 29.510 §6.1.6.3.11).
    ServiceName {
        NnrfNfm = "nnrf-nfm",
        NnrfDisc = "nnrf-disc",
        NnrfOauth2 = "nnrf-oauth2",
        NudmSdm = "nudm-sdm",
        NudmUecm = "nudm-uecm",
        NudmUeau = "nudm-ueau",
        NudmEe = "nudm-ee",
        NudmPp = "nudm-pp",
        NudmNiddau = "nudm-niddau",
        NudmMt = "nudm-mt",
        NudmSsau = "nudm-ssau",
        NudmRsds = "nudm-rsds",
        NudmUeid = "nudm-ueid",
        NamfComm = "namf-comm",
        NamfEvts = "namf-evts",
        NamfMt = "namf-mt",
        NamfLoc = "namf-loc",
        NamfMbsComm = "namf-mbs-comm",
        NamfMbsBc = "namf-mbs-bc",
        NsmfPdusession = "nsmf-pdusession",
        NsmfEventExposure = "nsmf-event-exposure",
        NsmfNidd = "nsmf-nidd",
        NausfAuth = "nausf-auth",
        NausfSorprotection = "nausf-sorprotection",
        NausfUpuprotection = "nausf-upuprotection",
        NnefPfdmanagement = "nnef-pfdmanagement",
        NnefSmcontext = "nnef-smcontext",
        NnefEventexposure = "nnef-eventexposure",
        NnefEasDeploymentInfo = "nnef-eas-deployment-info",
        ThreeGppCpParameterProvisioning = "3gpp-cp-parameter-provisioning",
        ThreeGppDeviceTriggering = "3gpp-device-triggering",
        ThreeGppBdt = "3gpp-bdt",
        ThreeGppTrafficInfluence = "3gpp-traffic-influence",
        ThreeGppChargeableParty = "3gpp-chargeable-party",
        ThreeGppAsSessionWithQos = "3gpp-as-session-with-qos",
        ThreeGppMsisdnLessMoSms = "3gpp-msisdn-less-mo-sms",
        ThreeGppServiceParameter = "3gpp-service-parameter",
        ThreeGppMonitoringEvent = "3gpp-monitoring-event",
        ThreeGppNiddConfigurationTrigger = "3gpp-nidd-configuration-trigger",
        ThreeGppNidd = "3gpp-nidd",
        ThreeGppAnalyticsexposure = "3gpp-analyticsexposure",
        ThreeGppRacsParameterProvisioning = "3gpp-racs-parameter-provisioning",
        ThreeGppEcrControl = "3gpp-ecr-control",
        ThreeGppApplyingBdtPolicy = "3gpp-applying-bdt-policy",
        ThreeGppMoLcsNotify = "3gpp-mo-lcs-notify",
        ThreeGppTimeSync = "3gpp-time-sync",
        ThreeGppAmInfluence = "3gpp-am-influence",
        ThreeGppAmPolicyauthorization = "3gpp-am-policyauthorization",
        ThreeGppAkma = "3gpp-akma",
        ThreeGppEasDeployment = "3gpp-eas-deployment",
        ThreeGppIptvconfiguration = "3gpp-iptvconfiguration",
        ThreeGppMbsTmgi = "3gpp-mbs-tmgi",
        ThreeGppMbsSession = "3gpp-mbs-session",
        ThreeGppAuthentication = "3gpp-authentication",
        ThreeGppAsti = "3gpp-asti",
        NpcfAmPolicyControl = "npcf-am-policy-control",
        NpcfSmpolicycontrol = "npcf-smpolicycontrol",
        NpcfPolicyauthorization = "npcf-policyauthorization",
        NpcfBdtpolicycontrol = "npcf-bdtpolicycontrol",
        NpcfEventexposure = "npcf-eventexposure",
        NpcfUePolicyControl = "npcf-ue-policy-control",
        NpcfAmPolicyauthorization = "npcf-am-policyauthorization",
        NpcfMbspolicycontrol = "npcf-mbspolicycontrol",
        NpcfMbspolicyauth = "npcf-mbspolicyauth",
        NsmsfSms = "nsmsf-sms",
        NnssfNsselection = "nnssf-nsselection",
        NnssfNssaiavailability = "nnssf-nssaiavailability",
        NudrDr = "nudr-dr",
        NudrGroupIdMap = "nudr-group-id-map",
        NlmfLoc = "nlmf-loc",
        N5gEirEic = "n5g-eir-eic",
        NbsfManagement = "nbsf-management",
        NchfSpendinglimitcontrol = "nchf-spendinglimitcontrol",
        NchfConvergedcharging = "nchf-convergedcharging",
        NchfOfflineonlycharging = "nchf-offlineonlycharging",
        NnwdafEventssubscription = "nnwdaf-eventssubscription",
        NnwdafAnalyticsinfo = "nnwdaf-analyticsinfo",
        NnwdafDatamanagement = "nnwdaf-datamanagement",
        NnwdafMlmodelprovision = "nnwdaf-mlmodelprovision",
        NgmlcLoc = "ngmlc-loc",
        NucmfProvisioning = "nucmf-provisioning",
        NucmfUecapabilitymanagement = "nucmf-uecapabilitymanagement",
        NhssSdm = "nhss-sdm",
        NhssUecm = "nhss-uecm",
        NhssUeau = "nhss-ueau",
        NhssEe = "nhss-ee",
        NhssImsSdm = "nhss-ims-sdm",
        NhssImsUecm = "nhss-ims-uecm",
        NhssImsUeau = "nhss-ims-ueau",
        NhssGbaSdm = "nhss-gba-sdm",
        NhssGbaUeau = "nhss-gba-ueau",
        NseppTelescopic = "nsepp-telescopic",
        NsorafSor = "nsoraf-sor",
        NspafSecuredPacket = "nspaf-secured-packet",
        NudsfDr = "nudsf-dr",
        NudsfTimer = "nudsf-timer",
        NnssaafNssaa = "nnssaaf-nssaa",
        NnssaafAiw = "nnssaaf-aiw",
        NaanfAkma = "naanf-akma",
        N5gddnmfDiscovery = "n5gddnmf-discovery",
        Nmfaf3dadm = "nmfaf-3dadm",
        Nmfaf3cadm = "nmfaf-3cadm",
        NeasdfDnscontext = "neasdf-dnscontext",
        NeasdfBaselinednspattern = "neasdf-baselinednspattern",
        NdccfDm = "ndccf-dm",
        NdccfCm = "ndccf-cm",
        NnsacfNsac = "nnsacf-nsac",
        NnsacfSliceEe = "nnsacf-slice-ee",
        NmbsmfTmgi = "nmbsmf-tmgi",
        NmbsmfMbssession = "nmbsmf-mbssession",
        NadrfDm = "nadrf-dm",
        NbspGba = "nbsp-gba",
        NtsctsfTimeSync = "ntsctsf-time-sync",
        NtsctsfQosTscai = "ntsctsf-qos-tscai",
        NtsctsfAsti = "ntsctsf-asti",
        NpkmfKeyreq = "npkmf-keyreq",
        NpkmfUserid = "npkmf-userid",
        NpkmfDiscovery = "npkmf-discovery",
        NmnpfNpstatus = "nmnpf-npstatus",
        NiwmscSmservice = "niwmsc-smservice",
        NmbsfMbsUs = "nmbsf-mbs-us",
        NmbsfMbsUdIngest = "nmbsf-mbs-ud-ingest",
        NmbstfDistsession = "nmbstf-distsession",
        NpanfProsekey = "npanf-prosekey",
        NpanfUserid = "npanf-userid",
    }
}

open_enum! {
    /// URI scheme of a service (TS 29.571 §5.2.3.6).
    UriScheme {
        Http = "http",
        Https = "https",
    }
}

open_enum! {
    /// What kind of place a locality names (TS 29.510 Release 18 §6.1.6.3.30).
    LocalityType {
        DataCenter = "DATA_CENTER",
        City = "CITY",
        County = "COUNTY",
        District = "DISTRICT",
        State = "STATE",
        Canton = "CANTON",
        Region = "REGION",
        Province = "PROVINCE",
        Prefecture = "PREFECTURE",
        Country = "COUNTRY",
    }
}
