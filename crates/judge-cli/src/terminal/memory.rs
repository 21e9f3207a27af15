//! The memory of this process and of its machine.

use std::fs::read_to_string;

use serde::Serialize;

/// The most memory that this process has had, in bytes; `None` where the system does not say it in a file.
#[must_use]
pub fn peak_memory() -> Option<u64> {
    kilobytes("/proc/self/status", "VmHWM:")
}

/// The memory of the machine, in bytes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Memory {
    /// What there is.
    total: u64,
    /// What a process could take now.
    available: u64,
    /// What the process may take, if the system sets a limit (a container's).
    limit: Option<u64>,
}

impl Memory {
    /// `None` where the system does not say it in a file.
    #[must_use]
    pub fn of_machine() -> Option<Self> {
        let of = |name| kilobytes("/proc/meminfo", name);
        let group = || {
            let groups = read_to_string("/proc/self/cgroup").ok()?;
            let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
            read_to_string(format!("/sys/fs/cgroup{path}/memory.max")).ok()?.trim().parse().ok()
        };
        Some(Self { total: of("MemTotal:")?, available: of("MemAvailable:")?, limit: group() })
    }
}

impl std::fmt::Display for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let gb = |bytes: u64| bytes as f64 / 1e9;
        write!(f, "{:.1} GB, of which {:.1} GB are free", gb(self.total), gb(self.available))?;
        self.limit.map_or(Ok(()), |limit| write!(f, "; this process may take {:.1} GB", gb(limit)))
    }
}

/// A number of kilobytes in a file of the system, in bytes.
fn kilobytes(file: &str, name: &str) -> Option<u64> {
    let text = read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kb| kb * 1024)
}
