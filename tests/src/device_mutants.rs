//! Mutants of per-device code, made from its text: a collective or a division by the number of devices deleted, inserted or
//! replaced.

use crate::mesh_mutants::{axes, extent};
use std::collections::BTreeMap;

/// A mutant: what was changed, the lines that are new, and the program.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mutant {
    pub kind: &'static str,
    pub line: String,
    pub text: String,
}

/// The calls that may stand in the place of another one, of an operand over an axis.
fn calls(operand: &str, axis: &str) -> Vec<(&'static str, String)> {
    let call = |name: &str, more: &str| format!("dist.collective.{name}({operand}, axis=\"{axis}\"{more})");
    vec![
        ("all_reduce", call("all_reduce", "")),
        ("mean", call("all_reduce", ", op=\"mean\"")),
        ("max", call("all_reduce", ", op=\"max\"")),
        ("all_gather", call("all_gather", "")),
        ("reduce_scatter", call("reduce_scatter", "")),
        ("broadcast", call("broadcast", "")),
        ("permute", call("permute", "")),
        ("each", format!("dist.each({operand}, axis=\"{axis}\")")),
    ]
}

/// Every mutant of the per-device functions of a program, each once.
pub fn mutants(source: &str) -> Vec<Mutant> {
    let end = source.find("\nmesh = ").unwrap_or(source.len());
    let (code, rest) = source.split_at(end);
    let axes = axes(source);
    let mut out: BTreeMap<String, (&'static str, String)> = BTreeMap::new();
    let mut put = |kind: &'static str, code_now: String| {
        let old: Vec<&str> = code.lines().collect();
        let line = code_now.lines().filter(|l| !old.contains(l)).collect::<Vec<_>>().join(" | ").trim().to_owned();
        out.entry(code_now + rest).or_insert((kind, line));
    };
    let between = |from: usize, to: usize, text: &str| format!("{}{text}{}", &code[..from], &code[to..]);
    // Collectives: deleted, and others in their place.
    for (start, what) in code.match_indices("dist.collective.") {
        let Some(open) = code[start + what.len()..].find('(').map(|i| start + what.len() + i + 1) else { continue };
        let Some((end, first)) = extent(code, open) else { continue };
        let operand = &code[open..first];
        put("delete", between(start, end, operand));
        for axis in &axes {
            for (kind, call) in calls(operand, axis) {
                put(kind, between(start, end, &call));
            }
        }
    }
    for axis in &axes {
        // Divisions by the number of devices: deleted, and more of them where a collective is.
        let divided = format!(" / dist.size(\"{axis}\")");
        for (at, what) in code.match_indices(&divided) {
            put("undivided", between(at, at + what.len(), ""));
        }
        // What a name stands for, put through a collective or divided.
        let lines: Vec<&str> = code.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            let Some((left, _)) = line.split_once(" = ") else { continue };
            let (name, indent) = (left.trim(), left.len() - left.trim_start().len());
            if indent == 0 || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                continue;
            }
            let mut insert = |kind: &'static str, value: String| {
                let mut all: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
                all.insert(i + 1, format!("{}{name} = {value}", " ".repeat(indent)));
                put(kind, all.join("\n"));
            };
            insert("divided", format!("{name} / dist.size(\"{axis}\")"));
            for (kind, call) in calls(name, axis) {
                insert(kind, call);
            }
        }
        // Annotations.
        let mut swap = |from: &str, to: &str| {
            for (at, _) in code.match_indices(from) {
                put("annotation", between(at, at + from.len(), to));
            }
        };
        swap(&format!("@{axis}"), "");
        swap(&format!(", sum@{axis}"), "");
        swap(", f32]", &format!(", f32, sum@{axis}]"));
        axes.iter().filter(|o| *o != axis).for_each(|o| swap(&format!("@{axis}"), &format!("@{o}")));
    }
    let all = out.into_iter().filter(|(text, _)| text != source);
    all.map(|(text, (kind, line))| Mutant { kind, line, text }).collect()
}
