//! Every attack in a small dose: what a test can hold without a clock.

mod quick;
