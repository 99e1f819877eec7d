//! A kernel that has SCTP, for tests on machines whose own kernel has none.
//!
//! QEMU runs Debian's kernel as an ordinary process of an ordinary user, by emulation. Its clock counts instructions and jumps
//! over idle time: a test there does not measure the machine, and its waiting costs nothing. The kernel
//! sees the machine's files, and its module `sctp` is the SCTP of every Linux. `scripts/test-kernel.sh` fetches it into
//! `sctp-kernel` of the target folder. (User-mode Linux is smaller and starts faster; Debian's 6.1 does not run where the
//! processor has AVX-512.) A test of SCTP begins with
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
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// Protocol number (RFC 9260).
const SCTP: i32 = 132;
const EMULATOR: &str = "/usr/bin/qemu-system-x86_64";
/// Set within the kernel that was booted.
const BOOTED: &str = "SIGNALBOX_SCTP_KERNEL";
/// What the booted kernel's first program prints.
const UP: &str = "signalbox: this kernel is up";
const PASSED: &str = "signalbox: the test has passed";
/// How long the boot and the test may take; 15 s on an idle machine, a minute beside 35 compilers.
const DEADLINE: Duration = Duration::from_mins(10);

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
    let Some(kernel) = kernel().filter(|_| Path::new(EMULATOR).exists()) else {
        // A matter of the kernel, as far as the machine is concerned: not a failure.
        crate::skip::unavailable(
            "neither this kernel has SCTP, nor is there another (qemu-system-x86, scripts/test-kernel.sh target/sctp-kernel)",
        );
        return false;
    };
    let output = boot(&kernel, test);
    if !output.contains(UP) {
        crate::skip::unavailable(&format!("the kernel with SCTP does not start here:\n{output}"));
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

/// The folder with `kernel` and `initrd`, in the target folder that this program was built in.
fn kernel() -> Option<PathBuf> {
    let binary = std::env::current_exe().expect("this program has a path");
    binary
        .ancestors()
        .map(|folder| folder.join("sctp-kernel"))
        .find(|folder| folder.join("initrd").exists())
}

/// What the kernel and the test have printed.
fn boot(kernel: &Path, test: &str) -> String {
    // Not below `/mnt` and `/run`, which are others there.
    let folder = tempfile::tempdir().expect("a folder can be made");
    let init = folder.path().join("init.sh");
    let binary = stripped(folder.path());
    let here = std::env::current_dir().expect("this program runs in a folder");
    let script = script(&binary.display().to_string(), &here.display().to_string(), test);
    std::fs::write(&init, script).expect("the script can be written");
    let mut machine = Command::new(EMULATOR);
    machine
        .args([
            "-accel",
            "tcg",
            "-icount",
            "shift=3,sleep=off",
            "-rtc",
            "clock=vm",
            "-cpu",
            "max",
            "-m",
            "768",
        ])
        .args([
            "-nodefaults",
            "-no-user-config",
            "-no-reboot",
            "-display",
            "none",
            "-serial",
            "stdio",
        ])
        .args(["-kernel".as_ref(), kernel.join("kernel").as_os_str()])
        .args(["-initrd".as_ref(), kernel.join("initrd").as_os_str()])
        .arg("-append")
        .arg(format!("console=ttyS0 quiet panic=-1 script={}", init.display()))
        .args([
            "-fsdev",
            "local,id=files,path=/,security_model=none,readonly=on,multidevs=remap",
        ])
        .args(["-device", "virtio-9p-pci,fsdev=files,mount_tag=machine"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut machine = machine.spawn().expect("the emulator can be started");
    let output = read_within(&mut machine, DEADLINE);
    let _ = machine.kill();
    let _ = machine.wait();
    output
}

/// This program without what debuggers read, a tenth of it; where that cannot be, the program itself.
fn stripped(folder: &Path) -> PathBuf {
    let binary = std::env::current_exe().expect("this program has a path");
    let copy = folder.join("test");
    let mut strip = Command::new("strip");
    let made = strip.arg("-o").arg(&copy).arg(&binary).status();
    if made.is_ok_and(|status| status.success()) {
        copy
    } else {
        binary
    }
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
    format!(
        r#"export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/mnt
export {BOOTED}=1 {require}=1 RUST_BACKTRACE=1
ip link set lo up
echo '{UP}'
# From memory: while it waited for the machine's disk, its clock would jump over what seems to be idle time.
cp '{binary}' /mnt/test
cd '{here}'
/mnt/test --exact '{test}' --nocapture --test-threads 1 2>&1 | tee /mnt/output
grep -q '^test result: ok. 1 passed' /mnt/output && echo '{PASSED}'
"#,
        require = crate::skip::REQUIRE,
    )
}
