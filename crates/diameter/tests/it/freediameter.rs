//! freediameter
