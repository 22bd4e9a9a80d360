//! Core as text: every program of the documents prints, reads back as the same text, and verifies; damaged texts are
//! told and nothing worse, and a value of a wrong type does not verify. The interpreter of Core does what compiled code
//! does.

use tessera::program::check;
use tessera_core::text::{parse, print};
use tessera_core::verify::verify;
use tessera_resolve::source::Loaded;
use tessera_tests::documents::programs;
use tessera_tests::laws::on_two_threads;
use tessera_tests::program::run_source;
use tessera_tests::random::Random;
use tessera_tests::random_text::damaged;

/// The Core of a program, where it has one.
fn core(source: &str) -> Option<tessera_core::ir::Program> {
    let checked = check(&Loaded { path: "law.tsr".into(), text: source.into() });
    checked.program.filter(|_| !checked.diagnostics.iter().any(tessera_base::Diagnostic::is_error))
}

fn reads_back(source: &str) -> Result<(), String> {
    let Some(program) = core(source) else { return Ok(()) };
    verify(&program).map_err(|d| format!("does not verify: {}", d.message))?;
    for places in [false, true] {
        let text = print(&program, places);
        let again = parse(&text).map_err(|e| {
            let from = text[..e.at].rfind('\n').map_or(0, |n| n + 1);
            let line = text[from..].lines().next().unwrap_or_default();
            format!("does not read: {}\n{line}", e.message)
        })?;
        let printed = print(&again, places);
        if let Some((a, b)) = text.lines().zip(printed.lines()).find(|(a, b)| a != b) {
            return Err(format!("reads as something else\n{a}\n{b}"));
        }
        if text != printed {
            return Err("reads as a text of another length".into());
        }
        verify(&again).map_err(|d| format!("does not verify once read: {}", d.message))?;
    }
    Ok(())
}

#[test]
fn core_reads_back() {
    let programs = programs();
    let failures = on_two_threads(programs.len(), |i| {
        let p = &programs[i];
        reads_back(&p.source).err().map(|why| format!("{}\n{}\n{why}", p.place, p.source)).into_iter().collect()
    });
    assert!(failures.is_empty(), "{} of {}\n\n{}", failures.len(), programs.len(), failures.join("\n\n"));
}

/// Forms whose result has any type, as far as the verifier knows, and variables, which nothing may use.
const ANY_RESULT: &[&str] = &["core.check", "core.local"];

/// The text with another type of one value, and the form that gives the value.
fn lied(random: &mut Random, text: &str) -> Option<(String, String)> {
    let of = |line: &str| {
        let (head, ty) = line.rsplit_once(" : ")?;
        let form = head.split('"').nth(1).filter(|f| head.starts_with(' ') && !ANY_RESULT.contains(f))?;
        let scalar = matches!(ty, "float" | "bool" | "str") || ty.starts_with("int");
        scalar.then(|| (head.to_owned(), form.to_owned(), if ty == "str" { "float" } else { "str" }))
    };
    let lines: Vec<&str> = text.lines().collect();
    let places: Vec<usize> = (0..lines.len()).filter(|i| of(lines[*i]).is_some()).collect();
    let at = *places.get(random.below(places.len().max(1)))?;
    let (head, form, ty) = of(lines[at])?;
    let line = format!("{head} : {ty}");
    Some(([&lines[..at], &[&line], &lines[at + 1..]].concat().join("\n"), form))
}

#[test]
fn a_wrong_type_is_found() {
    const LIES: u64 = if cfg!(debug_assertions) { 1 } else { 4 };
    let programs = programs();
    let failures = on_two_threads(programs.len(), |i| {
        let Some(program) = core(&programs[i].source) else { return vec![] };
        let text = print(&program, false);
        let mut random = Random::new(i as u64);
        let lies = (0..LIES).filter_map(|_| lied(&mut random, &text));
        let unnoticed = lies.filter(|(text, _)| parse(text).is_ok_and(|p| verify(&p).is_ok()));
        unnoticed.map(|(_, form)| form).collect()
    });
    let mut forms = std::collections::BTreeMap::new();
    failures.iter().for_each(|f| *forms.entry(f).or_insert(0) += 1);
    assert!(failures.is_empty(), "{} unnoticed: {forms:?}", failures.len());
}

#[test]
fn damaged_core_is_told() {
    const DAMAGES: u64 = if cfg!(debug_assertions) { 1 } else { 5 };
    let programs = programs();
    on_two_threads(programs.len(), |i| {
        let Some(program) = core(&programs[i].source) else { return vec![] };
        let text = print(&program, true);
        let mut random = Random::new(i as u64);
        for _ in 0..DAMAGES {
            // What still reads must print, too.
            if let Ok(read) = parse(&damaged(&mut random, &text)) {
                let _ = verify(&read);
                print(&read, true);
            }
        }
        vec![]
    });
}

/// What no interpreter on one machine is asked: values of gigabytes, and meshes that do not run compiled either.
const TOO_LARGE: &[&str] = &["2147483700", "range(60)", "range(100000))", "range(40000000)"];
/// Where a tensor's parts lie is nothing that Core says.
const PARTS: &str = "the interpreter does not know where the parts of a tensor lie";

/// Exit code, output, and what kind of error it was.
fn done(source: &str, args: &[&str]) -> Result<(i32, String, String), String> {
    let ran = run_source(source, args).map_err(|e| e.to_string())?;
    let error = ran.err.lines().find(|l| l.starts_with("error")).unwrap_or_default();
    if ran.code < 0 || ran.err.contains("E0999") {
        return Err(format!("ends with {}\n{}", ran.code, ran.err));
    }
    Ok((ran.code, ran.out, error.to_owned()))
}

#[test]
fn the_interpreter_prints_what_the_compiled_program_prints() {
    let programs: Vec<_> = programs()
        .into_iter()
        .filter(|p| TOO_LARGE.iter().all(|t| !p.source.contains(t)) && core(&p.source).is_some())
        // The interpreter has no kernels whose times it could give.
        .filter(|p| !p.source.contains("graph.profile("))
        .collect();
    assert!(programs.len() > 1000, "{} programs only", programs.len());
    let failures = on_two_threads(programs.len(), |i| {
        let p = &programs[i];
        let told = match (done(&p.source, &["run"]), done(&p.source, &["run", "--interpret"])) {
            (Ok(_), Ok(interpreted)) if interpreted.2.contains(PARTS) => return vec![],
            (Ok(compiled), Ok(interpreted)) if compiled == interpreted => return vec![],
            (compiled, interpreted) => format!("compiled: {compiled:?}\ninterpreted: {interpreted:?}"),
        };
        vec![format!("{}\n{}\n{told}", p.place, p.source)]
    });
    assert!(failures.is_empty(), "{} of {}\n\n{}", failures.len(), programs.len(), failures.join("\n\n"));
}

/// Products whose bits depend on the machine: in the order of its instruction, with factors small enough to vanish in it.
const PRODUCTS: &str = "\
def f(a: Tensor[M, K, bf16], b: Tensor[K, N, bf16]) -> Tensor[M, N, f32]:
    return op.matmul(a, b, out_dtype=f32)

for s in [1.0, 1e-10, 1e-19, 1e-20]:
    for m, k, n in [(33, 70, 17), (3, 2, 5), (1, 128, 64), (40, 300, 40)]:
        a = (random.normal(random.key(1), (m, k)) * s).to(bf16)
        b = (random.normal(random.key(2), (k, n)) * s).to(bf16)
        c = f(a, b).to(f64)
        print(c.sum(), (c * c).sum(), (c == 0.0).sum())
";

#[test]
fn products_of_bf16_have_the_order_of_the_machine() {
    assert_eq!(done(PRODUCTS, &["run"]), done(PRODUCTS, &["run", "--interpret"]));
}
