//! A time line of a profile in the form of Chrome's trace events, which Perfetto opens.
//!
//! A thread is a track. Each run of a kernel is joined by an arrow to the line of the program that it computes, on a track
//! of lines; neighbouring runs of one line are one slice there.
//! Source: "Trace Event Format", the Chromium project.

use super::{source_line, span_of};
use crate::graph_facts::Place;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;
use tessera_resolve::source::SourceMap;
use tessera_runtime::profile::{Event, Kind, Profile, Row};

/// The track of lines, before those of threads.
const LINES: u32 = 0;

/// What ran on the first thread between two runs of a line, and is no kernel, joins them where it is shorter.
const JOINED: Duration = Duration::from_millis(1);

/// Writes the events of a profile, an object with `traceEvents`, one after the other: there may be millions. Microseconds since
/// its start.
///
/// # Errors
/// Those of the writer.
pub fn write(profile: &Profile, sources: &SourceMap, to: &mut dyn Write) -> io::Result<()> {
    let mut heads = vec![named("process_name", LINES, "tessera"), named("thread_name", LINES, "lines of the program")];
    let threads: BTreeSet<u32> = profile.events.iter().map(|e| e.thread).collect();
    for &thread in &threads {
        let name = if thread == 0 { "main".to_owned() } else { format!("device thread {thread}") };
        heads.push(named("thread_name", track(thread), &name));
    }
    let mut sorted: Vec<&Event> = profile.events.iter().collect();
    // What is around others comes first.
    sorted.sort_by_key(|e| (e.start, std::cmp::Reverse(e.whole)));
    let places: Vec<Option<Place>> = profile.rows.iter().map(|row| Place::of(span_of(row), sources)).collect();
    let slices = sorted.iter().filter_map(|e| Some(slice(e, profile.rows.get(e.row)?, places.get(e.row)?)));
    let memory = sorted.iter().filter_map(|e| in_use(e, profile.rows.get(e.row)?));
    let lines = lines(&sorted, &profile.rows, sources);
    let arrows = lines.iter().enumerate().flat_map(|(number, line)| line.events(number));
    to.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    for (i, event) in heads.into_iter().chain(slices).chain(arrows).chain(memory).enumerate() {
        let comma = if i == 0 { "" } else { "," };
        write!(to, "{comma}\n{event}")?;
    }
    to.write_all(b"\n]}\n")
}

fn track(thread: u32) -> u32 {
    thread + 1
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn named(what: &str, track: u32, name: &str) -> Value {
    json!({"ph": "M", "name": what, "pid": 1, "tid": track, "args": {"name": name}})
}

/// One run of a row.
fn slice(event: &Event, row: &Row, place: &Option<Place>) -> Value {
    let kind = if row.kind == Kind::Step { "kernel" } else { "stage" };
    json!({
        "ph": "X", "cat": kind, "name": row.name, "pid": 1, "tid": track(event.thread),
        "ts": micros(event.start), "dur": micros(event.whole), "args": {"place": place},
    })
}

/// Bytes that are in use when a kernel has run: a point of a line over the tracks.
fn in_use(event: &Event, row: &Row) -> Option<Value> {
    let at = micros(event.start + event.whole);
    let args = json!({"bytes": event.in_use});
    (row.kind == Kind::Step).then(|| json!({"ph": "C", "name": "memory in use", "pid": 1, "ts": at, "args": args}))
}

/// Runs of one line, one after the other.
struct Neighbours {
    place: String,
    thread: u32,
    start: Duration,
    end: Duration,
    /// Where the arrow leads: the start of the first run.
    first: Duration,
}

impl Neighbours {
    fn events(&self, number: usize) -> [Value; 3] {
        let (start, first) = (micros(self.start), micros(self.first));
        [
            json!({"ph": "X", "cat": "line", "name": self.place, "pid": 1, "tid": LINES, "ts": start, "dur": micros(self.end - self.start)}),
            json!({"ph": "s", "cat": "line", "name": "computes", "id": number, "pid": 1, "tid": LINES, "ts": start}),
            json!({"ph": "f", "bp": "e", "cat": "line", "name": "computes", "id": number, "pid": 1, "tid": track(self.thread), "ts": first}),
        ]
    }
}

/// Lines of the program by the time at which the first thread computes them. Devices compute the same at the same time.
fn lines(sorted: &[&Event], rows: &[Row], sources: &SourceMap) -> Vec<Neighbours> {
    let texts: Vec<String> = rows.iter().map(|row| source_line(row, sources)).collect();
    let first = sorted.iter().filter(|e| rows.get(e.row).is_some_and(|r| r.kind == Kind::Step)).map(|e| e.thread).min();
    let mut out: Vec<Neighbours> = vec![];
    for event in sorted.iter().filter(|e| Some(e.thread) == first) {
        let is_step = rows.get(event.row).is_some_and(|r| r.kind == Kind::Step);
        let Some(place) = texts.get(event.row).filter(|text| is_step && !text.is_empty()) else { continue };
        let end = event.start + event.whole;
        match out.last_mut() {
            Some(last) if last.place == *place && event.start <= last.end + JOINED => last.end = last.end.max(end),
            // A step inside a loop: the loop's line ends where the first of its steps begins.
            last => {
                if let Some(last) = last.filter(|l| l.end > event.start) {
                    last.end = event.start;
                }
                let (thread, start) = (event.thread, event.start);
                out.push(Neighbours { place: place.clone(), thread, start, end, first: start });
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_abi::plan::StepOrigin;

    #[test]
    fn what_is_around_comes_first() {
        let us = Duration::from_micros;
        let row = |name: &str, kind| Row { times: vec![us(1)], ..Row::new(name, kind, StepOrigin::default()) };
        let rows = vec![row("dot", Kind::Step), row("host code", Kind::Stage)];
        let event = |row, start, whole| Event { row, thread: 0, start: us(start), whole: us(whole), in_use: 0 };
        let profile = Profile { rows, events: vec![event(0, 5, 2), event(1, 5, 9)], ..Profile::default() };
        let mut text = vec![];
        write(&profile, &SourceMap::default(), &mut text).expect("memory takes it");
        let value: Value = serde_json::from_slice(&text).expect("it is JSON");
        let names: Vec<&str> = value["traceEvents"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|e| e["ph"] == "X")
            .filter_map(|e| e["name"].as_str())
            .collect();
        assert_eq!(names, ["host code", "dot"]);
    }
}
