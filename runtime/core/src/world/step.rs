//! What processes tell each other at a step, and what follows from it.

/// What a process is about to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum What {
    Test,
    Start,
    Call,
    Called,
    Whole,
    Ask,
    Write,
    Rows,
    End,
}

impl What {
    const ALL: [What; 9] =
        [What::Test, What::Start, What::Call, What::Called, What::Whole, What::Ask, What::Write, What::Rows, What::End];

    /// In words, of a process.
    pub fn text(self) -> &'static str {
        match self {
            What::Test => "tries the connection",
            What::Start => "starts",
            What::Call => "calls a function on a mesh",
            What::Called => "has called a function on a mesh",
            What::Whole => "looks at a tensor that lies on a mesh",
            What::Ask => "asks for the time, the environment or a file",
            What::Write => "writes a file",
            What::Rows => "tells what it measured",
            What::End => "is at the program's end",
        }
    }
}

/// What a process tells at a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    pub what: What,
    pub failed: bool,
    /// Whether it has its word for all ([`super::World::when_all`]).
    pub ready: bool,
    /// The number of the step.
    pub step: u32,
    /// The number of the span where the program is.
    pub place: u32,
    /// Of all that has to be the same.
    pub hash: u64,
    /// What may differ.
    pub value: u64,
}

impl Record {
    pub const BYTES: usize = 32;

    pub fn bytes(&self) -> Vec<u8> {
        let words = [self.what as u32, u32::from(self.failed) | u32::from(self.ready) << 1, self.step, self.place];
        let words = words.iter().flat_map(|w| w.to_le_bytes());
        words.chain(self.hash.to_le_bytes()).chain(self.value.to_le_bytes()).collect()
    }

    pub fn read(bytes: &[u8]) -> Record {
        let word = |at: usize| bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b));
        let long = |at: usize| bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b));
        let what = What::ALL.into_iter().find(|w| *w as u32 == word(0)).unwrap_or(What::Test);
        Record {
            what,
            failed: word(4) & 1 != 0,
            ready: word(4) & 2 != 0,
            step: word(8),
            place: word(12),
            hash: long(16),
            value: long(24),
        }
    }
}

/// What follows from the records of all processes, the same in each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Same,
    /// Some failed; `tells` is whether this process is to say why: of those with one reason the first.
    Failed {
        tells: bool,
    },
    Differ,
}

/// The verdict for the process `rank`.
pub fn judge(records: &[Record], rank: usize) -> Verdict {
    if records.iter().any(|r| r.failed) {
        let first = records
            .get(rank)
            .filter(|r| r.failed)
            .and_then(|own| records.iter().position(|r| r.failed && (r.what, r.hash) == (own.what, own.hash)));
        return Verdict::Failed { tells: first == Some(rank) };
    }
    let same = |r: &Record| records.first().is_some_and(|f| (f.what, f.step, f.hash) == (r.what, r.step, r.hash));
    if records.iter().all(same) { Verdict::Same } else { Verdict::Differ }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Record = Record { what: What::Call, failed: false, ready: true, step: 3, place: 4, hash: 5, value: 6 };

    #[test]
    fn records_come_back() {
        for what in What::ALL {
            let r = Record { what, failed: true, hash: u64::MAX - 1, ..ONE };
            assert_eq!((r.bytes().len(), Record::read(&r.bytes())), (Record::BYTES, r));
        }
    }

    #[test]
    fn one_of_those_that_failed_for_one_reason_tells() {
        assert_eq!(judge(&[ONE, Record { value: 1, place: 1, ..ONE }], 1), Verdict::Same);
        assert_eq!(judge(&[ONE, Record { hash: 1, ..ONE }], 0), Verdict::Differ);
        assert_eq!(judge(&[ONE, Record { what: What::End, ..ONE }], 1), Verdict::Differ);
        let failed = Record { failed: true, ..ONE };
        let all = [ONE, failed, failed, Record { hash: 1, ..failed }];
        let tells: Vec<bool> = (0..4).map(|r| judge(&all, r) == Verdict::Failed { tells: true }).collect();
        assert_eq!(tells, [false, true, false, true]);
    }
}
