//! Where the turns of a loop leave what they make.
//!
//! What a turn stacks it writes to its row. A carry lies where one turn leaves it and the next one finds it: in a row of a
//! result that has it as well, in one place where it is made in place of what it was, and else in two by turns. The last turn
//! leaves it where it is wanted.

use tessera_abi::plan::{BufRef, Copied, Output, Rows, Step, TurnOutput};
use tessera_base::bug;
use tessera_graph::loop_rows::walk;
use tessera_ir::graph::Graph;

/// Where the turns of a loop leave what they make.
pub struct TurnPlaces {
    pub outputs: Vec<TurnOutput>,
    pub first: Vec<Copied>,
    pub last: Vec<Copied>,
    /// What a turn has to copy at its end.
    pub copies: Vec<Step>,
    /// By output of the body, whether an input of it is the output still, and which.
    pub same: Vec<Option<u32>>,
    /// Where the room ends that it takes behind the arena.
    pub end: u64,
}

/// A loop whose memory is to be laid out.
pub struct Turns<'a> {
    pub body: &'a Graph,
    /// The outputs of the body's plan.
    pub given: Vec<Output>,
    pub carry: usize,
    pub trips: u64,
    pub reversed: bool,
    /// Whether it ends by itself: which turn is the last is not known before.
    pub until: bool,
    /// Where results are wanted, by number.
    pub results: Vec<Option<BufRef>>,
    /// Where room behind the arena begins that nobody has yet.
    pub room: u64,
    /// What a turn has to copy at its end.
    pub copies: Vec<Step>,
}

impl Turns<'_> {
    pub fn places(mut self) -> TurnPlaces {
        let outputs = self.outputs();
        let (first, last) = (self.first(), self.last(&outputs));
        let same = self.given.iter().map(|o| o.same_as_input).collect();
        TurnPlaces { outputs, first, last, copies: self.copies, same, end: self.room }
    }

    /// Bytes of an output of the body.
    fn bytes(&self, output: usize) -> u64 {
        self.body.ty(self.body.outputs[output]).bytes().unwrap_or(u64::MAX)
    }

    /// Memory for one value of an output.
    fn spare(&mut self, output: usize) -> BufRef {
        let at = self.room;
        self.room = self.room.saturating_add(self.bytes(output).max(1)).saturating_add(63) / 64 * 64;
        BufRef::Arena(at)
    }

    /// The rows of a stacked result, that of the first turn first.
    fn rows(&self, output: usize) -> Option<Rows> {
        let of = self.results[output]?;
        let Some((first, step)) = walk(self.bytes(output), self.trips, self.reversed) else {
            bug!("result {output} of a loop has no size");
        };
        Some(Rows { of, first, step })
    }

    /// The output that has the carry at the start of each turn as its rows; of a carry that stays what it was there is none.
    fn starts(&self, carry: usize) -> Option<usize> {
        if self.given[carry].same_as_input.is_some() {
            return None;
        }
        let of = |k: &usize| self.given[*k].same_as_input == Some(carry as u32);
        (self.carry..self.results.len()).find(|k| of(k) && self.results[*k].is_some())
    }

    /// The output that has the carry at the end of each turn as its rows.
    fn ends(&self, carry: usize) -> Option<usize> {
        let same = |k: &usize| self.body.outputs[*k] == self.body.outputs[carry];
        (self.carry..self.results.len()).find(|k| same(k) && self.results[*k].is_some())
    }

    /// Where each output goes. What is an input as it is, and is not found there, is copied by a step of the body.
    fn outputs(&mut self) -> Vec<TurnOutput> {
        let count = self.results.len();
        (0..count).map(|k| if k < self.carry { self.carried(k) } else { self.stacked(k) }).collect()
    }

    fn carried(&mut self, i: usize) -> TurnOutput {
        let output = &self.given[i];
        let (same, in_place) = (output.same_as_input, output.in_place_of == Some(i as u32));
        if let Some(j) = same {
            // Another carry is overwritten in the next turn, which still reads this one.
            if j as usize == i || j as usize >= self.carry {
                return TurnOutput::Input(j);
            }
            self.copied(i, j);
        }
        if let Some(rows) = self.starts(i).and_then(|k| self.rows(k)) {
            let last = Some(self.wanted(i));
            // What a turn gives is the start of the next one.
            return TurnOutput::Rows { rows: Rows { first: rows.first.wrapping_add_signed(rows.step), ..rows }, last };
        } else if let Some(rows) = self.ends(i).and_then(|k| self.rows(k)) {
            return TurnOutput::Rows { rows, last: None };
        }
        let first = self.wanted(i);
        if in_place { TurnOutput::Whole(first) } else { TurnOutput::Alternate([first, self.spare(i)]) }
    }

    fn stacked(&mut self, k: usize) -> TurnOutput {
        let same = self.given[k].same_as_input;
        match (self.rows(k), same) {
            (None, Some(j)) => TurnOutput::Input(j),
            (None, None) => TurnOutput::Whole(self.spare(k)),
            (Some(rows), same) => {
                if let Some(j) = same.filter(|&j| (j as usize) >= self.carry || self.starts(j as usize) != Some(k)) {
                    self.copied(k, j);
                }
                TurnOutput::Rows { rows, last: None }
            }
        }
    }

    /// Where the last value of a carry goes.
    fn wanted(&mut self, carry: usize) -> BufRef {
        self.results[carry].unwrap_or_else(|| self.spare(carry))
    }

    /// A turn copies an input to an output.
    fn copied(&mut self, output: usize, input: u32) {
        let bytes = self.bytes(output);
        self.given[output].same_as_input = None;
        self.copies.push(Step::Copy { dst: BufRef::Output(output as u32), src: BufRef::Input(input), bytes });
    }

    /// Carries whose first value is the first row of a result.
    fn first(&self) -> Vec<Copied> {
        let one = |i: usize| {
            let to = self.starts(i).and_then(|k| self.rows(k))?;
            Some(Copied { carry: i as u32, to, bytes: self.bytes(i) })
        };
        (0..self.carry).filter_map(one).collect()
    }

    /// Carries that are wanted, and that the last turn leaves elsewhere, or no turn leaves at all.
    fn last(&self, outputs: &[TurnOutput]) -> Vec<Copied> {
        let left = |i: usize| {
            let there = match outputs[i] {
                TurnOutput::Rows { last, .. } => last.is_some(),
                TurnOutput::Alternate(_) | TurnOutput::Whole(_) => true,
                TurnOutput::Input(_) => false,
            };
            there && self.trips > 0 && !self.until
        };
        let one = |i: usize| {
            let to = Rows { of: self.results[i]?, first: 0, step: 0 };
            (!left(i)).then(|| Copied { carry: i as u32, to, bytes: self.bytes(i) })
        };
        (0..self.carry).filter_map(one).collect()
    }
}
