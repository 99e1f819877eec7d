//! Nnrf_NFManagement, subscriptions (TS 29.510 §6.1.3.4, §6.1.3.5).
