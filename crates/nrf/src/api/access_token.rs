//! Nnrf_AccessToken (TS 29.510 §6.3).
