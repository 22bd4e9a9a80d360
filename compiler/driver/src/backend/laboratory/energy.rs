//! The energy that the processor takes, from the counters that Linux shows (`/sys/class/powercap`).

use std::path::{Path, PathBuf};

const FOLDER: &str = "/sys/class/powercap";

/// What the counters showed: microjoules of each package, and where it begins anew.
pub struct Reading(Vec<(u64, u64)>);

impl Reading {
    /// Nanojoules since an earlier reading.
    pub fn since(&self, before: &Reading) -> f64 {
        let one = |(now, before): (&(u64, u64), &(u64, u64))| match now.0.checked_sub(before.0) {
            Some(spent) => spent,
            None => now.0.saturating_add(now.1).saturating_sub(before.0),
        };
        self.0.iter().zip(&before.0).map(one).sum::<u64>() as f64 * 1e3
    }
}

/// The counters of the packages that can be read.
///
/// # Errors
/// Why there are none.
pub fn counters() -> Result<Vec<PathBuf>, String> {
    below(Path::new(FOLDER))
}

fn below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{} cannot be read: {e}", folder.display()))?;
    // Parts of a package (`intel-rapl:0:1`) are in what the package takes.
    let package = |p: &PathBuf| {
        let name = p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        name.contains("-rapl:") && name.matches(':').count() == 1
    };
    let mut found: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(package).collect();
    found.sort();
    if found.is_empty() {
        return Err(format!("{} has no counters of the processor", folder.display()));
    }
    for path in &found {
        number(&path.join("energy_uj"))?;
    }
    Ok(found)
}

fn number(path: &Path) -> Result<u64, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
    text.trim().parse().map_err(|_| format!("{} is no number", path.display()))
}

/// What the counters show now.
///
/// # Errors
/// As of [`counters`].
pub fn read() -> Result<Reading, String> {
    let one = |path: &PathBuf| {
        Ok((number(&path.join("energy_uj"))?, number(&path.join("max_energy_range_uj")).unwrap_or(u64::MAX / 2)))
    };
    Ok(Reading(counters()?.iter().map(one).collect::<Result<_, String>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_counted_and_counters_begin_anew() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        assert!(below(dir.path()).is_err_and(|e| e.contains("no counters")));
        for name in ["intel-rapl", "intel-rapl:0", "intel-rapl:0:1", "intel-rapl:1"] {
            std::fs::create_dir(dir.path().join(name))?;
        }
        assert!(below(dir.path()).is_err_and(|e| e.contains("cannot be read")));
        for name in ["intel-rapl:0", "intel-rapl:1"] {
            std::fs::write(dir.path().join(name).join("energy_uj"), "12\n")?;
        }
        assert_eq!(below(dir.path()).map(|found| found.len()), Ok(2));
        let (before, after) = (Reading(vec![(10, 100), (90, 100)]), Reading(vec![(15, 100), (5, 100)]));
        assert_eq!(after.since(&before), 20_000.0);
        Ok(())
    }
}
