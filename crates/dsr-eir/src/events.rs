//! What can happen in an equipment identity register.

telemetry::events! {
    "dsr";
    /// The equipment identity register found equipment on the white list.
    White = "equipment_white";
    /// The equipment identity register found equipment on the grey list.
    Grey = "equipment_grey";
    /// The equipment identity register found equipment on the black list.
    Black = "equipment_black";
    /// The equipment identity register does not know equipment.
    Unknown = "equipment_unknown";
    /// The equipment identity register refused a request without a valid IMEI.
    Invalid = "equipment_invalid";
}
