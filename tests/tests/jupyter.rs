//! The kernel for notebooks, driven by the clients of Jupyter (`tests/jupyter/client.py`), which `./x fetch jupyter` obtains.

use std::process::Command;
use tessera_tests::program::{binary, fetched, root};

#[test]
fn clients_are_answered() {
    // Without the last file the environment is not whole.
    let whole = fetched("jupyter").filter(|folder| folder.join("made").exists());
    let Some(python) = whole.map(|folder| folder.join("bin/python")) else { return };
    let ran = Command::new(python)
        .arg(root().join("tests/jupyter/client.py"))
        .arg(binary())
        .arg(root().join("examples/first.ipynb"))
        .env("TESSERA_MACHINE", "reference")
        .env("TESSERA_CACHE", std::env::temp_dir().join("tessera-test-cache"))
        .output()
        .expect("the Python of the environment starts");
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    eprintln!("{out}");
    assert!(ran.status.success(), "{out}\n{err}");
}
