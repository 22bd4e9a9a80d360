//! Which exchanges go together: small ones of one kind that do not need each other, one soon after the other.
//!
//! An exchange costs as much as it takes to meet, however few bytes it moves, and one for each bias and each
//! parameter of a small layer takes longer than what is computed for it. What is decided here is the same on all devices: it
//! looks at whole tensors, and at what a device would need if it had a part in everything.

use std::sync::Arc;

/// Bytes of all tensors, whole, that one batch moves.
const BYTES_MAX: u64 = 64 << 10;

/// Bytes that a device computes at most between the first exchange of a batch and the last one. What needs the first one
/// waits as long, and what it is computed from stays.
const WORK_MAX: u64 = 1 << 20;

/// Exchanges that others may still join.
struct Open {
    batch: u32,
    name: Arc<str>,
    bytes: u64,
    /// What was computed before its first exchange.
    since: u64,
}

/// Gives exchanges their batches, in the order of their tags.
#[derive(Default)]
pub struct Batches {
    open: Vec<Open>,
    /// Bytes that a device computed so far.
    work: u64,
}

impl Batches {
    /// Some bytes were computed.
    pub fn computed(&mut self, bytes: u64) {
        self.work = self.work.saturating_add(bytes);
    }

    /// Nobody joins the batches so far any more: a loop comes, which may have exchanges of its own, or it is over.
    pub fn close(&mut self) {
        self.open.clear();
    }

    /// The batch of exchange `tag`, which moves so many bytes and needs what batch `after` brings, and the ones before it
    /// (0: none).
    pub fn of(&mut self, tag: u32, name: &Arc<str>, bytes: u64, after: u32) -> u32 {
        let work = self.work;
        self.open.retain(|o| work - o.since <= WORK_MAX);
        let fits = |o: &&mut Open| o.batch > after && o.name == *name && o.bytes.saturating_add(bytes) <= BYTES_MAX;
        if let Some(open) = self.open.iter_mut().find(fits) {
            open.bytes += bytes;
            return open.batch;
        }
        self.open.push(Open { batch: tag, name: name.clone(), bytes, since: work });
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ones_of_a_kind_go_together_unless_they_need_each_other() {
        let (gather, turn): (Arc<str>, Arc<str>) = ("all_gather dp".into(), "all_to_all dp".into());
        let mut b = Batches::default();
        assert_eq!(b.of(1, &gather, 100, 0), 1);
        assert_eq!(b.of(2, &turn, 100, 1), 2);
        assert_eq!(b.of(3, &gather, 100, 0), 1);
        assert_eq!(b.of(4, &turn, 100, 1), 2);
        // It needs what the second batch brings, and one that moves more has no room.
        assert_eq!(b.of(5, &gather, 100, 2), 5);
        assert_eq!(b.of(6, &gather, BYTES_MAX, 0), 6);
        b.computed(WORK_MAX + 1);
        assert_eq!(b.of(7, &gather, 100, 0), 7);
        b.close();
        assert_eq!(b.of(8, &gather, 100, 0), 8);
    }
}
