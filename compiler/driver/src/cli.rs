//! The command line.

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use tessera_base::Mesh;
use tessera_ir::hints::Objective;

/// Tessera: a statically checked tensor language.
#[derive(Parser, Debug)]
#[command(name = "tessera", version, about, disable_help_subcommand = true, args_conflicts_with_subcommands = false)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Options that every command takes.
#[derive(Args, Debug, Clone)]
pub struct Global {
    /// Where tensor code runs
    #[arg(long, global = true, value_enum, default_value = "cpu", value_name = "TARGET")]
    pub target: Choice,
    /// Threads that kernels run on (default: all cores)
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Virtual devices on this machine
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub devices: Option<u32>,
    /// The sizes of the program's mesh with these axes, in place of its own (`dp=9,tp=8`)
    #[arg(long, global = true, value_name = "AXIS=N,…", value_parser = mesh)]
    pub mesh: Option<Mesh>,
    /// The order that sums keep: deterministic, fast or kahan_sum
    #[arg(long, global = true, default_value = "deterministic", value_name = "POLICY")]
    pub policy: String,
    /// Results as JSON on stdout, diagnostics as JSON on stderr, one object a line (docs/json.md)
    #[arg(long, global = true)]
    pub json: bool,
    /// When to color
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: Color,
    /// Fewer messages: errors only
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// More messages: stages, times and cache hits on stderr
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Run kernels in an interpreter that checks every access, and hold values against their types (slow)
    #[arg(long, global = true)]
    pub checked: bool,
    /// Stop at the first operator that makes a NaN or an infinity of finite operands
    #[arg(long, global = true)]
    pub check_nan: bool,
    /// Do not read or write the cache of compiled kernels
    #[arg(long, global = true)]
    pub no_cache: bool,
    /// What a tensor region may take (`2GiB`, `500MB`): values are computed again rather than kept
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
}

/// What `--target` names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Choice {
    /// The processor
    #[default]
    Cpu,
    /// The first NVIDIA GPU
    Cuda,
    /// The first device of OpenCL that takes SPIR-V, a GPU before others
    Opencl,
    /// Code for AMD's GPUs, to be read (`emit`)
    Amdgpu,
    /// The first NVIDIA GPU, and where there is none that can be used the processor
    Auto,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

/// One function of a program, looked at without the rest of it.
#[derive(Args, Debug, Clone, Default)]
pub struct OfFunction {
    /// One function, from its annotations: nothing of the program runs (`f`, or `nn.linear` of a module that the file imports)
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// Sizes of its signature and mesh axes that it names (or that the text of an IR leaves open); others are chosen, and told
    #[arg(long, value_name = "N=4,D=8", value_parser = sizes)]
    pub sizes: Option<Sizes>,
    /// Values of numbers, bools, strings and dtypes among its parameters (`n=3,mode=\"same\"`); of a list, how long it is
    #[arg(long = "with", value_name = "n=3", value_parser = values, requires = "function")]
    pub values: Option<Values>,
}

impl OfFunction {
    /// An option that means nothing without a function.
    pub fn misplaced(&self) -> Option<&'static str> {
        (self.function.is_none() && self.sizes.is_some()).then_some("--sizes")
    }
}

/// What `--sizes` says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sizes(pub Vec<(String, i64)>);

/// What `--with` says, as it is written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Values(pub Vec<(String, String)>);

/// Where a profile is kept, besides what is shown.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug, Default)]
pub struct Kept {
    /// Measure what this machine reaches, once, and show how much of it kernels do
    #[arg(long)]
    pub roof: bool,
    /// Write a time line of every run of every kernel, which Perfetto and Chrome open
    #[arg(long, value_name = "FILE.json")]
    pub trace: Option<PathBuf>,
    /// Write a flame graph: files, lines and kernels as wide as their time
    #[arg(long, value_name = "FILE.svg")]
    pub flame: Option<PathBuf>,
    /// Count cycles, instructions, cache misses and vector instructions of each kernel, where the machine does
    #[arg(long)]
    pub counters: bool,
    /// Show which operations are one kernel, and why it takes others from memory
    #[arg(long)]
    pub fusion: bool,
    /// Show who holds memory where the most of it is in use
    #[arg(long)]
    pub peak: bool,
    /// Write the profile, for `--against`
    #[arg(long, value_name = "FILE.json")]
    pub save: Option<PathBuf>,
    /// Show what changed since a profile that was written with `--save`
    #[arg(long, value_name = "FILE.json")]
    pub against: Option<PathBuf>,
    /// The times are asked for to give advice.
    #[arg(skip)]
    pub advise: Option<Advised>,
}

/// Where advice is kept, besides what is shown.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug, Default)]
pub struct Advised {
    /// Write what is found, for `--against`
    #[arg(long, value_name = "FILE.json")]
    pub save: Option<PathBuf>,
    /// Show what the edits brought since advice that was written with `--save`, beside what they should bring
    #[arg(long, value_name = "FILE.json")]
    pub against: Option<PathBuf>,
}

/// How schedules are searched.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug)]
pub struct Search {
    /// Schedules of a kernel that are measured, at most
    #[arg(long, default_value = "50", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub samples: u32,
    /// What is to be small: latency, throughput, memory, compile or energy
    #[arg(long, default_value = "latency", value_name = "O", value_parser = objective)]
    pub objective: Objective,
    /// The name of the file of records (default: that of the program)
    #[arg(long, value_name = "NAME", value_parser = cache_name)]
    pub cache: Option<String>,
    /// Measure nothing, and end with 1 where a kernel has no record or a record no kernel
    #[arg(long)]
    pub check: bool,
    /// Measure nothing, and end with an error where a kernel has no record
    #[arg(long, conflicts_with = "check")]
    pub frozen: bool,
    /// Remove the records of this machine that no kernel of the program asks for
    #[arg(long, conflicts_with_all = ["check", "frozen"])]
    pub prune: bool,
    /// Show the schedule of each kernel, and what keeps the nearest record from one that has none
    #[arg(long)]
    pub explain: bool,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Check, compile and run a program (`tessera FILE` is the same)
    Run {
        /// The program; `-` reads standard input
        file: PathBuf,
        /// By the interpreter of Core, which says what a program means: no kernels, and slow
        #[arg(long)]
        interpret: bool,
        /// What the program sees as `sys.args`
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Run a program and show where its time went: kernels, host code, checking, compiling
    Profile {
        /// The program; `-` reads standard input
        file: PathBuf,
        #[command(flatten)]
        kept: Kept,
        /// What the program sees as `sys.args`
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Search for the schedules with which the kernels of a program run best, and keep them in `.tessera/cache/NAME.json`
    ///
    /// The program runs up to its end: what it prints is dropped, and the files that it writes last as long as the command.
    /// Later runs take the schedules that were found. Results are the same with every schedule.
    Tune {
        /// The program
        file: PathBuf,
        #[command(flatten)]
        search: Search,
        /// What the program sees as `sys.args`
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Run a program and say what would make it faster: where, what to write instead, and what that should bring
    ///
    /// Times are measured in this run. A gain is what remains of the time after the edit, by a model of what it changes.
    Advise {
        /// The program; `-` reads standard input
        file: PathBuf,
        #[command(flatten)]
        advised: Advised,
        /// What the program sees as `sys.args`
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Show the structure of a program on a page in a browser: functions, graphs, kernels, memory, layouts, times
    ///
    /// The page is for this machine alone, at an address that nobody can guess. It follows the file as it is edited. The
    /// program runs only when somebody asks for it. Ctrl-C ends the server, with exit code 0.
    View {
        /// The program
        file: PathBuf,
        /// The port on 127.0.0.1; 0 takes one that is free
        #[arg(long, default_value = "0", value_name = "N")]
        port: u16,
        /// Do not open a browser; the address is printed
        #[arg(long)]
        no_open: bool,
        /// Run the program at once and show the time of each kernel
        #[arg(long)]
        profile: bool,
        /// What the program sees as `sys.args` when it runs
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// What a program needs on a machine that is not there: memory, bytes, time, predicted
    Plan {
        /// The program, or a transformer by its numbers (`.json`)
        file: PathBuf,
        /// The machine: nvl72, dgx-h100, a100, or a file that describes one
        #[arg(long, default_value = "nvl72", value_name = "NAME|FILE")]
        topology: String,
        #[command(flatten)]
        of: OfFunction,
        /// How many ways to divide a transformer are shown
        #[arg(long, default_value = "5", value_name = "N")]
        best: usize,
        /// What the program sees as `sys.args`
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Check programs without running them
    Check {
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Print programs in the one canonical form, or write them in it
    Fmt {
        /// Programs; `-` reads standard input
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Write the files instead of printing them
        #[arg(short, long)]
        write: bool,
        /// Print and change nothing; exit 1 if a file is not in canonical form
        #[arg(long, conflicts_with = "write")]
        check: bool,
        /// Print the programs, which is done without an option too
        #[arg(long, conflicts_with_all = ["write", "check"])]
        stdout: bool,
    },
    /// Show what a program becomes
    ///
    /// Tensor code becomes kernels for sizes that are known when it runs, so the program is run up to its end (not for
    /// `ast`, `core` and `host`): what it prints is dropped, and the files that it writes last as long as the command.
    /// With `--function` nothing runs: the function's annotations say what it is called with.
    Emit {
        /// The program; Core, a graph, a schedule or a kernel as text; or an ONNX model
        file: PathBuf,
        #[command(flatten)]
        of: OfFunction,
        /// Which form
        #[arg(long, value_enum, default_value = "graph")]
        ir: Ir,
        /// Only the graph after this pass (`--emit=after:PASS`; `none` leaves it as it is), or `list` for the names
        #[arg(long, value_name = "after:PASS")]
        emit: Option<String>,
    },
    /// Explain a diagnostic code (`E0201`), an operator (`softmax`), a function of a file, or all codes
    ///
    /// Of a function: its signature with full types, what it does besides computing tensors, what it compares when it runs,
    /// its kernels and what keeps them apart, its memory. Of a line besides: its operations, the kernels that compute them with
    /// their schedules, what was weighed against what. Nothing runs.
    Explain {
        /// A code or an operator; with `--function`, a file; `FILE:LINE` or `FILE:LINE:COLUMN` is the function there
        topic: Option<String>,
        #[command(flatten)]
        of: OfFunction,
    },
    /// What this machine offers and what is missing
    Doctor,
    /// Serve an editor: the language server protocol over standard input and output
    ///
    /// Editors start it themselves; `editors/` has what sets them up.
    Lsp,
    /// The cache of compiled kernels: where it is and what it holds
    ///
    /// Beyond `TESSERA_CACHE_SIZE` (1GiB if not set), kernels go that have not been used for the longest time.
    /// `TESSERA_CACHE` names the folder.
    Cache {
        #[command(subcommand)]
        action: Option<CacheAction>,
    },
    /// Run `test_*` functions, and `>>>` examples in docstrings and Markdown
    ///
    /// A test function with parameters is called with drawn ones: tensors of small and prime sizes by its annotations, ints,
    /// floats and bools. The examples of a Markdown file are one session, from its top to its end. With `--json` there is an
    /// object a case, a line each, on standard output.
    Test {
        /// Programs, Markdown files, or folders with such
        #[arg(required = true, value_name = "PATHS")]
        files: Vec<PathBuf>,
        /// Only tests whose name contains this
        #[arg(short = 'k', long = "filter", value_name = "TEXT")]
        only: Option<String>,
        /// Files that are tested at once (default: as many as there are cores)
        #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
        jobs: Option<u32>,
        /// Write the results to this file as JUnit XML
        #[arg(long, value_name = "FILE")]
        junit: Option<PathBuf>,
    },
    /// The interactive session (also: `tessera` alone)
    Repl,
    /// A kernel for notebooks (Jupyter): install it, remove it, or be it
    Jupyter {
        #[command(subcommand)]
        action: JupyterAction,
    },
    /// Begin a project: a folder with a small program, a test and a README
    New {
        /// The folder, which must not be there yet
        name: PathBuf,
    },
    /// Print what completes this command line in a shell
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Help on a command, an operator, a code or a function of the standard library
    Help {
        /// `run`, `softmax`, `E0201`, `nn.linear`; nothing lists the commands
        topic: Option<String>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Ir {
    Ast,
    /// The typed program: a form for each thing that happens, conversions and checks among them
    Core,
    Host,
    Graph,
    /// A line for each kernel: launches, bytes, operations
    Kernels,
    Schedule,
    Tile,
    Llvm,
    Asm,
    /// Assembly for NVIDIA's GPUs: `asm` of `--target cuda`
    Ptx,
    /// Assembly for OpenCL: `asm` of `--target opencl`
    Spirv,
    /// Assembly for AMD's GPUs: `asm` of `--target amdgpu`
    Amdgpu,
}

impl Ir {
    /// The target whose assembly this is, where that is not the target of the command.
    pub fn of_target(self) -> Option<Choice> {
        match self {
            Ir::Ptx => Some(Choice::Cuda),
            Ir::Spirv => Some(Choice::Opencl),
            Ir::Amdgpu => Some(Choice::Amdgpu),
            _ => None,
        }
    }

    /// As the command line says it.
    pub fn name(self) -> String {
        self.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default()
    }
}

#[derive(Subcommand, Debug, Clone, PartialEq, Eq)]
pub enum JupyterAction {
    /// Tell Jupyter of the kernel: its folder is written for this user, or below a prefix
    Install {
        #[command(flatten)]
        prefix: Prefix,
    },
    /// Remove what `install` wrote
    Uninstall {
        #[command(flatten)]
        prefix: Prefix,
    },
    /// The kernel itself, which Jupyter starts
    Run {
        /// The connection file: where to listen, and the key of the signatures
        #[arg(value_name = "CONNECTION_FILE")]
        connection: PathBuf,
    },
}

/// Where the kernel's folder is.
#[derive(Args, Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefix {
    /// For this user, which is done without an option too
    #[arg(long, conflicts_with_all = ["prefix", "sys_prefix"])]
    pub user: bool,
    /// Below DIR, in share/jupyter/kernels
    #[arg(long, value_name = "DIR", conflicts_with = "sys_prefix")]
    pub prefix: Option<PathBuf>,
    /// In the Python environment whose `python3` comes first on the path
    #[arg(long)]
    pub sys_prefix: bool,
}

#[derive(Subcommand, Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheAction {
    /// List the entries with their sizes
    List,
    /// Remove every entry
    Clear,
}

/// `2GiB`, `1.5GB`, `4096`: bytes.
pub fn size(text: &str) -> Result<u64, String> {
    let found = tessera_base::amounts::bytes(text).filter(|n| *n > 0);
    found.ok_or_else(|| format!("`{}` is no size such as 2GiB, 500MB or 4096", text.trim()))
}

/// `NAME=VALUE` as often as they stand there; a comma in quotes or brackets belongs to a value.
fn assignments(text: &str) -> Result<Vec<(String, String)>, String> {
    let (mut parts, mut depth, mut quoted) = (vec![String::new()], 0i32, false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '[' | '(' if !quoted => depth += 1,
            ']' | ')' if !quoted => depth -= 1,
            _ => {}
        }
        match parts.last_mut() {
            Some(part) if c != ',' || quoted || depth > 0 => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    let mut out: Vec<(String, String)> = vec![];
    for part in parts {
        let (name, value) = part.split_once('=').ok_or_else(|| format!("`{}` is not `NAME=VALUE`", part.trim()))?;
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        if name.is_empty() || value.is_empty() {
            return Err(format!("`{}` is not `NAME=VALUE`", part.trim()));
        }
        if out.iter().any(|(other, _)| *other == name) {
            return Err(format!("`{name}` is given twice"));
        }
        out.push((name, value));
    }
    Ok(out)
}

/// `N=4,D=8`.
fn sizes(text: &str) -> Result<Sizes, String> {
    let size = |(name, value): (String, String)| {
        let size = value.parse().ok().filter(|n| (0..=1 << 32).contains(n));
        Ok((name, size.ok_or_else(|| format!("`{value}` is no size from 0 to 2^32"))?))
    };
    Ok(Sizes(assignments(text)?.into_iter().map(size).collect::<Result<_, String>>()?))
}

/// `n=3,rate=0.5`.
fn values(text: &str) -> Result<Values, String> {
    assignments(text).map(Values)
}

/// An objective by its name.
fn objective(text: &str) -> Result<Objective, String> {
    let names = Objective::ALL.map(Objective::name).join(", ");
    Objective::named(text).ok_or_else(|| format!("it is one of {names}"))
}

/// A name that becomes a file.
fn cache_name(text: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match text.is_empty() || text.starts_with('.') || text.len() > 100 || !text.chars().all(fine) {
        true => Err("it becomes the file `.tessera/cache/NAME.json`: letters, digits, `_`, `-` and `.`".into()),
        false => Ok(text.to_owned()),
    }
}

/// `dp=9,tp=8`.
fn mesh(text: &str) -> Result<Mesh, String> {
    let axis = |part: &str| {
        let (name, size) = part.split_once('=').ok_or_else(|| format!("`{part}` is not `AXIS=N`"))?;
        let size = size.trim().parse().ok().filter(|n| (1..=1 << 20).contains(n));
        Ok((name.trim().to_owned(), size.ok_or_else(|| format!("`{part}` has no size from 1 to 2^20"))?))
    };
    let mesh = Mesh { axes: text.split(',').map(axis).collect::<Result<_, String>>()? };
    let devices = mesh.axes.iter().try_fold(1u64, |n, a| n.checked_mul(a.1));
    match devices.is_some_and(|n| n <= 1 << 20) {
        true => Ok(mesh),
        false => Err("it has more than 2^20 devices".into()),
    }
}

/// The arguments with `tessera FILE …` spelled out as `tessera run FILE …`, and with `--` after
/// the file of a command that runs it: what follows it is the program's.
pub fn arguments(raw: impl Iterator<Item = std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    let mut args: Vec<std::ffi::OsString> = raw.collect();
    let mut at = after_options(&args, 1);
    let is_file = args.get(at).is_some_and(|a| a == "-" || a.to_string_lossy().ends_with(".tsr"));
    if is_file {
        args.insert(at, "run".into());
    }
    if args.get(at).is_some_and(|a| a == "run" || a == "profile" || a == "advise") {
        at = after_options(&args, at + 1);
        if args.get(at + 1).is_some_and(|a| a != "--") {
            args.insert(at + 1, "--".into());
        }
    }
    args
}

/// The position of the first argument from `at` on that is neither an option nor its value.
fn after_options(args: &[std::ffi::OsString], mut at: usize) -> usize {
    let tool = Cli::command();
    let command = args.get(..at).and_then(|before| before.last()).and_then(|name| tool.find_subcommand(name));
    let takes_value = |arg: &str| {
        let is = |a: &&clap::Arg| a.get_long().is_some_and(|long| arg.strip_prefix("--") == Some(long));
        let mut known = tool.get_arguments().chain(command.iter().flat_map(|c| c.get_arguments()));
        known.find(is).is_some_and(|a| a.get_action().takes_values())
    };
    while let Some(arg) = args.get(at).and_then(|a| a.to_str()) {
        if takes_value(arg) {
            at += 2;
        } else if arg.starts_with('-') && arg != "-" {
            at += 1;
        } else {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Cli {
        let raw = std::iter::once("tessera").chain(args.iter().copied()).map(std::ffi::OsString::from);
        Cli::try_parse_from(arguments(raw)).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn a_file_alone_is_run() {
        let cli = parse(&["--threads", "2", "a.tsr", "--threads", "x"]);
        let Some(Command::Run { file, args, .. }) = cli.command else { panic!("not run") };
        assert_eq!(file, PathBuf::from("a.tsr"));
        assert_eq!(args, ["--threads", "x"]);
        assert_eq!(cli.global.threads, Some(2));
    }

    #[test]
    fn sizes_have_units() {
        let all = ["4096", "1.5KiB", "2GiB", "500 MB", "7B"].map(size);
        assert_eq!(all, [Ok(4096), Ok(1536), Ok(2 << 30), Ok(500_000_000), Ok(7)]);
        assert!(["", "GiB", "2G", "-1MB", "0", "1e30TB", "NaN"].iter().all(|t| size(t).is_err()));
        assert_eq!(parse(&["--memory", "1KiB", "a.tsr", "x"]).global.memory, Some(1024));
    }

    #[test]
    fn sizes_and_values_of_a_function_are_named() {
        assert_eq!(sizes("N=4, D=8"), Ok(Sizes(vec![("N".into(), 4), ("D".into(), 8)])));
        assert!(["", "N", "N=", "N=-1", "N=4,N=5", "N=4,", "=4", "N=1e3"].iter().all(|t| sizes(t).is_err()));
        let given = values("mode=\"a,b\",n=3").map(|v| v.0);
        assert_eq!(given, Ok(vec![("mode".into(), "\"a,b\"".into()), ("n".into(), "3".into())]));
        let raw = ["tessera", "emit", "a.tsr", "--with", "n=4"].map(std::ffi::OsString::from);
        assert!(Cli::try_parse_from(arguments(raw.into_iter())).is_err());
    }

    #[test]
    fn options_after_profile_are_the_tools() {
        let cli = parse(&["profile", "--trace", "t.json", "a.tsr", "--trace"]);
        let Some(Command::Profile { file, kept, args }) = cli.command else { panic!("not a profile") };
        assert_eq!((file, kept.trace, args), ("a.tsr".into(), Some("t.json".into()), vec!["--trace".to_owned()]));
    }

    #[test]
    fn options_after_run_are_the_tools() {
        let cli = parse(&["run", "--devices", "4", "a.tsr"]);
        assert_eq!(cli.global.devices, Some(4));
    }
}
