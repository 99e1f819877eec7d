//! Sessions that stand when the load begins: each gateway begins its own through the router, one after the other.

use std::io;
use std::net::SocketAddr;

use super::ocdra::Ctfs;
use super::{Asking, Options, PATIENCE, RigError, await_peers};
use crate::diameter_client::DiameterClient;
use diameter_proto::ResultCode;
use loadgen::diameter::result_of;
use workload::charging::{Kind, ctf};

/// Begins as many sessions as the options say, where the model has charging sessions, and waits until the gateways have left the
/// router.
///
/// # Errors
/// When a session does not begin.
pub(super) fn begin(
    (router, admin): (SocketAddr, SocketAddr),
    asking: &mut Asking,
    options: &Options,
    (gateways, servers): (u32, u16),
) -> Result<(), RigError> {
    let (Asking::Charging(ctfs), Some(sessions)) = (asking, options.sessions) else {
        return Ok(());
    };
    // Numbers of sessions have 32 bits.
    ctfs.standing = sessions.min(u64::from(u32::MAX / 2)) as u32;
    let gateways = gateways as usize;
    all(
        router,
        ctfs,
        (gateways, options.generators.clamp(1, gateways.max(1))),
    )
    .map_err(RigError::io("beginning the sessions that stand"))?;
    // Under load the same names connect again.
    await_peers(admin, |peers| peers < f64::from(servers) + 0.5)
}

/// Begins the sessions of all gateways, which are dealt to the threads.
fn all(router: SocketAddr, ctfs: &Ctfs, (gateways, threads): (usize, usize)) -> io::Result<()> {
    std::thread::scope(|scope| {
        let mut begun = Vec::new();
        for thread in 0..threads {
            let nodes = (thread..gateways).step_by(threads).count();
            let plan = ctfs.plan(nodes, (thread, threads));
            for own in plan.first_node..plan.first_node + nodes {
                let mine = plan.standing().filter(|session| plan.gateway(*session) == own);
                let sessions: Vec<u32> = mine.collect();
                begun.push(scope.spawn(move || each(router, ctfs, own, &sessions)));
            }
        }
        begun.into_iter().try_for_each(|thread| {
            let panicked = |_| Err(io::Error::other("a gateway has panicked"));
            thread.join().unwrap_or_else(panicked)
        })
    })
}

/// A gateway begins its sessions.
fn each(router: SocketAddr, ctfs: &Ctfs, gateway: usize, sessions: &[u32]) -> io::Result<()> {
    let mut client = DiameterClient::connect(router, ctf(gateway), None, PATIENCE)?;
    let mut request = Vec::new();
    for (session, id) in sessions.iter().copied().zip(1_u32..) {
        request.clear();
        ctfs.messages()
            .put(Kind::Initial, gateway, session, 0, &mut request);
        // Hop-by-Hop and End-to-End Identifier.
        if let Some(place) = request.get_mut(12..20) {
            let both = u64::from(id) << 32 | u64::from(id);
            place.copy_from_slice(&both.to_be_bytes());
        }
        let code = client.exchange(&request, id, &mut result_of)?;
        if code != ResultCode::SUCCESS.0 {
            return Err(io::Error::other(format!(
                "session {session} is answered with {code}"
            )));
        }
    }
    Ok(())
}
