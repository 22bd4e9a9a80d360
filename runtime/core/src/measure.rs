//! A function that a program profiles: it runs some times, of which the last ones are measured.

use crate::profile::{self, Kernels, Profile, Recording};
use std::time::{Duration, Instant};

/// A function between the first of its runs and the last one.
#[must_use]
pub struct Measuring {
    /// Runs that are left before it is measured.
    warmup: i64,
    /// When the run that goes on began.
    began: Instant,
    times: Vec<Duration>,
    recording: Option<Recording>,
    /// What runs is compiled.
    _kernels: Kernels,
}

/// What came of it.
#[derive(Default)]
pub struct Measured {
    /// Of each run.
    pub times: Vec<Duration>,
    /// Of all measured runs together.
    pub profile: Profile,
}

impl Measuring {
    /// The first run begins.
    pub fn begin(warmup: i64) -> Measuring {
        let mut measuring =
            Measuring { warmup, began: Instant::now(), times: vec![], recording: None, _kernels: profile::kernels() };
        measuring.next();
        measuring
    }

    /// A run ended, and the next one begins if there is one.
    pub fn turn(&mut self) {
        match self.recording {
            Some(_) => self.times.push(self.began.elapsed()),
            None => self.warmup -= 1,
        }
        self.next();
    }

    fn next(&mut self) {
        if self.warmup <= 0 && self.recording.is_none() {
            self.recording = Some(profile::record());
        }
        self.began = Instant::now();
    }

    /// The last run has ended.
    pub fn end(self) -> Measured {
        let profile = self.recording.map(Recording::end).unwrap_or_default();
        Measured { times: self.times, profile }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_before_are_not_measured() {
        let mut measuring = Measuring::begin(2);
        for _ in 0..5 {
            drop(profile::stage("a run"));
            measuring.turn();
        }
        let Measured { times, profile } = measuring.end();
        let runs = |name: &str| profile.rows.iter().find(|r| r.name == name).map(|r| r.times.len());
        assert_eq!((times.len(), runs("a run")), (3, Some(3)));
    }
}
