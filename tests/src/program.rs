//! Running the `tessera` program on a text, as a user would.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a run left behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_owned()
}

/// The program under test: `$TESSERA`, else the release build, else the debug build.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("TESSERA") {
        return path.into();
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let release = target.join("release/tessera");
    if release.exists() { release } else { target.join("debug/tessera") }
}

/// Time after which a run counts as hanging.
pub const LIMIT: Duration = Duration::from_secs(150);

/// Runs the program in `dir` with a cache of its own.
pub fn run_in(dir: &Path, args: &[&str], input: &str) -> std::io::Result<Ran> {
    let mut command = Command::new(binary());
    command.args(args).current_dir(dir);
    run_command(&mut command, input)
}

/// What starts a program several times, where it is installed. To be followed by the arguments of
/// `mpirun` and of the program.
pub fn mpirun(dir: &Path) -> Option<Command> {
    let there = Command::new("mpirun").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_err() {
        eprintln!("not run: there is no `mpirun` here");
        return None;
    }
    let mut command = Command::new("mpirun");
    // More processes than cores, and as any user.
    command.args(["--allow-run-as-root", "--oversubscribe"]).current_dir(dir);
    Some(command)
}

/// Runs `tessera ARGS` in so many processes; `None` where there is no `mpirun`.
pub fn run_processes(dir: &Path, processes: usize, args: &[&str]) -> Option<Ran> {
    let mut command = mpirun(dir)?;
    command.args(["-n", &processes.to_string()]).arg(binary()).args(args);
    Some(run_command(&mut command, "").unwrap_or_else(|e| panic!("{e}")))
}

/// The same in one.
pub fn run_alone(dir: &Path, args: &[&str]) -> Ran {
    run_in(dir, args, "").unwrap_or_else(|e| panic!("{e}"))
}

/// The processes that run the program in a folder.
pub fn processes_in(dir: &Path) -> BTreeSet<u32> {
    let dir = dir.canonicalize().unwrap_or_else(|e| panic!("{e}"));
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|p| p.file_name().to_str()?.parse::<u32>().ok());
    let ours = |p: &u32| {
        let link = |what: &str| std::fs::read_link(format!("/proc/{p}/{what}")).ok();
        link("cwd").is_some_and(|d| d == dir) && link("exe").is_some_and(|e| Some(e) == binary().canonicalize().ok())
    };
    numbers.filter(ours).collect()
}

/// The programs of a folder of the repository with their names, in order.
pub fn sources(folder: &str) -> Vec<(String, String)> {
    let files = std::fs::read_dir(root().join(folder)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files.map(|f| f.path()).collect();
    paths.sort();
    let name = |p: &PathBuf| p.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    paths.iter().map(|p| (name(p), std::fs::read_to_string(p).unwrap_or_default())).collect()
}

/// Runs a command as tests run the program.
pub fn run_command(command: &mut Command, input: &str) -> std::io::Result<Ran> {
    let mut child = command
        .env("NO_COLOR", "1")
        .env("TERM", "dumb")
        .env("TESSERA_MACHINE", "reference")
        .env("TESSERA_CACHE", std::env::temp_dir().join("tessera-test-cache"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (stdin, input) = (child.stdin.take(), input.to_owned());
    // Beside the readers: a program may print before it has read all. One that does not read its input closes the pipe.
    std::thread::spawn(move || stdin.map(|mut pipe| pipe.write_all(input.as_bytes())));
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let read = |pipe: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = vec![];
            if let Some(mut p) = pipe {
                let _ = std::io::Read::read_to_end(&mut p, &mut bytes);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let out = read(out.map(|p| Box::new(p) as _));
    let err = read(err.map(|p| Box::new(p) as _));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let text = |t: std::thread::JoinHandle<String>| t.join().unwrap_or_default();
    let (out, mut err) = (text(out), text(err));
    if status.is_none() {
        err.push_str("\n(no end within the time limit)\n");
    }
    Ok(Ran { code: status.and_then(|s| s.code()).unwrap_or(-1), out, err })
}

/// Writes `source` as `main.tsr` into a fresh directory and runs `tessera ARGS main.tsr`.
pub fn run_source(source: &str, args: &[&str]) -> std::io::Result<Ran> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("main.tsr"), source)?;
    let mut all = args.to_vec();
    all.push("main.tsr");
    run_in(dir.path(), &all, "")
}

/// Where `./x fetch` keeps what it obtained, if it obtained this.
pub fn fetched(name: &str) -> Option<PathBuf> {
    let from = |v: &str| std::env::var_os(v).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = from("TESSERA_CACHE")
        .or_else(|| from("XDG_CACHE_HOME").map(|d| d.join("tessera")))
        .or_else(|| from("HOME").map(|d| d.join(".cache/tessera")))?;
    let folder = cache.join("data").join(name);
    if !folder.exists() {
        eprintln!("not run: `./x fetch {name}` has not been done");
        return None;
    }
    Some(folder)
}
