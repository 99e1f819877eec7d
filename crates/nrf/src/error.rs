//! What can go wrong: who is at fault, the standard's cause, and whether another try is safe.
