//! The commands of the command line.

use crate::cli::{CacheAction, Cli, Color, Command, Ir, JupyterAction, Kept, OfFunction, arguments};
use crate::explain::function::compared;
use crate::format::Then;
use crate::program::{self, CheckedFile, Setup, check_only, out, out_json, topic_shown};
use crate::render::Style;
use crate::target::Choice;
use crate::{budget, doctor, emit, explain, files, format};
use clap::{CommandFactory, Parser};
use serde_json::json;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Span};
use tessera_resolve::source::{Loaded, SourceMap};
use tessera_runtime::cuda::Gpu;
use tessera_runtime::fault::human_bytes;

/// Runs the program as it was called; returns the exit code (0 done, 1 wrong program, 2 wrong
/// usage).
pub fn main(stack_bytes: usize) -> u8 {
    crate::interrupt::outlive_large_files();
    crate::interrupt::end_with_parent();
    let cli = match Cli::try_parse_from(arguments(std::env::args_os())) {
        Ok(cli) => cli,
        Err(e) => {
            let _ = e.print();
            return if e.use_stderr() { 2 } else { 0 };
        }
    };
    let color = match cli.global.color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    let style = Style { color, json: cli.global.json, quiet: cli.global.quiet };
    if let Some(wrong) = wrong_options(&cli) {
        eprintln!("error[E0602]: {wrong}");
        return 2;
    }
    if let Some(bytes) = cli.global.memory {
        tessera_runtime::tensor::bound_memory(bytes);
    }
    let profile = match &cli.command {
        Some(Command::Profile { kept, .. }) => Some(kept.clone()),
        Some(Command::Advise { advised, .. }) => {
            Some(Kept { advise: Some(advised.clone()), roof: true, ..Kept::default() })
        }
        _ => None,
    };
    let mut setup = Setup { global: cli.global, style, stack_bytes, profile, gate: None, held: None };
    if let Some(unusable) = unusable_target(&setup, &cli.command) {
        setup.show(&[unusable], &SourceMap::default());
        return 1;
    }
    if let Some(taken) = taken_target(&setup) {
        eprintln!("{taken}");
    }
    match cli.command {
        None | Some(Command::Repl) => crate::repl::repl(&setup),
        Some(Command::Run { file, args, interpret: true }) => {
            setup.gate = Some(budget::kept);
            crate::interpret::interpret(&setup, &file, &args)
        }
        Some(
            Command::Run { file, args, .. } | Command::Profile { file, args, .. } | Command::Advise { file, args, .. },
        ) => {
            setup.gate = Some(budget::kept);
            program::run(&mut setup, &file, args)
        }
        Some(Command::Plan { file, topology, of, best, args }) => {
            let asked = crate::plan::Asked { file: &file, topology: &topology, best, of: &of, args };
            crate::plan::plan(&setup, asked)
        }
        Some(Command::View { file, port, no_open, profile, args }) => {
            let asked = crate::view::Asked { file: &file, port, open: !no_open, profile, args };
            crate::view::view(&setup, asked)
        }
        Some(Command::Tune { file, search, args }) => {
            crate::tuning::tune(&setup, &crate::tuning::Asked { file, args, search })
        }
        Some(Command::Check { files }) => check_files(&setup, &files),
        Some(Command::Fmt { files, write, check, stdout: _ }) => {
            let then = match (write, check) {
                (true, _) => Then::Write,
                (_, true) => Then::Check,
                _ => Then::Print,
            };
            u8::from(!format::format(&files, then, style))
        }
        Some(Command::Emit { file, of, ir, emit }) => {
            let of_target = ir.of_target();
            setup.global.target = of_target.unwrap_or(setup.global.target);
            let ir = of_target.map_or(ir, |_| Ir::Asm);
            emit::emit(&setup, &file, ir, emit.as_deref(), &of)
        }
        Some(Command::Explain { topic, of }) => explained(&setup, topic.as_deref(), &of),
        Some(Command::Lsp) => crate::lsp::serve(&setup),
        #[cfg(feature = "jupyter")]
        Some(Command::Jupyter { action }) => crate::jupyter::jupyter(&setup, &action),
        #[cfg(not(feature = "jupyter"))]
        Some(Command::Jupyter { .. }) => {
            eprintln!(
                "error[E0602]: this build has no kernel for notebooks: it was built without the feature `jupyter`"
            );
            2
        }
        Some(Command::New { name }) => crate::new::new(&setup, &name),
        Some(Command::Completions { shell }) => {
            let mut text = vec![];
            clap_complete::generate(shell, &mut Cli::command(), "tessera", &mut text);
            out(&String::from_utf8_lossy(&text));
            0
        }
        Some(Command::Help { topic }) => crate::help::help(&setup, topic.as_deref()),
        Some(Command::Doctor) => {
            let (parts, ok) = doctor::doctor(&setup.cache(), notebooks());
            match setup.global.json {
                true => out_json(&json!({"schema": 1, "ok": ok, "parts": parts})),
                false => out(&doctor::text(&parts)),
            }
            u8::from(!ok)
        }
        Some(Command::Cache { action }) => cache(&setup, action),
        Some(Command::Test { files, only, jobs, junit }) => {
            let jobs = jobs.map(|n| n as usize);
            let asked = crate::testing::Asked { paths: &files, only: only.as_deref(), jobs, junit: junit.as_deref() };
            crate::testing::test(&setup, &asked)
        }
    }
}

/// Whether there is a kernel for notebooks, and the words for it.
fn notebooks() -> (bool, String) {
    #[cfg(feature = "jupyter")]
    return crate::jupyter::found();
    #[cfg(not(feature = "jupyter"))]
    (false, "this build has no kernel for notebooks: it was built without the feature `jupyter`".into())
}

/// `explain` of a place or a function of a file, else of a topic.
fn explained(setup: &Setup, topic: Option<&str>, of: &OfFunction) -> u8 {
    let place = topic.and_then(explain::Place::parse);
    match (topic, &of.function, place) {
        (Some(file), Some(name), _) => explain::function(setup, Path::new(file), name, of),
        (None, Some(_), _) => {
            eprintln!("error[E0602]: `--function` is a function of a file: `tessera explain FILE --function NAME`");
            2
        }
        (_, None, Some(place)) => explain::place(setup, &place, of),
        (_, None, None) => match explain::explain(topic) {
            Ok(text) => {
                topic_shown(setup, topic, &text);
                0
            }
            Err(why) => {
                match setup.global.json {
                    true => setup.show(&[Diagnostic::new(Code::E0602, Span::NONE, why)], &SourceMap::default()),
                    false => eprintln!("error: {why}"),
                }
                2
            }
        },
    }
}

/// What keeps the command from running programs on the target.
fn unusable_target(setup: &Setup, command: &Option<Command>) -> Option<Diagnostic> {
    let runs = match command {
        None
        | Some(
            Command::Repl
            | Command::Profile { .. }
            | Command::Advise { .. }
            | Command::Tune { .. }
            | Command::Test { .. },
        ) => true,
        Some(Command::Jupyter { action: JupyterAction::Run { .. } }) => true,
        Some(Command::Run { interpret, .. }) => !interpret,
        Some(_) => false,
    };
    let why = if runs { setup.target().ready().err()? } else { return None };
    Some(
        Diagnostic::new(
            Code::E0605,
            Span::NONE,
            format!("`--target {}` cannot be used: {}", setup.target().limits().target, why.why),
        )
        .help(why.help),
    )
}

/// What `--target auto` takes, where somebody wants to know.
fn taken_target(setup: &Setup) -> Option<String> {
    if !setup.global.verbose || setup.global.target != Choice::Auto || setup.global.checked {
        return None;
    }
    Some(match Gpu::first() {
        Ok(gpu) => format!("target: cuda, {}", gpu.facts().name),
        Err(e) => format!("target: cpu ({})", e.why),
    })
}

/// Options whose value this build does not offer.
fn wrong_options(cli: &Cli) -> Option<String> {
    let g = &cli.global;
    if matches!(
        cli.command,
        None | Some(Command::Repl | Command::Advise { .. } | Command::Tune { .. } | Command::Test { .. })
    ) && tessera_runtime::world::launch::is_launched()
    {
        return Some("of several processes there are only `tessera run` and `tessera profile`".into());
    }
    if g.mesh.is_some() && matches!(cli.command, None | Some(Command::Repl | Command::Jupyter { .. })) {
        return Some("a session says the sizes of its meshes itself, and `--mesh` is for a program".into());
    }
    if let Err(wrong) = crate::cache::DiskCache::default_limit() {
        return Some(wrong);
    }
    let policies = ["deterministic", "fast", "kahan_sum"];
    if !policies.contains(&g.policy.as_str()) {
        return Some(format!("there is no policy `{}`; choose one of {}", g.policy, policies.join(", ")));
    }
    None
}

fn check_files(setup: &Setup, paths: &[PathBuf]) -> u8 {
    let mut errors = 0;
    for path in paths {
        let loaded = match files::read_source(path) {
            Ok(l) => l,
            Err(d) => {
                setup.show(&[d], &SourceMap::default());
                if setup.global.json {
                    let file = path.display().to_string();
                    out_json(
                        &json!({"schema": 1, "file": file, "ok": false, "errors": 1, "warnings": 0, "compared": []}),
                    );
                }
                errors += 1;
                continue;
            }
        };
        let mut checked = check_only(setup, &loaded);
        checked.diagnostics.extend(over_budget(setup, &loaded, &checked));
        setup.show(&checked.diagnostics, &checked.sources);
        let wrong = checked.diagnostics.iter().filter(|d| d.is_error()).count();
        if setup.global.json {
            let compared = compared(&checked.kept, &checked.sources);
            let warnings = checked.diagnostics.len() - wrong;
            let file = path.display().to_string();
            out_json(
                &json!({"schema": 1, "file": file, "ok": wrong == 0, "errors": wrong, "warnings": warnings, "compared": compared}),
            );
        } else if setup.global.verbose {
            out(&kept_checks(&checked));
        }
        errors += wrong;
    }
    u8::from(errors > 0)
}

/// What budgets say of a file that is right. Most files have none, and need no whole program.
fn over_budget(setup: &Setup, loaded: &Loaded, checked: &CheckedFile) -> Vec<Diagnostic> {
    let named = checked.sources.files.iter().any(|f| budget::may_have(&f.text));
    if !named || checked.diagnostics.iter().any(Diagnostic::is_error) {
        return vec![];
    }
    let whole = program::checked(setup, loaded);
    whole.program.map_or_else(Vec::new, |p| budget::kept(setup, &Arc::new(p), &whole.sources))
}

/// What the program compares when it runs, a line each.
fn kept_checks(checked: &CheckedFile) -> String {
    let mut text = String::new();
    for (span, what) in &checked.kept {
        let place = checked.sources.line_col(*span).and_then(|(file, line, column)| {
            checked.sources.file(file).map(|f| format!("{}:{line}:{column}: ", f.path))
        });
        text.push_str(&format!("{}{what} is compared when the program runs\n", place.unwrap_or_default()));
    }
    text
}

fn cache(setup: &Setup, action: Option<CacheAction>) -> u8 {
    let cache = setup.cache();
    let Some(dir) = cache.dir().map(|d| d.display().to_string()) else {
        eprintln!("error: there is no cache directory: set TESSERA_CACHE or HOME");
        return 1;
    };
    let done = match action {
        None | Some(CacheAction::List) if setup.global.json => cache.list().map(|entries| {
            let bytes: u64 = entries.iter().map(|e| e.bytes).sum();
            let entry = |e: &crate::cache::Entry| json!({"name": e.name, "bytes": e.bytes});
            let listed = action.map(|_| entries.iter().map(entry).collect::<Vec<_>>());
            out_json(&json!({"schema": 1, "folder": dir, "kernels": entries.len(), "bytes": bytes, "limit": cache.limit(), "entries": listed}));
        }),
        None | Some(CacheAction::List) => cache.list().map(|entries| {
            for e in entries.iter().filter(|_| action.is_some()) {
                out(&format!("{:>10}  {}\n", e.bytes, e.name));
            }
            let total = human_bytes(entries.iter().map(|e| e.bytes).sum());
            let limit = human_bytes(cache.limit());
            out(&format!("{} kernels, {total} of at most {limit} in {dir}\n", entries.len()));
        }),
        Some(CacheAction::Clear) if setup.global.json => {
            cache.clear().map(|n| out_json(&json!({"schema": 1, "folder": dir, "removed": n})))
        }
        Some(CacheAction::Clear) => cache.clear().map(|n| out(&format!("{n} kernels removed from {dir}\n"))),
    };
    match done {
        Ok(()) => 0,
        Err(e) => {
            eprintln!("error[E0706]: the cache in {dir} cannot be used: {e}");
            1
        }
    }
}

/// Says that the compiler itself is at fault, and what to send.
pub fn report_bug(what: &str) {
    let args: Vec<String> = std::env::args().skip(1).collect();
    eprintln!("error[E0999]: this is a bug in tessera, not in the program");
    eprintln!("  = note: {}", what.replace('\n', "\n          "));
    eprintln!("  = note: called as `tessera {}`, version {}", args.join(" "), env!("CARGO_PKG_VERSION"));
    eprintln!("  = help: please report it with the program that caused it");
}
