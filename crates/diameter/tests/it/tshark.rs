//! tshark
