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
    Read,
    End,
}

impl What {
    const ALL: [What; 10] = [
        What::Test,
        What::Start,
        What::Call,
        What::Called,
        What::Whole,
        What::Ask,
        What::Write,
        What::Rows,
        What::Read,
        What::End,
    ];

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
            What::Read => "has read a file",
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
    /// The first process's is for all; only what was read must be the same.
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

/// What is known of the records of all processes where they do the same and none failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Common {
    /// Whether all have their words for all.
    pub ready: bool,
    /// The first process's value.
    pub value: u64,
}

impl Record {
    /// What this process gives to find out whether all do the same: its record, and what its record lacks. Of the bits
    /// that all have set in the first half and in the second one, the first are those that all have, and the second
    /// those that none has, so nobody needs to see every record.
    pub fn bits(self, rank: usize) -> Vec<u8> {
        let value = if rank == 0 || self.what == What::Read { self.value } else { 0 };
        let own = Record { value, ..self }.bytes();
        own.iter().copied().chain(own.iter().map(|b| !b)).collect()
    }

    /// From the bits that all have set; `None` where they do not all do the same, or one failed.
    pub fn common(bits: &[u8]) -> Option<Common> {
        let (all, none) = bits.split_at_checked(Record::BYTES)?;
        let some: Vec<u8> = none.iter().map(|b| !b).collect();
        // The words of what is done as they are: two that are known may together give one that is not.
        let same = [0..4, 8..12, 16..24].into_iter().all(|word| all.get(word.clone()) == some.get(word));
        let (all, some) = (Record::read(all), Record::read(&some));
        let read_same = all.what != What::Read || all.value == some.value;
        (same && read_same && !some.failed).then_some(Common { ready: all.ready, value: some.value })
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
    let content = |r: &Record| if r.what == What::Read { r.value } else { 0 };
    let all = |r: &Record| (r.what, r.step, r.hash, content(r));
    let same = |r: &Record| records.first().is_some_and(|f| all(f) == all(r));
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

    /// The bits that all have set.
    fn folded(records: &[Record]) -> Vec<u8> {
        let all = records.iter().enumerate().map(|(rank, r)| r.bits(rank));
        all.reduce(|a, b| a.iter().zip(b).map(|(a, b)| a & b).collect()).unwrap_or_default()
    }

    #[test]
    fn what_all_have_in_common_is_what_a_look_at_each_says() {
        let own = Record { value: 9, place: 77, ready: false, ..ONE };
        assert_eq!(Record::common(&folded(&[ONE, own, ONE])), Some(Common { ready: false, value: 6 }));
        assert_eq!(Record::common(&folded(&[ONE, ONE])), Some(Common { ready: true, value: 6 }));
        let read = Record { what: What::Read, ..ONE };
        let others = [
            Record { hash: 4, ..ONE },
            Record { hash: u64::MAX, ..ONE },
            Record { step: 2, ..ONE },
            Record { what: What::End, ..ONE },
            Record { failed: true, ..ONE },
            read,
        ];
        for other in others {
            for all in [[ONE, other, ONE], [other, ONE, ONE], [ONE, ONE, other]] {
                assert_eq!(Record::common(&folded(&all)), None, "{all:?}");
                assert_ne!(judge(&all, 0), Verdict::Same, "{all:?}");
            }
        }
        let elsewhere = Record { value: 7, ..read };
        assert_eq!(Record::common(&folded(&[read, read])), Some(Common { ready: true, value: 6 }));
        assert_eq!(
            (Record::common(&folded(&[read, elsewhere])), judge(&[read, elsewhere], 0)),
            (None, Verdict::Differ)
        );
        assert_eq!(Record::common(&[]), None);
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
