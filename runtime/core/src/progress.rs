//! How far a loop is, as a program says it turn by turn (`sys.progress`).

use std::time::{Duration, Instant};

/// Between two drawings: a loop of many short turns is not slowed down, and nobody reads faster.
const PAUSE: Duration = Duration::from_millis(100);

/// What is shown of a loop.
#[derive(Clone, PartialEq, Debug)]
pub struct Progress {
    /// Tells loops of a program apart.
    pub number: u64,
    /// Whether this is the first that is shown of it.
    pub begins: bool,
    pub current: i64,
    pub total: i64,
    pub text: String,
    /// Since the loop said something first.
    pub elapsed: Duration,
    /// What is left at the speed so far; `None` until there is one.
    pub left: Option<Duration>,
}

impl Progress {
    /// Whether this is the last that is shown of it.
    pub fn ends(&self) -> bool {
        self.current >= self.total
    }

    /// The share that is done.
    pub fn share(&self) -> f64 {
        self.current as f64 / self.total as f64
    }

    /// The time that it took, or what is left, in words.
    pub fn time(&self) -> String {
        match self.left {
            _ if self.ends() => clock(self.elapsed),
            Some(left) => format!("{} left", clock(left)),
            None => String::new(),
        }
    }
}

/// Hours, minutes and seconds.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// The loop that a program is in.
#[derive(Clone, Copy, Debug)]
struct Loop {
    number: u64,
    total: i64,
    first: i64,
    last: i64,
    began: Instant,
    shown: Option<Instant>,
}

/// The loops of a program, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loops {
    now: Option<Loop>,
    count: u64,
}

impl Loops {
    /// What there is to show of a turn at a time; `None` soon after something was shown. Another total, or a turn before the last
    /// one, begins another loop.
    pub fn turn(&mut self, current: i64, total: i64, text: &str, at: Instant) -> Option<Progress> {
        if total <= 0 {
            return None;
        }
        let current = current.clamp(0, total);
        let goes_on = self.now.filter(|l| l.total == total && l.last <= current && l.last < total);
        let mut now = goes_on.unwrap_or_else(|| {
            self.count += 1;
            Loop { number: self.count, total, first: current, last: current, began: at, shown: None }
        });
        now.last = current;
        let is_due = current == total || now.shown.is_none_or(|shown| at.saturating_duration_since(shown) >= PAUSE);
        let elapsed = at.saturating_duration_since(now.began);
        let (done, left) = ((current - now.first) as f64, (total - current) as f64);
        // Less than that says nothing of the speed.
        let left = (done > 0.0 && elapsed >= PAUSE).then(|| elapsed.as_secs_f64() / done * left);
        let progress = Progress {
            number: now.number,
            begins: now.shown.is_none(),
            current,
            total,
            text: text.to_owned(),
            elapsed,
            left: left.and_then(|s| Duration::try_from_secs_f64(s).ok()),
        };
        if is_due {
            now.shown = Some(at);
        }
        self.now = Some(now);
        is_due.then_some(progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_shown_at_times() {
        let (mut loops, begin) = (Loops::default(), Instant::now());
        let mut turn = |current, total, ms| loops.turn(current, total, "", begin + Duration::from_millis(ms));
        let first = turn(1, 5, 0).expect("the first is shown");
        assert!(first.begins && first.left.is_none() && !first.ends());
        assert_eq!(turn(2, 5, 50), None);
        let third = turn(3, 5, 2000).expect("a late one is shown");
        assert_eq!((third.begins, third.number, third.time().as_str()), (false, 1, "0:02 left"));
        let last = turn(7, 5, 2001).expect("the last is shown");
        assert_eq!((last.current, last.ends(), last.time().as_str()), (5, true, "0:02"));
        // Another loop, and another one by its total.
        assert_eq!(turn(1, 5, 2002).map(|p| (p.number, p.begins)), Some((2, true)));
        assert_eq!(turn(2, 9, 2003).map(|p| p.number), Some(3));
        assert_eq!(turn(1, 9, 2004).map(|p| p.number), Some(4));
        assert_eq!(turn(1, 0, 9000), None);
    }

    #[test]
    fn times_are_words() {
        assert_eq!(clock(Duration::from_secs(61)), "1:01");
        assert_eq!(clock(Duration::from_secs(36_000)), "10:00:00");
    }
}
