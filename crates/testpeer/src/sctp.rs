//! A kernel that has SCTP, for tests on machines whose own kernel has none.
//!
//! User-mode Linux (Debian's `user-mode-linux`) is a Linux kernel that runs as an ordinary process of an ordinary user. It sees
//! the machine's files, and its module `sctp` is the SCTP of every Linux. A test of SCTP begins with
//!
//! ```no_run
//! if !testpeer::sctp::is_here("exchange::over_sctp") {
//!     return;
//! }
//! ```
//!
//! and goes on where the kernel has SCTP. Elsewhere [`is_here`] boots such a kernel, in which the test binary runs this one
//! test.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// Protocol number (RFC 9260).
const SCTP: i32 = 132;
/// Set within the kernel that was booted.
const BOOTED: &str = "SIGNALBOX_SCTP_KERNEL";
/// What the booted kernel's first program prints.
const UP: &str = "signalbox: this kernel is up";
const PASSED: &str = "signalbox: the test has passed";
/// How long the boot and the test may take; 4 s on an idle machine.
const DEADLINE: Duration = Duration::from_secs(240);

/// Whether this kernel has SCTP. If not, the test named so (as `--exact` has it) runs in a kernel that has it, before this
/// returns; where there is none, it is skipped.
///
/// # Panics
/// When the test fails there.
#[must_use]
pub fn is_here(test: &str) -> bool {
    if Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::from(SCTP))).is_ok() {
        return true;
    }
    assert!(!is_booted(), "the booted kernel has no SCTP");
    if which("linux.uml").is_none() || which("insmod").is_none() {
        // A matter of the kernel, as far as the machine is concerned: not a failure.
        crate::skip::unavailable(
            "neither this kernel has SCTP, nor is there another (user-mode-linux and kmod)",
        );
        return false;
    }
    let output = boot(test);
    if !output.contains(UP) {
        crate::skip::unavailable(&format!("user-mode-linux does not run here:\n{output}"));
        return false;
    }
    assert!(output.contains(PASSED), "in a kernel with SCTP:\n{output}");
    false
}

/// Whether this kernel was booted for the test, which may do with its network what it wants.
#[must_use]
pub fn is_booted() -> bool {
    std::env::var_os(BOOTED).is_some()
}

fn which(program: &str) -> Option<()> {
    ["/usr/bin", "/usr/sbin", "/sbin", "/bin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).exists())
        .then_some(())
}

/// What the kernel and the test have printed.
fn boot(test: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let init = folder.path().join("init.sh");
    let binary = std::env::current_exe().expect("this program has a path");
    let here = std::env::current_dir().expect("this program runs in a folder");
    let script = script(&binary.display().to_string(), &here.display().to_string(), test);
    std::fs::write(&init, script).expect("the script can be written");
    let mut kernel = Command::new("linux.uml");
    kernel
        .args([
            "mem=512M",
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "rw",
            "quiet",
        ])
        .args(["con=null", "con0=fd:0,fd:1"])
        .arg(format!("uml_dir={}/", folder.path().display()))
        .arg("init=/bin/sh")
        // What follows is for the first program.
        .args(["--".to_owned(), init.display().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    let mut kernel = kernel.spawn().expect("linux.uml can be started");
    let output = read_within(&mut kernel, DEADLINE);
    // Also where it has ended: its helpers are of its group.
    let group = format!("-{}", kernel.id());
    let _ = Command::new("kill")
        .args(["-9", "--", &group])
        .stderr(Stdio::null())
        .status();
    let _ = kernel.wait();
    output
}

fn read_within(kernel: &mut Child, deadline: Duration) -> String {
    let mut stdout = kernel.stdout.take().expect("it is piped");
    let (sender, receiver) = sync_channel(16);
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = stdout.read(&mut chunk) {
            if sender.send(chunk[..read].to_vec()).is_err() {
                break;
            }
        }
    });
    let (mut output, until) = (Vec::new(), std::time::Instant::now() + deadline);
    loop {
        let left = until.saturating_duration_since(std::time::Instant::now());
        match receiver.recv_timeout(left) {
            Ok(chunk) => output.extend(chunk),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                output.extend(format!("\nno end within {deadline:?}").bytes());
                break;
            }
        }
    }
    String::from_utf8_lossy(&output).into_owned()
}

/// The first program of the booted kernel.
fn script(binary: &str, here: &str, test: &str) -> String {
    // Without `md5` among the kernel's algorithms an SCTP socket cannot listen: cookies are signed with it.
    format!(
        r#"export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/mnt
export {BOOTED}=1 {require}=1 RUST_BACKTRACE=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmpfs /mnt
mount -t tmpfs tmpfs /run
ip link set lo up
modules=/usr/lib/uml/modules/$(uname -r)
needed=$(sed -n 's|^kernel/net/sctp/sctp.ko: *||p' $modules/modules.dep)
for module in $(printf '%s\n' $needed | tac) kernel/crypto/hmac.ko kernel/crypto/md5.ko kernel/net/sctp/sctp.ko; do
    [ ! -e $modules/$module ] || insmod $modules/$module
done
echo '{UP}'
cd '{here}'
'{binary}' --exact '{test}' --nocapture --test-threads 1 2>&1 | tee /mnt/output
grep -q '^test result: ok. 1 passed' /mnt/output && echo '{PASSED}'
echo o > /proc/sysrq-trigger
sleep 60
"#,
        require = crate::skip::REQUIRE,
    )
}
