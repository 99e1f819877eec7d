//! Nnrf_NFDiscovery (TS 29.510 §6.2).
