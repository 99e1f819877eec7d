//! What strangers do to functions, as programs: every attack that we know of, against a real process.
//!
//! An [`Attack`] names the functions under attack and their settings ([`Stage`]), the hostile script, what an
//! honest client asks meanwhile, and the bars. [`run::run`] starts the processes, drives script and client side by
//! side, measures memory, log and processor, and judges. `make attack` runs all of them with large doses and timed
//! bars; the test of this crate runs all of them with small doses and bars that no busy machine can miss: the process
//! lives, the honest client is served, memory and log stay bounded, and the state is what it was.

pub mod answer;
pub mod attack;
pub mod attacks;
pub mod dose;
pub mod epc;
pub mod field;
pub mod honest;
pub mod measure;
pub mod report;
pub mod run;
pub mod stage;

pub use attack::{Attack, Bars};
pub use dose::Dose;
pub use field::Field;
pub use stage::Stage;
