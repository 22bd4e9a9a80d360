//! Core as text: every program of the documents prints, reads back as the same text, and verifies; damaged texts are
//! told and nothing worse.

use tessera::program::check;
use tessera_core::text::{parse, print};
use tessera_core::verify::verify;
use tessera_hir::source::Loaded;
use tessera_tests::documents::programs;
use tessera_tests::laws::on_two_threads;
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

#[test]
fn damaged_core_is_told() {
    const DAMAGES: u64 = if cfg!(debug_assertions) { 2 } else { 20 };
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
