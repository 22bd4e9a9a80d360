//! `tessera new NAME`: a folder with a small program, a test and a README.

use crate::program::{Setup, out};
use std::path::Path;
use tessera_base::{Code, Diagnostic, Span};
use tessera_resolve::source::SourceMap;

const PROGRAM: &str = r#""""Fits a line to points."""

import std.args as args
import model

key = random.key(args.number("--seed", 0))
x = random.normal(key, (64, 1))
y = 3.0 * x + 0.5
line = model.fit(x, y, args.number("--steps", 200))
args.end("Fits a line to points.")
print(f"y = {float(line.slope):.2f} x + {float(line.height):.2f}")
"#;

const MODEL: &str = r#""""A line, and how it is fitted."""


struct Line:
    slope: Tensor[f32]
    height: Tensor[f32]


def loss(line: Line, x: Tensor[N, 1, f32], y: Tensor[N, 1, f32]) -> Tensor[f32]:
    """The mean of the squared errors.

    >>> print(loss(Line(op.array(2.0), op.array(0.0)), op.ones((3, 1)), op.ones((3, 1))))
    1.0
    """
    return op.mean((line.slope * x + line.height - y) ** 2)


def fit(x: Tensor[N, 1, f32], y: Tensor[N, 1, f32], steps: int) -> Line:
    """The line through some points, by gradient descent."""
    line = Line(op.array(0.0), op.array(0.0))
    for step in range(steps):
        change = autodiff.grad(loss)(line, x, y)
        line = Line(line.slope - 0.1 * change.slope, line.height - 0.1 * change.height)
    return line


def test_a_line_is_found():
    x = op.array([[-1.0], [0.0], [1.0]])
    line = fit(x, 2.0 * x + 1.0, 200)
    assert abs(float(line.slope) - 2.0) < 0.01 and abs(float(line.height) - 1.0) < 0.01


def test_no_error_no_loss(x: Tensor[N, 1, f32]):
    assert float(loss(Line(op.array(1.0), op.array(0.0)), x, x)) == 0.0
"#;

const README: &str = "# NAME

```sh
tessera run main.tsr          # fits a line and prints it; `--steps 500`, `--seed 1`
tessera test .                # the tests and examples of all files
tessera fmt --write *.tsr     # one form for all programs
```

`model.tsr` has the functions, `main.tsr` is the program.
";

/// Makes the folder; returns the exit code.
pub fn new(setup: &Setup, path: &Path) -> u8 {
    let wrong = |code: Code, message: String| {
        setup.show(&[Diagnostic::new(code, Span::NONE, message)], &SourceMap::default());
        1
    };
    let Some(name) = path.file_name().map(|n| n.to_string_lossy().into_owned()) else {
        return wrong(Code::E0602, format!("`{}` names no new folder", path.display()));
    };
    if path.symlink_metadata().is_ok() {
        return wrong(Code::E0706, format!("`{}` is there already, and nothing of it is overwritten", path.display()));
    }
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() {
        return wrong(Code::E0706, format!("there is no folder `{}`", parent.display()));
    }
    // Under another name until it is whole: either all of it is there or nothing.
    let readme = README.replace("NAME", &name);
    let files = [("main.tsr", PROGRAM), ("model.tsr", MODEL), ("README.md", readme.as_str())];
    let made = tempfile::Builder::new().prefix(".tessera-new-").tempdir_in(parent).and_then(|dir| {
        let inner = dir.path().join("project");
        std::fs::create_dir(&inner)?;
        files.iter().try_for_each(|(name, text)| std::fs::write(inner.join(name), text))?;
        std::fs::rename(&inner, path)
    });
    match made {
        Ok(()) => {
            if !setup.global.quiet {
                let at = path.display();
                out(&format!("{at} is there: `cd {at}`, then `tessera run main.tsr`\n"));
            }
            0
        }
        Err(e) => wrong(Code::E0706, format!("`{}` cannot be made: {e}", path.display())),
    }
}
