//! What programs leave on the disk: files of the user, and the cache of compiled kernels.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tessera_tests::program::{Ran, binary, run_command, run_in};

fn temp() -> tempfile::TempDir {
    tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"))
}

fn write(path: &Path, content: impl AsRef<[u8]>) {
    std::fs::write(path, content).unwrap_or_else(|e| panic!("{e}"));
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Runs a program in a folder.
fn run(dir: &Path, source: &str, args: &[&str]) -> Ran {
    write(&dir.join("main.tsr"), source);
    run_in(dir, &[args, &["main.tsr"]].concat(), "").unwrap_or_else(|e| panic!("{e}"))
}

/// Names in a folder that begin so.
fn names(dir: &Path, begin: &str) -> Vec<String> {
    let all = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = all.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|n| n.starts_with(begin));
    names.sort();
    names
}

/// Runs a program with a cache of its own.
fn run_with_cache(dir: &Path, source: &str, size: &str) -> Ran {
    write(&dir.join("main.tsr"), source);
    let out = Command::new(binary())
        .args(["run", "main.tsr"])
        .current_dir(dir)
        .env("TESSERA_CACHE", dir.join("cache"))
        .env("TESSERA_CACHE_SIZE", size)
        .env("TESSERA_ALWAYS_COMPILE", "1")
        .output()
        .unwrap_or_else(|e| panic!("{e}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: out.status.code().unwrap_or(-1), out: text(&out.stdout), err: text(&out.stderr) }
}

#[test]
fn a_cache_entry_under_anothers_name_is_built_again() {
    let dir = temp();
    let kernels = dir.path().join("cache/kernels");
    let program = |factor: &str| format!("x = op.arange(64.0)\nprint(op.exp(x * {factor}).sum())\n");
    let first = run_with_cache(dir.path(), &program("0.5"), "");
    let of_first = names(&kernels, "");
    let second = run_with_cache(dir.path(), &program("0.25"), "");
    let of_second: Vec<String> = names(&kernels, "").into_iter().filter(|n| !of_first.contains(n)).collect();
    assert_eq!((first.code, second.code, of_first.is_empty(), of_second.is_empty()), (0, 0, false, false));
    for (from, to) in of_first.iter().zip(&of_second) {
        std::fs::copy(kernels.join(from), kernels.join(to)).unwrap_or_else(|e| panic!("{e}"));
    }
    let again = run_with_cache(dir.path(), &program("0.25"), "");
    assert_eq!((again.code, &again.out), (0, &second.out), "{}", again.err);
    assert!(first.out != second.out && again.err.contains("W0601"), "{}", again.err);
}

#[test]
fn the_cache_stays_in_its_bounds_and_says_so() {
    let dir = temp();
    let cache = |args: &[&str], size: &str| {
        let mut tool = Command::new(binary());
        tool.arg("cache").args(args).current_dir(dir.path()).env("TESSERA_CACHE_SIZE", size);
        let out = tool.env("TESSERA_CACHE", dir.path().join("cache")).output().unwrap_or_else(|e| panic!("{e}"));
        let all = [&out.stdout[..], &out.stderr[..]].concat();
        (out.status.code(), String::from_utf8_lossy(&all).into_owned())
    };
    for n in 1..12 {
        let program = format!("x = op.ones(({n}, 100))\nprint(op.softmax(x @ x.T + {n}.0).sum() > 0.0)\n");
        assert_eq!(run_with_cache(dir.path(), &program, "32KiB").out, "True\n");
    }
    let bytes: u64 = std::fs::read_dir(dir.path().join("cache/kernels"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|e| e.metadata().ok())
        .map(|m| m.len())
        .sum();
    assert!((1..=32 << 10).contains(&bytes), "{bytes}");
    assert!(cache(&[], "32KiB").1.contains(" of at most 32.0 KiB in "), "{:?}", cache(&[], "32KiB"));
    assert!(cache(&["list"], "").1.contains(" of at most 1.0 GiB in "), "{:?}", cache(&["list"], ""));
    let wrong = "error[E0602]: TESSERA_CACHE_SIZE: `much` is no size such as 2GiB, 500MB or 4096\n";
    assert_eq!(cache(&[], "much"), (Some(2), wrong.to_owned()));
}

#[test]
fn a_packed_table_is_read_whole_or_refused() {
    let dir = temp();
    let mut packed = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    let rows = "1,2\n".repeat(100_000);
    let made = std::io::Write::write_all(&mut packed, rows.as_bytes()).and_then(|()| packed.finish());
    write(&dir.path().join("t.csv.gz"), made.unwrap_or_else(|e| panic!("{e}")));
    let source = "x: Tensor[N, 2, f32] = io.read_csv(\"t.csv.gz\")\nprint(N)\n";
    assert_eq!(run(dir.path(), source, &["run"]).out, "100000\n");
    let r = run(dir.path(), source, &["run", "--memory", "100KiB"]);
    assert_eq!((r.code, &*r.out), (1, ""));
    let said = "`t.csv.gz` unpacks to 390.6 KiB (400000 bytes), which is more memory than can be had";
    assert!(r.err.contains(said) && r.err.contains("`--memory` allows 100.0 KiB"), "{}", r.err);
}

#[test]
fn links_are_followed_and_modes_are_kept() {
    let dir = temp();
    let at = |name: &str| dir.path().join(name);
    write(&at("data"), "old");
    std::fs::set_permissions(at("data"), std::fs::Permissions::from_mode(0o604)).unwrap_or_else(|e| panic!("{e}"));
    std::os::unix::fs::symlink("data", at("link")).unwrap_or_else(|e| panic!("{e}"));
    write(&at("main.tsr"), "io.write_text(\"link\", \"new\")\nio.write_text(\"fresh\", \"x\")\nio.save(\"s\", 1)\n");
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 027; exec \"$0\" run main.tsr"]).arg(binary()).current_dir(dir.path());
    let r = run_command(&mut shell, "").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(r.code, 0, "{}", r.err);
    let mode = |name: &str| at(name).metadata().map_or(0, |m| m.mode() & 0o777);
    assert_eq!([mode("data"), mode("fresh"), mode("s")], [0o604, 0o640, 0o640]);
    assert!(at("link").is_symlink() && read(&at("data")) == "new");
}

#[test]
fn devices_and_pipes_stay_what_they_are() {
    let dir = temp();
    let fifo = dir.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().is_ok_and(|s| s.success());
    let reader = Command::new("cat").arg(&fifo).stdout(Stdio::piped()).spawn().unwrap_or_else(|e| panic!("{e}"));
    let source = "io.write_text(\"/dev/null\", \"x\")\nio.write_npy(\"/dev/null\", op.ones((3,)))\n\
                  io.write_csv(\"fifo\", op.arange(3))\n\
                  print(\"a\")\nio.write_text(\"/dev/stdout\", \"b\\n\")\nprint(\"c\")\n\
                  io.append_text(\"/dev/stdout\", \"d\\n\")\nprint(\"e\")\n";
    let r = run(dir.path(), source, &["run"]);
    assert_eq!((made, r.code, &*r.out), (true, 0, "a\nb\nc\nd\ne\n"), "{}", r.err);
    let through = reader.wait_with_output().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(&*through.stdout, b"0\n1\n2\n");
    let kind = |p: &Path| p.metadata().map_or(0, |m| m.mode() & 0o170_000);
    assert_eq!([kind(&fifo), kind(Path::new("/dev/null"))], [0o010_000, 0o020_000]);
    // What the shell has opened for the output goes on as well.
    let mut shell = Command::new("sh");
    shell.args(["-c", "echo first > out; exec \"$0\" run main.tsr >> out"]).arg(binary()).current_dir(dir.path());
    let reader = Command::new("cat").arg(&fifo).stdout(Stdio::null()).spawn();
    let r = run_command(&mut shell, "").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((r.code, &*read(&dir.path().join("out"))), (0, "first\na\nb\nc\nd\ne\n"), "{}", r.err);
    assert!(reader.and_then(|mut r| r.wait()).is_ok_and(|s| s.success()));
}

#[test]
fn a_killed_run_leaves_the_old_file_or_the_new_one_and_nothing_else() {
    let dir = temp();
    let source = "x = op.ones((1 << 20,))\ni = 0\nwhile True:\n    i += 1\n    io.save(\"out\", x * float(i))\n";
    write(&dir.path().join("main.tsr"), source);
    for i in 0..8 {
        let mut child = Command::new(binary())
            .args(["run", "main.tsr"])
            .current_dir(dir.path())
            .spawn()
            .unwrap_or_else(|e| panic!("{e}"));
        std::thread::sleep(Duration::from_millis(300 + 37 * i));
        let killed = child.kill().and_then(|()| child.wait());
        assert!(killed.is_ok());
    }
    let source = "x: Tensor[N, f32] = io.load(\"out\", like=op.zeros((1 << 20,)))\nprint(op.all(x == x[0]))\n\
                  io.write_text(\"done\", \"\")\n";
    let r = run(dir.path(), source, &["run"]);
    assert_eq!((r.code, &*r.out), (0, "True\n"), "{}", r.err);
    assert_eq!(names(dir.path(), ""), ["done", "main.tsr", "out"]);
}

#[test]
fn a_file_that_may_not_become_so_large_is_told_and_the_old_one_stays() {
    let dir = temp();
    let written = |source: &str| {
        write(&dir.path().join("main.tsr"), format!("x = op.ones((1 << 18,))\n{source}\nprint(\"end\")\n"));
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -f 64; exec \"$0\" run main.tsr"]).arg(binary()).current_dir(dir.path());
        let r = run_command(&mut shell, "").unwrap_or_else(|e| panic!("{e}"));
        let told = r.code == 1 && r.err.matches("error[E0706]").count() == 1 && r.err.contains("(`ulimit -f`)");
        assert!(told, "{source}: {} {}", r.code, r.err);
    };
    write(&dir.path().join("out"), "old");
    for source in [
        "io.save(\"out\", x)",
        "io.save(\"out\", op.ones((1 << 20,)))",
        "io.write_safetensors(\"out\", {\"x\": x})",
        "io.write_npy(\"out\", x)",
        "io.write_text(\"out\", \"text\" * 100000)",
    ] {
        written(source);
        assert_eq!(read(&dir.path().join("out")), "old", "{source}");
    }
    written("io.append_text(\"out\", \"text\" * 100000)");
    assert_eq!(names(dir.path(), ""), ["main.tsr", "out"]);
}

#[test]
fn names_that_the_file_itself_uses_are_refused_when_it_is_saved() {
    let dir = temp();
    for (value, name) in [
        ("{\"tessera.parts\": \"x\", \"b\": \"y\"}", "tessera.parts"),
        ("{\"tessera.blake3\": [\"x\"]}", "tessera.blake3"),
        ("{\"tessera\": {\"parts\": \"x\"}}", "tessera.parts"),
        ("{\"__metadata__\": op.ones((1 << 20,))}", "__metadata__"),
        ("{\"__metadata__\": 1}", "__metadata__"),
    ] {
        let r = run(dir.path(), &format!("io.save(\"out\", {value})\nprint(\"after\")\n"), &["run"]);
        let said =
            format!("a part of the value would be called `{name}` in the file, which keeps that name for itself");
        assert_eq!((r.code, &*r.out, r.err.matches(&said).count()), (1, "", 1), "{value}: {}", r.err);
        assert!(!dir.path().join("out").exists(), "{value}");
    }
    let free = "v = {\"tessera.parts\": op.ones((2,)), \"tessera.x\": op.zeros((2,))}\nio.save(\"out\", v)\n\
                print(io.load(\"out\", v))\nt = {\"__metadata__\": \"x\", \"format\": \"\"}\nio.save(\"out\", t)\n\
                print(io.load(\"out\", t))\n";
    let r = run(dir.path(), free, &["run"]);
    let printed = "{'tessera.parts': [1. 1.], 'tessera.x': [0. 0.]}\n{'__metadata__': 'x', 'format': ''}\n";
    assert_eq!((r.code, &*r.out), (0, printed), "{}", r.err);
}

#[test]
fn messages_spell_what_would_break_their_lines() {
    let dir = temp();
    let source = "io.write_safetensors(\"a\\nb\", {\"x\\u001b[31m\\n\": op.ones((1,))})\nprint(io.load(\"a\\nb\", op.ones((1,))))\n";
    let r = run(dir.path(), source, &["run"]);
    assert!(r.code == 1 && r.err.contains("`a\\nb` does not hold what is asked for"), "{}", r.err);
    assert!(r.err.contains("`x\\u{1b}[31m\\n` (Tensor[1, f32]) is in the file only"), "{}", r.err);
    let r = run(dir.path(), "print(io.read_text(\"no\\n\\u0007\"))\n", &["run"]);
    assert!(r.err.contains("`no\\n\\u{7}` cannot be read: there is no such file"), "{}", r.err);
}

#[test]
fn what_has_no_length_is_no_safetensors_file() {
    let dir = temp();
    let made = Command::new("mkfifo").arg(dir.path().join("pipe")).status().is_ok_and(|s| s.success());
    assert!(made);
    for path in ["/dev/zero", "/dev/urandom", "/dev/null", "pipe"] {
        let r = run(dir.path(), &format!("print(io.read_safetensors(\"{path}\"))\n"), &["run"]);
        let said = format!("`{path}` is not a safetensors file: a pipe or a device has no length");
        assert!(r.code == 1 && r.err.contains(&said), "{}", r.err);
    }
}

#[test]
fn what_cannot_be_told_ends_no_program() {
    let dir = temp();
    write(&dir.path().join("main.tsr"), "x = op.ones((64, 64))\nprint(op.softmax(x @ x.T).sum())\n");
    for (command, code, printed) in
        [("-v run main.tsr", 0, "64.0\n"), ("profile main.tsr", 0, "64.0\n"), ("run none.tsr", 1, "")]
    {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec \"$0\" {command} 2> /dev/full")]).arg(binary()).current_dir(dir.path());
        let r = run_command(&mut shell, "").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((r.code, &*r.out), (code, printed), "{command}");
    }
}

/// A part of a PNG file.
fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let body = [kind, data].concat();
    let mut sum = flate2::Crc::new();
    sum.update(&body);
    [&(data.len() as u32).to_be_bytes()[..], &body, &sum.sum().to_be_bytes()].concat()
}

#[test]
fn nothing_is_made_ready_for_what_a_file_claims() {
    let dir = temp();
    let size = 60_000u32.to_be_bytes();
    let header = chunk(b"IHDR", &[&size[..], &size, &[8, 2, 0, 0, 0]].concat());
    let data = chunk(b"IDAT", &[0x78, 0x9c, 0x03, 0, 0, 0, 0, 1]);
    write(&dir.path().join("x.png"), [b"\x89PNG\r\n\x1a\n", &header[..], &data, &chunk(b"IEND", b"")].concat());
    let sound: &[u8] = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x02\0\x40\x1f\0\0\0\x7d\0\0\x04\0\x10\0data\xfc\xff\xff\xff\0\0\0\0";
    write(&dir.path().join("x.wav"), sound);
    write(&dir.path().join("deep.json"), "[".repeat(100_000));
    for (call, said) in [
        ("io.read_image(\"x.png\")", "it claims 60000 by 60000 pixels, which"),
        ("io.read_wav(\"x.wav\")", "it claims 2147483646 samples of 16 bits, and has 48 bytes"),
        ("io.read_json(\"deep.json\", list[int])", "`deep.json` is not readable JSON: EOF while parsing a list"),
    ] {
        let r = run(dir.path(), &format!("x = {call}\nprint(\"after\")\n"), &["run"]);
        let told = (r.code, &*r.out, r.err.matches("error[E0707]").count(), r.err.contains(said));
        assert_eq!(told, (1, "", 1, true), "{call}: {}", r.err);
    }
    // What is really there is bounded by the memory that is allowed.
    let source = "io.write_image(\"y.png\", op.zeros((2000, 2000)).to(u8))\nprint(io.read_image(\"y.png\").shape)\n";
    assert_eq!(run(dir.path(), source, &["run"]).out, "(2000, 2000, 3)\n");
    write(&dir.path().join("zeros.json"), format!("[{}0]", "0,".repeat(200_000)));
    write(&dir.path().join("texts.csv"), format!("a,b\n{}", "x,y\n".repeat(100_000)));
    let table =
        "struct Rows[N]:\n    a: list[str]\n    b: list[str]\n\nprint(len(io.read_table(\"texts.csv\", Rows).a))\n";
    for (source, said) in [
        ("print(io.read_image(\"y.png\").shape)\n", "2000 by 2000"),
        ("print(len(io.read_json(\"zeros.json\", list[int])))\n", "`zeros.json` holds values of more than 1.0 MiB"),
        (table, "`texts.csv` holds columns of more than 1.0 MiB"),
    ] {
        let r = run(dir.path(), source, &["run", "--memory", "1MiB"]);
        assert!(r.code == 1 && r.err.contains("error[E0710]") && r.err.contains(said), "{}", r.err);
    }
}

/// A table of all kinds of columns, and a program that reads it.
const TABLE: &str = "struct Rows[N]:\n    x: Tensor[N, f64]\n    n: Tensor[N, i64]\n    name: list[str]\n\n";

#[test]
fn damaged_parquet_files_are_one_error() {
    let dir = temp();
    let make = format!(
        "{TABLE}n = op.arange(5000)\nio.write_table(\"t.parquet\", Rows(n.to(f64) / 7.0, n % 10, [f\"row {{i % 100}}\" for i in range(5000)]))\n"
    );
    assert_eq!(run(dir.path(), &make, &["run"]).code, 0);
    let whole = std::fs::read(dir.path().join("t.parquet")).unwrap_or_else(|e| panic!("{e}"));
    let n = whole.len();
    let mut cases: Vec<Vec<u8>> = [0, 4, 8, 12, n / 2, n - 9, n - 1].map(|cut| whole[..cut].to_vec()).to_vec();
    // Single bytes of pages, of the footer and of its length; a file that is all footer.
    for at in [4, 5, 9, 20, 40, n / 3, n - 8, n - 7, n - 5, n - 20, n - 40, n - 60, n - 90, n - 120, n - 200] {
        for flip in [0xff, 0x80, 0x01] {
            let mut other = whole.clone();
            other[at] ^= flip;
            cases.push(other);
        }
    }
    cases.push([&b"PAR1"[..], &[0xff; 64], &64u32.to_le_bytes(), b"PAR1"].concat());
    let source = format!("{TABLE}t = io.read_table(\"d.parquet\", Rows)\nprint(len(t.name))\n");
    for (i, case) in cases.iter().enumerate() {
        write(&dir.path().join("d.parquet"), case);
        let r = run(dir.path(), &source, &["run", "--memory", "64MiB"]);
        let told = r.err.matches("error[").count();
        let right = r.code == 0 && r.out == "5000\n" || r.code == 1 && told == 1 && r.err.contains("error[E07");
        assert!(right, "{i}: {} {}{}", r.code, r.out, r.err);
        assert!(!r.err.contains("panicked"), "{i}: {}", r.err);
    }
}

#[test]
fn a_table_that_changes_between_its_parts_is_told() {
    let dir = temp();
    let rows: String = (0..20_000).map(|i| format!("{i}.5,{i},r{i}\n")).collect();
    write(&dir.path().join("t.csv"), format!("x,n,name\n{rows}"));
    let source = format!(
        "{TABLE}print(io.count_rows(\"t.csv\"))\na = io.read_table(\"t.csv\", Rows, rows=10)\n\
         print(len(io.read_lines(\"pipe\")))\n\
         b = io.read_table(\"t.csv\", Rows, first=10_000, rows=10)\nprint(b.n)\n"
    );
    let made = Command::new("mkfifo").arg(dir.path().join("pipe")).status().is_ok_and(|s| s.success());
    assert!(made);
    write(&dir.path().join("main.tsr"), source);
    let mut shell = Command::new("sh");
    let other = "\"$0\" run main.tsr & (echo '1,2,new' >> t.csv; echo go) > pipe; wait $!";
    shell.args(["-c", other]).arg(binary()).current_dir(dir.path());
    let r = run_command(&mut shell, "").unwrap_or_else(|e| panic!("{e}"));
    let said = "`t.csv` has changed while it was read";
    assert!(r.code == 1 && r.err.matches(said).count() == 1 && r.out.starts_with("20000\n"), "{}{}", r.out, r.err);
    // What the program writes itself is a new file for it.
    let source = format!(
        "{TABLE}a = io.read_table(\"t.csv\", Rows, rows=10)\nio.write_table(\"t.csv\", a)\n\
         print(len(io.read_table(\"t.csv\", Rows, first=4, rows=20).name))\n"
    );
    let r = run(dir.path(), &source, &["run"]);
    assert_eq!((r.code, &*r.out), (0, "6\n"), "{}", r.err);
}

#[test]
fn parts_of_a_table_take_the_memory_of_a_part() {
    let dir = temp();
    let rows: String = (0..200_000).map(|i| format!("{i}.25,{i},\"row\n{i}\"\n")).collect();
    write(&dir.path().join("t.csv"), format!("x,n,name\n{rows}"));
    let loop_over = |path: &str| {
        format!(
            "{TABLE}count = io.count_rows(\"{path}\")\ntotal = 0\nfor first in range(0, count, 5000):\n    \
             t = io.read_table(\"{path}\", Rows, first=first, rows=5000)\n    total += int(t.n.sum())\n\
             print(count, total)\n"
        )
    };
    let convert = format!("{TABLE}io.write_table(\"t.parquet\", io.read_table(\"t.csv\", Rows))\n");
    assert_eq!(run(dir.path(), &convert, &["run"]).code, 0);
    for path in ["t.csv", "t.parquet"] {
        let r = run(dir.path(), &loop_over(path), &["run", "--memory", "2MiB"]);
        assert_eq!((r.code, &*r.out), (0, "200000 19999900000\n"), "{path}: {}", r.err);
        let all = format!("{TABLE}print(len(io.read_table(\"{path}\", Rows).name))\n");
        let r = run(dir.path(), &all, &["run", "--memory", "2MiB"]);
        assert!(r.code == 1 && r.err.contains("error[E0710]"), "{path}: {}", r.err);
    }
    // A cell that is wrong is told with its line in the whole file.
    write(&dir.path().join("w.csv"), format!("x,n,name\n{rows}1,wrong,z\n"));
    let last = format!("{TABLE}t = io.read_table(\"w.csv\", Rows, first=199_999)\n");
    let r = run(dir.path(), &last, &["run"]);
    assert!(r.err.contains("line 400002, column `n` of `w.csv`: `wrong` is not a number of type i64"), "{}", r.err);
}

#[test]
fn a_table_has_the_same_bits_with_any_threads() {
    let dir = temp();
    let rows: String = (0..150_000)
        .map(|i| format!("{}.{i},{i},{}\n", i * 7919 % 1000, if i % 5 == 0 { "\"a\n,b\"" } else { "plain" }))
        .collect();
    write(&dir.path().join("t.csv"), format!("x,n,name\n{rows}"));
    let source = format!(
        "{TABLE}t = io.read_table(\"t.csv\", Rows)\nio.write_table(\"out.csv\", t)\nio.write_table(\"out.parquet\", t)\n"
    );
    let written = ["1", "2", "5"].map(|threads| {
        let r = run(dir.path(), &source, &["run", "--threads", threads]);
        assert_eq!(r.code, 0, "{}", r.err);
        ["out.csv", "out.parquet"].map(|f| std::fs::read(dir.path().join(f)).unwrap_or_else(|e| panic!("{e}")))
    });
    assert!(written[0] == written[1] && written[1] == written[2]);
}

#[test]
fn the_standard_input_is_a_file() {
    let dir = temp();
    write(&dir.path().join("main.tsr"), "print(io.read_lines(\"/dev/stdin\"))\n");
    let r = run_in(dir.path(), &["run", "main.tsr"], "one\ntwo\n").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((r.code, &*r.out), (0, "['one', 'two']\n"), "{}", r.err);
}

#[test]
fn lines_of_the_standard_input_come_one_by_one() {
    let dir = temp();
    let source = "line = sys.read_line(\"? \")\nwhile line != \"\":\n    print(len(line), line.strip())\n    \
                  line = sys.read_line(\"? \")\nprint(sys.read_line() == \"\")\n";
    write(&dir.path().join("main.tsr"), source);
    let r = run_in(dir.path(), &["run", "main.tsr"], "one\n\nthree").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((r.code, &*r.out), (0, "? 4 one\n? 1 \n? 5 three\n? True\n"), "{}", r.err);
    // What follows a line stays for who reads it next.
    write(
        &dir.path().join("main.tsr"),
        "first = sys.read_line()\nprint(first.strip(), io.read_lines(\"/dev/stdin\"))\n",
    );
    let r = run_in(dir.path(), &["run", "main.tsr"], "one\ntwo\nthree\n").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((r.code, &*r.out), (0, "one ['two', 'three']\n"), "{}", r.err);
}

#[test]
fn a_stream_goes_on_where_it_was_saved() {
    let dir = temp();
    let begin = "from std import data\nfor i in range(3):\n    io.write_npy(f\"part{i}.npy\", op.arange(i * 10, i * 10 + 7))\n\
                 io.save(\"s\", data.stream(io.glob(\"part*.npy\"), size=2, seed=3))\n";
    let some = |count: usize| {
        format!(
            "from std import data\ns = io.load(\"s\", like=data.stream([\"\"], size=1))\nleft = {count}\n\
             while left > 0 and s.epoch < 2:\n    x: Tensor[N, i64] = io.read_npy(data.current(s))\n    \
             for rows in data.remaining(s, len(x)):\n        if left > 0:\n            print(x[rows])\n            \
             s = data.passed(s)\n            left -= 1\n    if left > 0:\n        s = data.next_file(s)\nio.save(\"s\", s)\n"
        )
    };
    let go = |source: &str| {
        let r = run(dir.path(), source, &["run"]);
        assert_eq!(r.code, 0, "{}", r.err);
        r.out
    };
    go(begin);
    let whole = go(&some(100));
    assert_eq!(whole.lines().count(), 18);
    go(begin);
    let parts: String = [4, 1, 7, 100].map(|n| go(&some(n))).concat();
    assert_eq!(parts, whole);
    // A file that has gone is told when its turn comes.
    go(begin);
    std::fs::remove_file(dir.path().join("part1.npy")).unwrap_or_else(|e| panic!("{e}"));
    let r = run(dir.path(), &some(100), &["run"]);
    assert!(r.code == 1 && r.err.contains("`part1.npy` cannot be read"), "{}", r.err);
}

/// A table of one column.
const ONE: &str = "struct One[N]:\n    n: Tensor[N, i64]\n\n";

/// A program that waits until another one has done something to its files.
fn run_meanwhile(dir: &Path, source: &str, other: &str) -> Ran {
    let made = Command::new("mkfifo").arg(dir.join("go")).status().is_ok_and(|s| s.success());
    assert!(made);
    write(&dir.join("main.tsr"), source);
    let mut shell = Command::new("sh");
    let both = format!("\"$0\" run main.tsr & ({other}; echo go) > go; wait $!");
    shell.args(["-c", &both]).arg(binary()).current_dir(dir);
    run_command(&mut shell, "").unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn what_is_read_ahead_makes_nothing_known() {
    let dir = temp();
    // The thread may open the old file when the program has replaced it.
    let source = format!(
        "{ONE}big = One(op.arange(200000))\nio.write_table(\"a.csv\", One(op.arange(3)))\nio.write_table(\"b.csv\", big)\n\
         io.prefetch(\"a.csv\", \"b.csv\")\nfor i in range(300):\n    a = io.read_table(\"a.csv\", One, rows=2)\n    \
         io.write_table(\"b.csv\", One(op.arange(5 + i)))\n    b = io.read_table(\"b.csv\", One, rows=2)\nprint(\"ok\")\n"
    );
    let r = run(dir.path(), &source, &["run"]);
    assert_eq!((r.code, &*r.out), (0, "ok\n"), "{}", r.err);
    // What only the thread has read, the program has not.
    write(&dir.path().join("b.csv"), "n\n1\n2\n3\n");
    let source = format!(
        "{ONE}io.prefetch(\"a.csv\", \"b.csv\")\nprint(io.read_table(\"a.csv\", One, rows=2).n)\n\
         print(io.read_text(\"go\").strip())\nprint(io.read_table(\"b.csv\", One, rows=2).n)\n"
    );
    let r = run_meanwhile(dir.path(), &source, "sleep 0.5; printf 'n\\n7\\n8\\n9\\n' > b.csv");
    assert_eq!((r.code, &*r.out), (0, "[0 1]\ngo\n[7 8]\n"), "{}", r.err);
}

#[test]
fn a_file_that_the_program_writes_is_its_own_by_any_name() {
    let dir = temp();
    let at = |path: &str| format!("print(io.read_table(\"{path}\", One, first=1, rows=1).n)\n");
    let source = format!(
        "{ONE}io.write_text(\"x.csv\", \"n\\n1\\n2\\n\")\n{0}io.write_text(\"./x.csv\", \"n\\n1\\n3\\n4\\n\")\n{0}\
         io.append_text(\"../\" + \"{1}\" + \"/x.csv\", \"5\\n\")\n{0}",
        at("x.csv"),
        dir.path().file_name().unwrap_or_default().to_string_lossy()
    );
    let r = run(dir.path(), &source, &["run"]);
    assert_eq!((r.code, &*r.out), (0, "[2]\n[3]\n[3]\n"), "{}", r.err);
    std::os::unix::fs::symlink("real.csv", dir.path().join("link.csv")).unwrap_or_else(|e| panic!("{e}"));
    let source = format!(
        "{ONE}io.write_table(\"real.csv\", One(op.arange(5)))\n{0}io.write_table(\"real.csv\", One(op.arange(7) * 2))\n{0}\
         io.write_table(\"link.csv\", One(op.arange(3) * 3))\nprint(io.read_table(\"real.csv\", One, first=2).n)\n",
        at("link.csv")
    );
    let r = run(dir.path(), &source, &["run"]);
    assert_eq!((r.code, &*r.out), (0, "[1]\n[2]\n[6]\n"), "{}", r.err);
}

#[test]
fn a_stream_of_a_table_with_other_rows_than_were_counted_is_told() {
    let dir = temp();
    let begin = format!(
        "import std.data as data\n{ONE}io.write_table(\"t.csv\", One(op.arange(100)))\n\
         s = data.table_stream([\"t.csv\"], size=5, rows=50)\n"
    );
    let pass = "total = 0\nwhile s.epoch < 1:\n    part = io.read_table(data.current(s), One, first=data.first(s), rows=s.rows)\n    \
                for rows in data.remaining(s, len(part.n)):\n        total += len(rows)\n        s = data.passed(s)\n    \
                s = data.next_file(s)\nprint(total)\n";
    let told = |r: &Ran, now: usize| {
        let said = format!("`t.csv` had 100 rows when they were counted, and has {now} now");
        assert!(r.code == 1 && r.err.contains("error[E0707]") && r.err.contains(&said), "{}{}", r.out, r.err);
    };
    // Written by the program itself.
    told(&run(dir.path(), &format!("{begin}io.write_table(\"t.csv\", One(op.arange(60)))\n{pass}"), &["run"]), 60);
    assert_eq!(run(dir.path(), &format!("{begin}io.save(\"s\", s)\n"), &["run"]).code, 0);
    let resume = format!(
        "import std.data as data\n{ONE}io.write_table(\"like.csv\", One(op.arange(1)))\n\
         s = io.load(\"s\", like=data.table_stream([\"like.csv\"], size=1, rows=1))\n{pass}"
    );
    let r = run(dir.path(), &resume, &["run"]);
    assert_eq!((r.code, &*r.out), (0, "100\n"), "{}", r.err);
    // Written between two runs, shorter or longer.
    for now in [7, 150] {
        let rows: String = (0..now).map(|i| format!("{i}\n")).collect();
        write(&dir.path().join("t.csv"), format!("n\n{rows}"));
        told(&run(dir.path(), &resume, &["run"]), now);
    }
}

#[test]
fn long_texts_of_a_small_parquet_file_take_no_memory_that_is_not_allowed() {
    let dir = temp();
    // A text of 200 kB in the dictionary, 300000 times.
    write(&dir.path().join("t.parquet"), include_bytes!("../data/long_texts.parquet"));
    let all = "struct R[N]:\n    s: list[str]\n\nprint(len(io.read_table(\"t.parquet\", R).s))\n";
    write(&dir.path().join("main.tsr"), all);
    // The bound of the tool, and one of the system that the tool does not know.
    for command in ["exec \"$0\" run --memory 300MB main.tsr", "ulimit -v 4000000; exec \"$0\" run main.tsr"] {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).arg(binary()).current_dir(dir.path());
        let r = run_command(&mut shell, "").unwrap_or_else(|e| panic!("{e}"));
        let said = "columns of `t.parquet`";
        assert!(
            r.code == 1 && r.err.contains("error[E0710]") && r.err.contains(said),
            "{command}: {}{}",
            r.code,
            r.err
        );
    }
    let part = all.replace(", R)", ", R, first=40_000, rows=20)");
    let r = run(dir.path(), &part, &["run", "--memory", "300MB"]);
    assert_eq!((r.code, &*r.out), (0, "20\n"), "{}", r.err);
}

#[test]
fn columns_within_columns_are_told() {
    let dir = temp();
    write(&dir.path().join("t.parquet"), include_bytes!("../data/nested.parquet"));
    for (column, said) in [
        ("x", "the column `x` of `t.parquet` holds lists, and numbers or texts are asked for"),
        ("at", "the column `at` of `t.parquet` holds structs, and numbers or texts are asked for"),
        ("y", "`t.parquet` has no column `y`"),
    ] {
        let source = format!("struct R[N]:\n    {column}: Tensor[N, i64]\n\nt = io.read_table(\"t.parquet\", R)\n");
        let r = run(dir.path(), &source, &["run"]);
        assert!(r.code == 1 && r.err.contains("error[E0707]") && r.err.contains(said), "{}", r.err);
    }
    let source = "struct R[N]:\n    at_east: Tensor[N, i64]\n\nprint(io.read_table(\"t.parquet\", R).at_east)\n";
    let r = run(dir.path(), source, &["run"]);
    assert_eq!((r.code, &*r.out), (0, "[1 2]\n"), "{}", r.err);
}

#[test]
fn blank_lines_take_no_memory() {
    let dir = temp();
    write(&dir.path().join("t.csv"), format!("n\n1\n{}2\n", "\n".repeat(100 << 20)));
    let r = run(dir.path(), "print(io.count_rows(\"t.csv\"))\n", &["run", "--memory", "16MiB"]);
    assert_eq!((r.code, &*r.out), (0, "2\n"), "{}", r.err);
}

#[test]
fn long_lines_of_the_standard_input_come_at_once_and_leave_the_rest() {
    let dir = temp();
    let source = "print(len(sys.read_line()), len(sys.read_line()))\nprint(io.read_lines(\"/dev/stdin\"))\n";
    write(&dir.path().join("main.tsr"), source);
    let input = format!("{}\nsecond\nthird\nfourth", "x".repeat(3_000_000));
    let told = (0, "3000001 7\n['third', 'fourth']\n");
    let r = run_in(dir.path(), &["run", "main.tsr"], &input).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((r.code, &*r.out), told, "{}", r.err);
    // The rest of a file is what follows its place.
    write(&dir.path().join("input"), input);
    let source = source.replace("io.read_lines(\"/dev/stdin\")", "[sys.read_line().strip(), sys.read_line()]");
    write(&dir.path().join("main.tsr"), source);
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" run main.tsr < input"]).arg(binary()).current_dir(dir.path());
    let r = run_command(&mut shell, "").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((r.code, &*r.out), told, "{}", r.err);
}
