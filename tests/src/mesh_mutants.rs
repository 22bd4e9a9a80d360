//! Mutants of parallel programs, made from their text: a collective or a layout deleted, inserted
//! or replaced by another one.

use std::collections::BTreeSet;

/// The names that a mutation picks from.
struct Names {
    axes: Vec<String>,
    /// Names that are bound to a `dist.ShardSpec`.
    specs: Vec<String>,
}

const COLLECTIVES: [&str; 3] = ["all_reduce", "all_gather", "reduce_scatter"];

/// Every mutant of a program, each once.
pub fn mutants(source: &str) -> Vec<String> {
    let names = Names { axes: axes(source), specs: specs(source) };
    let mut out = BTreeSet::new();
    calls(source, &names, &mut out);
    insertions(source, &names, &mut out);
    layouts(source, &names, &mut out);
    out.remove(source);
    out.into_iter().collect()
}

/// The words in quotes after `axes=[`.
pub(crate) fn axes(source: &str) -> Vec<String> {
    let list = source.split("axes=[").nth(1).and_then(|s| s.split(']').next()).unwrap_or("");
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

fn specs(source: &str) -> Vec<String> {
    let bound = source.lines().filter_map(|l| l.split_once(" = dist.ShardSpec("));
    bound.map(|(name, _)| name.to_owned()).collect()
}

/// The end of a call whose arguments begin at `open`, and of its first argument.
pub(crate) fn extent(source: &str, open: usize) -> Option<(usize, usize)> {
    let (mut depth, mut first) = (0usize, None);
    for (i, c) in source[open..].char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' if depth == 0 => return Some((open + i + 1, first.unwrap_or(open + i))),
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => first = first.or(Some(open + i)),
            _ => {}
        }
    }
    None
}

/// Every call of a `dist` function: deleted, and replaced by others.
fn calls(source: &str, names: &Names, out: &mut BTreeSet<String>) {
    for what in ["dist.complete(", "dist.gather(", "dist.shard(", "dist.collective."] {
        for (start, _) in source.match_indices(what) {
            let Some(open) = source[start..].find('(').map(|i| start + i + 1) else { continue };
            let Some((end, first)) = extent(source, open) else { continue };
            let operand = &source[open..first];
            let mut put = |call: String| out.insert(format!("{}{call}{}", &source[..start], &source[end..]));
            put(operand.to_owned());
            put(format!("dist.complete({operand})"));
            for axis in &names.axes {
                for name in COLLECTIVES {
                    put(format!("dist.collective.{name}({operand}, axis=\"{axis}\")"));
                }
                put(format!("dist.collective.reduce_scatter({operand}, axis=\"{axis}\", dim=1)"));
                put(format!("dist.collective.all_to_all({operand}, axis=\"{axis}\", from_dim=0, to_dim=1)"));
                put(format!("dist.collective.all_to_all({operand}, axis=\"{axis}\", from_dim=1, to_dim=0)"));
            }
            for spec in &names.specs {
                put(format!("dist.shard({operand}, {spec}, mesh=mesh)"));
            }
        }
    }
}

/// After every assignment, its value in another layout.
fn insertions(source: &str, names: &Names, out: &mut BTreeSet<String>) {
    let lines: Vec<&str> = source.lines().collect();
    for (i, line) in lines.iter().enumerate() {
        let Some((left, right)) = line.split_once(" = ") else { continue };
        let (name, indent) = (left.trim(), left.len() - left.trim_start().len());
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !plain || ["dist.Mesh", "dist.ShardSpec", "random.split"].iter().any(|p| right.starts_with(p)) {
            continue;
        }
        let mut put = |value: String| {
            let mut all: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
            all.insert(i + 1, format!("{}{name} = {value}", " ".repeat(indent)));
            out.insert(all.join("\n") + "\n");
        };
        put(format!("dist.gather({name})"));
        put(format!("dist.complete({name})"));
        for axis in &names.axes {
            COLLECTIVES.iter().for_each(|c| put(format!("dist.collective.{c}({name}, axis=\"{axis}\")")));
        }
        names.specs.iter().for_each(|spec| put(format!("dist.shard({name}, {spec}, mesh=mesh)")));
    }
}

/// Other dims, axes and meshes in what layouts say.
fn layouts(source: &str, names: &Names, out: &mut BTreeSet<String>) {
    let mut swap = |from: &str, to: &str| {
        for (at, _) in source.match_indices(from) {
            out.insert(format!("{}{to}{}", &source[..at], &source[at + from.len()..]));
        }
    };
    swap("\"row\"", "\"col\"");
    swap("\"col\"", "\"row\"");
    for shape in ["[2, 2]", "[4, 1]", "[1, 4]", "[2, 3]", "[3, 2]"] {
        swap("shape=[2, 2]", &format!("shape={shape}"));
    }
    swap("range(4)", "range(3)");
    swap("range(4)", "range(2)");
    for axis in &names.axes {
        for other in names.axes.iter().filter(|o| *o != axis) {
            swap(&format!("\"{axis}\""), &format!("\"{other}\""));
        }
    }
    for axis in &names.axes {
        swap(&format!("@{axis}"), "");
        swap(&format!(", sum@{axis}"), "");
        swap(", f32]", &format!(", f32, sum@{axis}]"));
        names.axes.iter().filter(|o| *o != axis).for_each(|o| swap(&format!("@{axis}"), &format!("@{o}")));
    }
    for spec in &names.specs {
        for other in names.specs.iter().filter(|o| *o != spec) {
            swap(&format!(", {spec}"), &format!(", {other}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_its_mutants() {
        let source = "mesh = dist.Mesh(axes=[\"a\", \"b\"], devices=range(4))\nrow = dist.ShardSpec(partition=(\"row\",), mesh_axes=(\"a\",))\nx = dist.shard(y[0, 1], row, mesh=mesh)\n";
        let all = mutants(source);
        for line in [
            "x = y[0, 1]",
            "x = dist.complete(y[0, 1])",
            "x = dist.collective.all_reduce(x, axis=\"b\")",
            "row = dist.ShardSpec(partition=(\"col\",), mesh_axes=(\"a\",))",
            "row = dist.ShardSpec(partition=(\"row\",), mesh_axes=(\"b\",))",
        ] {
            assert!(all.iter().any(|m| m.lines().any(|l| l == line)), "{line}");
        }
    }
}
