//! The laboratory, where this build has it: Cargo feature `lab`, on by default.
//!
//! Without it the program has the same commands; those of the laboratory say that it is not there.

#[cfg(feature = "lab")]
pub(crate) use lab::{cli::LabArgs, sim::main as simulate, traffic};

#[cfg(not(feature = "lab"))]
pub(crate) use absent::{LabArgs, simulate, traffic};

/// Whether simulated traffic can be had.
pub(crate) const PRESENT: bool = cfg!(feature = "lab");

/// Why not.
pub(crate) const ABSENT: &str = "this build has no laboratory (Cargo feature `lab`)";

#[cfg(not(feature = "lab"))]
mod absent {
    use std::process::ExitCode;

    /// Arguments of a command that this build does not have.
    #[derive(Debug, clap::Args)]
    #[command(disable_help_flag = true)]
    pub(crate) struct LabArgs {
        #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    }

    impl LabArgs {
        /// Reports that the laboratory is absent.
        pub(crate) fn run(&self) -> ExitCode {
            simulate(&self.arguments)
        }
    }

    /// Reports that the laboratory is absent.
    pub(crate) fn simulate(_: &[String]) -> ExitCode {
        crate::complain(&super::ABSENT);
        ExitCode::from(crate::failure::USAGE)
    }

    /// Simulated traffic that never starts.
    pub(crate) mod traffic {
        use std::io;
        use std::net::SocketAddr;

        use sbi::tls::TlsFiles;

        /// Traffic that cannot run.
        pub(crate) enum Running {}

        impl Running {
            /// Requests answered rightly and wrongly.
            pub(crate) fn counts(&self) -> (u64, u64) {
                match *self {}
            }
        }

        /// As the laboratory's: traffic ends when it is dropped.
        impl Drop for Running {
            fn drop(&mut self) {}
        }

        /// Traffic for a core.
        pub(crate) struct Traffic {
            /// The NRF.
            pub(crate) nrf: SocketAddr,
            /// Where calls go.
            pub(crate) calls: Option<Calls>,
            /// The Diameter router.
            pub(crate) router: Option<SocketAddr>,
            /// The signal transfer point.
            pub(crate) stp: Option<SocketAddr>,
            /// Credentials.
            pub(crate) secure: Option<Secure>,
        }

        impl Traffic {
            /// Traffic for this NRF.
            pub(crate) fn new(nrf: SocketAddr) -> Self {
                Self {
                    nrf,
                    calls: None,
                    router: None,
                    stp: None,
                    secure: None,
                }
            }
        }

        /// Where calls go.
        pub(crate) struct Calls {
            /// The SCP.
            pub(crate) scp: SocketAddr,
            /// The BSF.
            pub(crate) bsf: SocketAddr,
            /// The Diameter router.
            pub(crate) router: SocketAddr,
            /// Realm of the PCF.
            pub(crate) realm: String,
        }

        /// Credentials of simulated functions.
        pub(crate) struct Secure {
            /// Of each function.
            pub(crate) functions: Vec<TlsFiles>,
            /// Of their listeners.
            pub(crate) listener: TlsFiles,
            /// Of each Diameter node.
            pub(crate) nodes: Vec<TlsFiles>,
        }

        /// The simulated functions: none.
        pub(crate) fn instances() -> Vec<(String, String)> {
            Vec::new()
        }

        /// The simulated Diameter nodes: none.
        pub(crate) fn nodes() -> Vec<String> {
            Vec::new()
        }

        /// The settings of an STP with simulated nodes: none.
        pub(crate) fn transfer_point() -> serde_json::Value {
            serde_json::Value::Null
        }

        /// Refuses.
        pub(crate) fn start(traffic: Traffic) -> io::Result<Running> {
            let Traffic {
                nrf,
                calls,
                router,
                stp,
                secure,
            } = traffic;
            let credentials = secure.map(|secure| (secure.functions, secure.listener, secure.nodes));
            let calls = calls.map(|calls| (calls.scp, calls.bsf, calls.router, calls.realm));
            drop((nrf, calls, router, stp, credentials));
            Err(io::Error::other(super::super::ABSENT))
        }
    }
}
