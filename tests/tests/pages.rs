//! Every diagnostic has a page, and the page's programs do what the page says.

use tessera_base::Code;
use tessera_tests::golden::blocks;
use tessera_tests::program::run_source;

/// Codes that no program can cause by its text alone: they need a broken machine, an interrupt
/// or another command than `run`.
const NOT_SHOWN: &[&str] = &[
    "E0012", "E0601", "E0602", "E0603", "E0604", "E0605", "E0606", "E0713", "E0714", "E0717", "E0718", "E0720",
    "E0721", "E0722", "E0999", "W0402", "W0601", "W0602", "W0603",
];

#[test]
fn pages_show_their_diagnostics() {
    let mut complaints = vec![];
    for &code in Code::ALL {
        let page = code.page();
        if !page.starts_with(&format!("# {code}: ")) || page.lines().filter(|l| !l.trim().is_empty()).count() < 3 {
            complaints.push(format!("{code}: the page needs a title and an explanation"));
            continue;
        }
        let programs = blocks(page);
        let shown = programs.iter().any(|b| b.info == "tessera error" || b.info == "tessera warning");
        if !shown && !NOT_SHOWN.contains(&code.name()) {
            complaints.push(format!("{code}: the page shows no program that causes it"));
        }
        // What only the option looks for.
        let args: &[&str] = if code == Code::E0716 { &["run", "--check-nan"] } else { &["run"] };
        for b in programs {
            let want = match b.info.as_str() {
                "tessera error" => 1,
                "tessera" | "tessera warning" => 0,
                _ => continue,
            };
            match run_source(&b.text, args) {
                Err(e) => complaints.push(format!("{code}: {e}")),
                Ok(r) => {
                    let named = r.err.contains(&format!("[{code}]"));
                    if r.code != want || named != (b.info != "tessera") {
                        complaints
                            .push(format!("{code}: line {} ({}) exits {} and says\n{}", b.line, b.info, r.code, r.err));
                    }
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}
