//! ONNX files against the standard: every attribute of every operator in every version is followed or refused by
//! name, and nodes compute what a reference computes.

use std::collections::{BTreeMap, BTreeSet};
use tessera_onnx::{Fact, Row, module_of, operators, schemas};
use tessera_tests::onnx::{Attribute, model, node};
use tessera_tests::onnx_cases::{Argument, Array, Case, attribute, read, schema};
use tessera_tests::program::{root, run_in};

/// The version of the standard that the operators have been compared with: a newer table is a reason to read what
/// is new in it, and to go through the rows.
const LOOKED_AT: i64 = 28;

fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(root().join("tests/data/onnx_cases.txt")).unwrap_or_else(|e| panic!("{e}"));
    read(&text).unwrap_or_else(|e| panic!("{e}"))
}

fn lists(row: &Row) -> [&'static [&'static str]; 3] {
    [row.honoured, row.moot, row.refused]
}

#[test]
fn every_attribute_of_every_version_has_been_looked_at() {
    assert_eq!(tessera_onnx::through(), LOOKED_AT, "what is new in the standard?");
    let mut missing = vec![];
    for row in operators() {
        let own: Vec<_> = schemas().iter().filter(|s| s.op == row.name).collect();
        assert!(!own.is_empty(), "the standard has no `{}`", row.name);
        for schema in own {
            for fact in schema.attributes.iter().filter(|a| a.name != "consumed_inputs") {
                let count = lists(row).iter().filter(|l| l.contains(&fact.name)).count();
                if count != 1 {
                    missing.push(format!("{}-{} {}: in {count} lists", row.name, schema.since, fact.name));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn rows_name_attributes_that_are_there() {
    // Some rows share a list.
    let shared =
        ["axes", "noop_with_empty_axes", "input_forget", "linear_before_reset", "count_include_pad", "training_mode"];
    for row in operators() {
        for name in lists(row).into_iter().flatten() {
            let there = schemas().iter().any(|s| s.op == row.name && s.attribute(name).is_some());
            assert!(there || shared.contains(name), "`{}` has no `{name}`", row.name);
        }
    }
}

/// Why a file with one node is refused; empty where it is not.
fn refusal(op: &str, version: i64, attributes: &[(&str, Attribute)]) -> String {
    let file = model(version, &[], &[], &[node(op, &[], &["y"], attributes)], &["y"]);
    module_of(&file, "m.onnx").err().map_or(String::new(), |r| r.notes.join("\n"))
}

/// A value that is not the default.
fn other(fact: &Fact) -> String {
    match fact.kind {
        "int" => fact.default.and_then(|d| d.parse::<i64>().ok()).map_or(7, |d| d + 1).to_string(),
        "float" => fact.default.and_then(|d| d.parse::<f32>().ok()).map_or(7.5, |d| d + 1.0).to_string(),
        "ints" | "floats" => "7,8".into(),
        "tensor" => "f32[1]:7".into(),
        _ => fact.values.iter().find(|v| Some(**v) != fact.default).map_or("other", |v| v).to_owned(),
    }
}

#[test]
fn what_is_not_followed_is_refused_by_name() {
    for schema in schemas() {
        let Some(row) = operators().into_iter().find(|r| r.name == schema.op) else { continue };
        let op = schema.op;
        for fact in schema.attributes.iter().filter(|a| row.refused.contains(&a.name) && !a.kind.contains('_')) {
            let value = other(fact);
            let why = refusal(op, schema.since, &[(fact.name, attribute(op, schema.since, fact.name, &value))]);
            let named = format!("`{op}`, node `the y`: its attribute `{}` is ", fact.name);
            assert!(why.contains(&named), "{op}-{} {}={value}: {why}", schema.since, fact.name);
        }
    }
}

#[test]
fn texts_that_no_version_knows_are_refused_with_those_that_it_knows() {
    let mut seen = 0;
    for schema in schemas() {
        for fact in schema.attributes.iter().filter(|a| !a.values.is_empty()) {
            let (op, since) = (schema.op, schema.since);
            let why = refusal(op, since, &[(fact.name, attribute(op, since, fact.name, "zigzag"))]);
            let (known, named) =
                (fact.values.join("`, `"), format!("`{op}`, node `the y`: its attribute `{}`", fact.name));
            let told =
                why.contains(&named) && why.contains("is `zigzag`") && why.contains(&format!("known are `{known}`"));
            assert!(told, "{op}-{since} {}: {why}", fact.name);
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn attributes_of_other_versions_and_kinds_are_refused() {
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for schema in schemas() {
        names.entry(schema.op).or_default().extend(schema.attributes.iter().map(|a| a.name));
    }
    for schema in schemas() {
        let (op, since) = (schema.op, schema.since);
        for name in &names[op] {
            if schema.attribute(name).is_none() {
                let why = refusal(op, since, &[(name, Attribute::Int(1))]);
                assert!(
                    why.contains(&format!("it has the attribute `{name}`; in version {since}")),
                    "{op}-{since}: {why}"
                );
            }
        }
        for fact in &schema.attributes {
            let wrong = if fact.kind == "float" { Attribute::Int(1) } else { Attribute::Float(1.0) };
            let why = refusal(op, since, &[(fact.name, wrong)]);
            assert!(why.contains(&format!("its attribute `{}` is ", fact.name)), "{op}-{since}: {why}");
        }
    }
}

#[test]
fn every_attribute_that_is_followed_has_a_reference() {
    let cases = cases();
    let mut missing = vec![];
    // Sequences are no arguments of a node alone: `tests/tests/onnx_graphs.rs` has them.
    // Neither are optional values, and random numbers have no reference: `tests/tests/onnx_data.rs` has them.
    let others = ["Sequence", "Optional", "Random", "Bernoulli", "Multinomial"];
    let alone = |r: &&Row| r.translate.is_some() && !others.iter().any(|o| r.name.contains(o));
    let reverses = operators().into_iter().filter(|r| r.name == "ReverseSequence");
    for row in operators().into_iter().filter(alone).chain(reverses) {
        if !cases.iter().any(|c| c.op == row.name) {
            missing.push(row.name.to_owned());
        }
        let facts: Vec<_> = schemas().iter().filter(|s| s.op == row.name).flat_map(|s| &s.attributes).collect();
        for name in row.honoured {
            let Some(fact) = facts.iter().find(|a| a.name == *name) else { continue };
            let set = |c: &&Case| {
                c.op == row.name && c.attributes.iter().any(|(n, v)| n == name && Some(&**v) != fact.default)
            };
            // Saturation concerns floats of eight bits, which have a test of their own.
            if !cases.iter().any(|c| set(&c)) && *name != "saturate" {
                missing.push(format!("{} {name}", row.name));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// docs/onnx.md has a row for each operator that is refused, with the reason that the error says.
#[test]
fn operators_that_are_refused_are_told_with_their_reasons() {
    let docs = std::fs::read_to_string(root().join("docs/onnx.md")).unwrap_or_else(|e| panic!("{e}"));
    let table = docs.split("| operator | why it is refused |\n|---|---|\n").nth(1).unwrap_or_default();
    let rows: Vec<String> = table.lines().take_while(|l| l.starts_with('|')).map(str::to_owned).collect();
    let wanted: Vec<String> = tessera_onnx::REFUSED.iter().map(|(name, why)| format!("| `{name}` | {why} |")).collect();
    assert_eq!(rows, wanted);
    assert!(tessera_onnx::REFUSED.is_sorted());
    for (name, why) in tessera_onnx::REFUSED {
        let told = refusal(name, 22, &[]);
        assert_eq!(told, format!("`{name}`: node `the y` ({why})"));
    }
}

/// A case with the arguments of one type in another dtype.
fn in_dtype(case: &Case, ty: &str, dtype: &str) -> Case {
    let places = schema(&case.op, case.version).map_or(&[][..], |s| &s.inputs);
    let changed = case.arguments.iter().enumerate().map(|(i, a)| {
        let own = tessera_onnx::Schema::at(places, i).is_some_and(|p| p.ty == ty);
        let with = |a: &Array| Array { dtype: if own { dtype.to_owned() } else { a.dtype.clone() }, ..a.clone() };
        match a {
            Argument::Given(a) => Argument::Given(with(a)),
            Argument::Constant(a) => Argument::Constant(with(a)),
            Argument::None => Argument::None,
        }
    });
    Case { arguments: changed.collect(), ..case.clone() }
}

/// Modules say the dtypes of their results by the standard, and the checker compares them with what is computed.
#[test]
fn results_have_the_dtypes_of_the_standard() {
    let (cases, dir) = (cases(), tempfile::tempdir().unwrap_or_else(|e| panic!("{e}")));
    let (mut source, mut count, mut refused) = (String::new(), 0, 0);
    for row in operators().into_iter().filter(|r| r.translate.is_some()) {
        let Some(case) = cases.iter().filter(|c| c.op == row.name).max_by_key(|c| c.version) else { continue };
        let types = schema(row.name, case.version).map_or(&[][..], |s| &s.types);
        for (ty, dtypes) in types {
            for dtype in dtypes.iter().map(ToString::to_string).filter(|d| d != "c64") {
                let case = in_dtype(case, ty, &dtype);
                let file = case.file();
                if module_of(&file, "m.onnx").is_err() {
                    refused += 1;
                    continue;
                }
                count += 1;
                std::fs::write(dir.path().join(format!("{count}.onnx")), file).unwrap_or_else(|e| panic!("{e}"));
                let arguments = case.given().map(|a| a.source()).collect::<Vec<_>>().join(", ");
                source.push_str(&format!(
                    "net{count} = io.read_onnx(\"{count}.onnx\")\nprint(net{count}({arguments}))\n"
                ));
            }
        }
    }
    std::fs::write(dir.path().join("main.tsr"), source).unwrap_or_else(|e| panic!("{e}"));
    let r = run_in(dir.path(), &["check", "main.tsr"], "").unwrap_or_else(|e| panic!("{e}"));
    let wrong: Vec<&str> = r.err.split("error[").filter(|e| e.contains("the value of `result")).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Operators of this language that lack a dtype say so.
    let lacking: Vec<&str> = r.err.split("error[").skip(1).map(|e| e.lines().next().unwrap_or("")).collect();
    assert!(
        count > 900 && refused < 30 && lacking.len() < 5,
        "{count} {refused} {}: {}",
        lacking.len(),
        lacking.join("\n")
    );
}

/// A program that compares results with those of the reference, and what it prints where they are the same.
fn program(cases: &[Case]) -> (String, String) {
    let mut source = String::from(
        "def near(y, e, part):\n    y, e = y.to(f64), e.to(f64)\n    close = op.abs(y - e) <= part * (op.abs(e) + 0.1)\n    \
         same = op.logical_or(y == e, op.logical_and(op.isnan(y), op.isnan(e)))\n    return op.all(op.logical_or(close, same))\n\n",
    );
    let mut wanted = String::new();
    for case in cases {
        let (k, arguments) = (case.line, case.given().map(|a| a.source()).collect::<Vec<_>>().join(", "));
        source.push_str(&format!("net{k} = io.read_onnx(\"{k}.onnx\")\ny = net{k}({arguments})\n"));
        for (i, e) in case.results.iter().enumerate() {
            let y = if case.results.len() == 1 { "y".into() } else { format!("y[{i}]") };
            let same = match &*e.dtype {
                "f16" => format!("near({y}, {}, 2e-3)", e.source()),
                d if d.starts_with('f') => format!("near({y}, {}, 2e-5)", e.source()),
                _ => format!("op.all({y} == {})", e.source()),
            };
            source.push_str(&format!("print({k}, {i}, {y}.dtype, {y}.shape, {same})\n"));
            let dims = match e.dims.as_slice() {
                [one] => format!("({one},)"),
                all => format!("({})", all.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")),
            };
            wanted.push_str(&format!("{k} {i} {} {dims} True\n", e.dtype));
        }
    }
    (source, wanted)
}

fn compared(cases: &[Case]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    for case in cases {
        let path = dir.path().join(format!("{}.onnx", case.line));
        std::fs::write(path, case.file()).unwrap_or_else(|e| panic!("{e}"));
    }
    let (source, wanted) = program(cases);
    std::fs::write(dir.path().join("main.tsr"), source).unwrap_or_else(|e| panic!("{e}"));
    let r = run_in(dir.path(), &["run", "main.tsr"], "").unwrap_or_else(|e| panic!("{e}"));
    if r.code != 0 {
        return vec![format!("lines {} to {}: {}", cases[0].line, cases[cases.len() - 1].line, r.err)];
    }
    let name = |line: &str| {
        let k = line.split(' ').next().and_then(|k| k.parse::<usize>().ok());
        cases.iter().find(|c| Some(c.line) == k).map_or(String::new(), Case::name)
    };
    let pairs = r.out.lines().zip(wanted.lines());
    pairs.filter(|(found, wanted)| found != wanted).map(|(f, w)| format!("{}: {f}, and not {w}", name(f))).collect()
}

#[test]
fn nodes_compute_what_the_reference_computes() {
    let cases = cases();
    let parts: Vec<&[Case]> = cases.chunks(60).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let mut wrong = vec![];
            while let Some(part) = parts.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                wrong.extend(compared(part));
            }
            wrong
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap_or_default()).collect()
    });
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
