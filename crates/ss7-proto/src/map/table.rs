//! Where each operation has its fields (TS 29.002 §17.6, §17.7).

/// A field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    Imsi,
    Imei,
    Msisdn,
    Vlr,
    Msc,
    Sgsn,
    ServiceCentre,
    Scf,
    SmRpDa,
    SmRpOa,
    SmRpUi,
    /// Fields within this one, by tag.
    Inner(&'static [(u32, Field)]),
}

/// Where a field stands in the argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// The element with this tag.
    Tag(u32),
    /// The octet string with this number, from 1.
    OctetString(usize),
    /// The element at this position, from 0.
    Position(usize),
}

/// The fields of an operation.
pub(super) struct Row {
    /// What an argument is that is an octet string itself.
    pub(super) alone: Option<Field>,
    pub(super) fields: &'static [(Place, Field)],
}

const fn row(fields: &'static [(Place, Field)]) -> Row {
    Row { alone: None, fields }
}

const fn alone(field: Field, fields: &'static [(Place, Field)]) -> Row {
    Row {
        alone: Some(field),
        fields,
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $code:literal $text:literal, $row:expr;)*) => {
        #[allow(missing_docs, reason = "each name is the standard's")]
        pub mod operation {
            $(pub const $name: i32 = $code;)*
        }

        /// The standard's name of an operation.
        #[must_use]
        pub const fn operation_name(code: i32) -> Option<&'static str> {
            match code { $($code => Some($text),)* _ => None }
        }

        pub(super) const OPERATIONS: &[(i32, Row)] = &[$(($code, $row)),*];
    };
}

use Field::{Imei, Imsi, Inner, Msc, Msisdn, Scf, ServiceCentre, Sgsn, SmRpDa, SmRpOa, SmRpUi, Vlr};
use Place::{OctetString, Position, Tag};

/// IMSI and LMSI together.
const IMSI_WITH_LMSI: Field = Inner(&[(0x04, Imsi)]);

const SHORT_MESSAGE: Row = row(&[
    (Position(0), SmRpDa),
    (Position(1), SmRpOa),
    (OctetString(1), SmRpUi),
]);

operations! {
    UPDATE_LOCATION = 2 "updateLocation", row(&[(OctetString(1), Imsi), (Tag(0x81), Msc), (OctetString(2), Vlr)]);
    CANCEL_LOCATION = 3 "cancelLocation", alone(Imsi, &[(OctetString(1), Imsi), (Tag(0x30), IMSI_WITH_LMSI)]);
    PROVIDE_ROAMING_NUMBER = 4 "provideRoamingNumber", row(&[(Tag(0x80), Imsi), (Tag(0x81), Msc), (Tag(0x82), Msisdn)]);
    INSERT_SUBSCRIBER_DATA = 7 "insertSubscriberData", row(&[(Tag(0x80), Imsi), (Tag(0x81), Msisdn)]);
    DELETE_SUBSCRIBER_DATA = 8 "deleteSubscriberData", row(&[(Tag(0x80), Imsi)]);
    SEND_ROUTING_INFO = 22 "sendRoutingInfo", row(&[(Tag(0x80), Msisdn)]);
    UPDATE_GPRS_LOCATION = 23 "updateGprsLocation", row(&[(OctetString(1), Imsi), (OctetString(2), Sgsn)]);
    SEND_ROUTING_INFO_FOR_GPRS = 24 "sendRoutingInfoForGprs", row(&[(Tag(0x80), Imsi)]);
    CHECK_IMEI = 43 "checkIMEI", alone(Imei, &[(OctetString(1), Imei)]);
    MT_FORWARD_SM = 44 "mt-ForwardSM", SHORT_MESSAGE;
    SEND_ROUTING_INFO_FOR_SM = 45 "sendRoutingInfoForSM", row(&[(Tag(0x80), Msisdn), (Tag(0x82), ServiceCentre)]);
    MO_FORWARD_SM = 46 "mo-ForwardSM", SHORT_MESSAGE;
    REPORT_SM_DELIVERY_STATUS = 47 "reportSM-DeliveryStatus", row(&[(OctetString(1), Msisdn), (OctetString(2), ServiceCentre)]);
    SEND_AUTHENTICATION_INFO = 56 "sendAuthenticationInfo", alone(Imsi, &[(Tag(0x80), Imsi)]);
    RESTORE_DATA = 57 "restoreData", row(&[(OctetString(1), Imsi)]);
    PROCESS_UNSTRUCTURED_SS_REQUEST = 59 "processUnstructuredSS-Request", row(&[(Tag(0x80), Msisdn)]);
    ALERT_SERVICE_CENTRE = 64 "alertServiceCentre", row(&[(OctetString(1), Msisdn), (OctetString(2), ServiceCentre)]);
    READY_FOR_SM = 66 "readyForSM", row(&[(Tag(0x80), Imsi)]);
    PURGE_MS = 67 "purgeMS", row(&[(OctetString(1), Imsi), (OctetString(2), Vlr), (Tag(0x80), Vlr), (Tag(0x81), Sgsn)]);
    PROVIDE_SUBSCRIBER_INFO = 70 "provideSubscriberInfo", row(&[(Tag(0x80), Imsi)]);
    ANY_TIME_INTERROGATION = 71 "anyTimeInterrogation", row(&[(Tag(0xa0), Inner(&[(0x80, Imsi), (0x81, Msisdn)])), (Tag(0x83), Scf)]);
}
