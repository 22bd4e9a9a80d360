//! What is told where processes do not do the same.

use super::start_parts::{Part, first_difference, of_text, to_text};
use super::step::{Record, What};
use super::{DIFFER, World};
use crate::fault::Fault;
use std::sync::PoisonError;

/// How many differences are told.
const TOLD: usize = 3;

impl World {
    /// What has to be the same at the start.
    pub fn set_parts(&self, parts: Vec<Part>) {
        let _ = self.parts.set(parts);
    }

    /// Notes what is about to be compared: a file that was read.
    pub(super) fn set_reading(&self, path: &str) {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        path.clone_into(&mut reading);
    }

    /// The fault of processes with these records, in full in the first one. All come to it.
    pub(super) fn differ(&self, records: &[Record]) -> Result<Fault, Fault> {
        if records.iter().all(|r| r.what == What::Start) {
            return self.started_otherwise();
        }
        let read_same = |r: &Record| r.what == What::Read && r.hash == records[0].hash && r.step == records[0].step;
        Ok(if records.iter().all(read_same) { self.read_otherwise(records) } else { self.doing_otherwise(records) })
    }

    fn started_otherwise(&self) -> Result<Fault, Fault> {
        let own = self.parts.get().map_or(&[][..], Vec::as_slice);
        let all = self.all_to_first(to_text(own).into_bytes())?;
        let others = all.iter().enumerate().skip(1);
        let told: Vec<String> = others
            .filter_map(|(rank, parts)| {
                Some(format!("{} {}", self.process(rank), first_difference(own, &of_text(parts))?))
            })
            .collect();
        let fault = Fault::new(DIFFER, "the processes of this run were not started alike");
        let more = told.len().saturating_sub(TOLD);
        let fault = told.into_iter().take(TOLD).fold(fault, Fault::note);
        let fault = if more > 0 { fault.note(format!("{more} more differ from process 0")) } else { fault };
        Ok(fault
            .note("program, files, arguments, options and the version of Tessera have to be the same")
            .note("and the instruction for products of bf16 that the processor has and the system allows"))
    }

    fn read_otherwise(&self, records: &[Record]) -> Fault {
        let path = self.reading.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = format!("`{path}` does not hold the same in all processes of this run");
        let fault = Fault::new(DIFFER, text).note(format!("read at {}", self.here()));
        let others: Vec<usize> = (1..records.len()).filter(|&r| records[r].value != records[0].value).collect();
        let told =
            others.iter().take(TOLD).map(|&r| format!("{} has read other contents than process 0", self.process(r)));
        let fault = told.fold(fault, Fault::note);
        let more = others.len().saturating_sub(TOLD);
        let fault = if more > 0 { fault.note(format!("{more} more differ from process 0")) } else { fault };
        fault.note("copy the file of one machine to all, or put it on a file system that they share")
    }

    fn doing_otherwise(&self, records: &[Record]) -> Fault {
        let first = Fault::new(DIFFER, "the processes of this run do not do the same");
        let mut told: Vec<(String, Vec<usize>)> = vec![];
        for (rank, r) in records.iter().enumerate() {
            let text = match r.what {
                What::End => r.what.text().to_owned(),
                what => format!("{}, at {}", what.text(), self.place_text(r.place)),
            };
            let same = |t: &&mut (String, Vec<usize>)| records[t.1[0]].hash == r.hash && t.0 == text;
            match told.iter_mut().find(same) {
                Some((_, who)) => who.push(rank),
                None => told.push((text, vec![rank])),
            }
        }
        let one = told.iter().all(|t| t.0 == told[0].0);
        let notes = told.into_iter().fold(first, |fault, (text, who)| {
            let who: Vec<String> = who.iter().map(usize::to_string).collect();
            fault.note(format!("process {} {text}", who.join(", ")))
        });
        match one {
            true => notes.note("with other numbers, elements, shapes or layouts"),
            false => notes,
        }
    }
}
