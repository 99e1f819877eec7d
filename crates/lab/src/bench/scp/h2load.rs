//! The client.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::result::Phase;
use super::{Settings, Subject};
use crate::measure;
use crate::run::{Place, RigError, RunError};

/// `h2load`, ready to run again and again.
pub(super) struct Load {
    body: PathBuf,
    log: PathBuf,
    cpus: Vec<usize>,
    connections: u32,
    streams: u32,
}

/// The path that is asked for.
pub(super) const PATH: &str = "/nudm-sdm/v2/imsi-001010000000001/sdm-subscriptions";

impl Load {
    pub(super) fn new(place: &Place, settings: &Settings) -> Result<Self, RunError> {
        let body = place.folder.join("request.json");
        std::fs::write(&body, super::body()).map_err(RigError::io(format!("writing {}", body.display())))?;
        Ok(Self {
            body,
            log: place.folder.join("h2load.log"),
            cpus: place.lab_cpus.clone(),
            connections: settings.connections,
            streams: settings.streams,
        })
    }

    /// Loads a subject for a while, as fast as it goes.
    pub(super) fn run(&mut self, subject: &Subject, duration: Duration) -> Result<Phase, RunError> {
        // A log of before would be added to.
        let _ = std::fs::remove_file(&self.log);
        let mut command = Command::new("h2load");
        command
            .arg(format!("-D{}", duration.as_secs().max(1)))
            .arg(format!("-c{}", self.connections))
            .arg(format!("-m{}", self.streams))
            .arg("-d")
            .arg(&self.body)
            .arg(format!("--log-file={}", self.log.display()))
            .args([
                "-H",
                "content-type: application/json",
                "-H",
                "user-agent: AMF-bench",
            ]);
        for (name, value) in &subject.headers {
            command.arg("-H").arg(format!("{name}: {value}"));
        }
        command.arg(format!("http://{}{PATH}", subject.address));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let cpus = self.cpus.clone();
        // Who is started runs on the cores of the thread that starts it.
        let output = std::thread::scope(|scope| {
            scope
                .spawn(move || {
                    if !cpus.is_empty() {
                        measure::pin_current_thread(&cpus)?;
                    }
                    command.output()
                })
                .join()
        });
        let output = output
            .unwrap_or_else(|_| Err(std::io::Error::other("the thread that ran it panicked")))
            .map_err(RigError::io("running h2load"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        read(&text, &log).ok_or_else(|| {
            RigError::Settings(format!(
                "h2load said nothing of use about {}: {text}{}",
                subject.name,
                String::from_utf8_lossy(&output.stderr)
            ))
            .into()
        })
    }
}

/// What it says, and its log: start, status and microseconds of each request.
fn read(text: &str, log: &str) -> Option<Phase> {
    let requests = text.lines().find(|line| line.starts_with("requests:"))?;
    let number = |what: &str| -> Option<u64> {
        let before = requests.split(what).next()?.trim_end();
        before.rsplit([' ', ',']).next()?.parse().ok()
    };
    let succeeded = number(" succeeded")?;
    let failed = number(" failed")? + number(" errored")? + number(" timeout")?;
    let mut phase = Phase {
        succeeded,
        failed,
        ..Phase::default()
    };
    for line in log.lines() {
        let mut fields = line.split('\t').skip(1);
        if let (Some(_), Some(Ok(micros))) = (fields.next(), fields.next().map(str::parse::<u64>)) {
            // A value beyond an hour is no latency.
            let _ = phase.latency.record(micros.clamp(1, 3_600_000_000));
        }
    }
    Some(phase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_words_are_understood() {
        let text = "finished in 6.00s, 45751.67 req/s, 210.61MB/s\n\
                    requests: 274510 total, 274766 started, 274510 done, 274500 succeeded, 7 failed, 2 errored, 1 timeout\n";
        let phase = read(text, "1\t201\t900\n2\t201\t1100\n3\t201\t100000\n").unwrap();
        assert_eq!((phase.succeeded, phase.failed), (274_500, 10));
        assert_eq!(phase.latency.len(), 3);
        assert!((1_090..=1_110).contains(&phase.latency.value_at_quantile(0.5)));
        assert!(read("h2load: error", "").is_none());
    }
}
