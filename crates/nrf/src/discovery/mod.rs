//! Discovery (TS 29.510 §5.3.2, §6.2): which NFs fit a question, in which order, and the answer as bytes.
