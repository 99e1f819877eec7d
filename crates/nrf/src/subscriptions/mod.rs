//! Who wants to be told of which changes (TS 29.510 §5.2.2.5).
