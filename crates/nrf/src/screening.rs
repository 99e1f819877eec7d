//! Screening: which NFs may register, by FQDN, address, PLMN and type.
