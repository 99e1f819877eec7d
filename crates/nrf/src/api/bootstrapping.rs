//! Nnrf_Bootstrapping (TS 29.510 §6.4).
