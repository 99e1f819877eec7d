//! Nnrf_NFManagement, NF instances (TS 29.510 §6.1.3.2, §6.1.3.3).
