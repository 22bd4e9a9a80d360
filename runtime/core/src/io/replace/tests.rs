use super::*;
use std::io::Read;

fn put(path: &Path, text: &str) -> io::Result<()> {
    replace(path, Durability::OnDisk, |e| e, |out| out.write_all(text.as_bytes()))
}

fn names_in(dir: &Path) -> io::Result<Vec<String>> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir)?.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

fn mode(path: &Path) -> io::Result<u32> {
    Ok(std::fs::metadata(path)?.mode() & 0o7777)
}

#[test]
fn a_link_stays_and_its_target_is_replaced() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let at = |name: &str| dir.path().join(name);
    std::fs::create_dir(at("far"))?;
    for (link, target) in [("first", "second"), ("second", "far/file"), ("self", "self")] {
        std::os::unix::fs::symlink(target, at(link))?;
    }
    // The first time the link leads to nothing yet.
    for text in ["new", "newer"] {
        put(&at("first"), text)?;
        assert_eq!(std::fs::read_to_string(at("far/file"))?, text);
    }
    assert!(
        std::fs::symlink_metadata(at("first"))?.is_symlink() && std::fs::symlink_metadata(at("second"))?.is_symlink()
    );
    assert_eq!(put(&at("self"), "x").err().and_then(|e| e.raw_os_error()), Some(libc::ELOOP));
    assert_eq!(put(dir.path(), "x").err().map(|e| e.kind()), Some(io::ErrorKind::IsADirectory));
    assert_eq!(names_in(&at("far"))?, ["file"]);
    Ok(())
}

#[test]
fn devices_and_fifos_are_written_through() -> io::Result<()> {
    put(Path::new("/dev/null"), "gone")?;
    assert!(!std::fs::metadata("/dev/null")?.is_file());
    let dir = tempfile::tempdir()?;
    let fifo = dir.path().join("fifo");
    let name = std::ffi::CString::new(fifo.as_os_str().as_bytes())?;
    // SAFETY: a text that ends with a zero byte and outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert!(is_stream(&fifo) && is_stream(Path::new("/dev/null")) && !is_stream(&dir.path().join("none")));
    let read = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::fs::read_to_string(fifo)
    });
    put(&fifo, "through")?;
    assert_eq!(read.join().ok().and_then(Result::ok).as_deref(), Some("through"));
    assert_eq!(names_in(dir.path())?, ["fifo"]);
    Ok(())
}

#[test]
fn what_the_process_has_open_goes_on_where_it_is() -> io::Result<()> {
    let mut file = tempfile::tempfile()?;
    file.write_all(b"one ")?;
    put(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())), "two ")?;
    append(Path::new(&format!("/dev/fd/{}", file.as_raw_fd())), b"three ")?;
    file.write_all(b"four")?;
    file.rewind()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    assert_eq!(text, "one two three four");
    Ok(())
}

#[test]
fn an_old_file_keeps_its_mode_and_a_new_one_gets_the_usual() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("usual"), "")?;
    put(&at("new"), "x")?;
    assert_eq!(mode(&at("new"))?, mode(&at("usual"))?);
    for m in [0o600, 0o640, 0o777] {
        std::fs::set_permissions(at("new"), Permissions::from_mode(m))?;
        put(&at("new"), "y")?;
        assert_eq!(mode(&at("new"))?, m);
    }
    Ok(())
}

#[test]
fn files_with_passing_names_do_the_same() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("usual"), "old")?;
    let mut fresh = Fresh::with_name(dir.path())?;
    assert_eq!(mode(fresh.name.as_ref().map_or(Path::new(""), |n| &n.0))?, mode(&at("usual"))?);
    fresh.file.write_all(b"new")?;
    // It is in use.
    assert_eq!(clear(dir.path())?, 0);
    fresh.take_place(&at("usual"), None, Durability::OnDisk)?;
    assert_eq!((names_in(dir.path())?, std::fs::read_to_string(at("usual"))?), (vec!["usual".into()], "new".into()));
    drop(Fresh::with_name(dir.path())?);
    assert_eq!(names_in(dir.path())?, ["usual"]);
    assert!(PENDING.lock().is_ok_and(|p| p.iter().all(|p| !p.starts_with(dir.path()))));
    Ok(())
}

#[test]
fn what_killed_processes_left_is_cleared_and_nothing_else() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let at = |name: &str| dir.path().join(name);
    for name in
        [".tessera-a1B2c3", ".tessera-ffffff", ".tessera", ".tessera-notes", ".tessera-abcdef.txt", "tessera-abcdef"]
    {
        std::fs::write(at(name), "left")?;
    }
    let used = File::open(at(".tessera-ffffff"))?;
    used.lock()?;
    put(&at("out"), "x")?;
    let kept = [".tessera", ".tessera-abcdef.txt", ".tessera-ffffff", ".tessera-notes", "out", "tessera-abcdef"];
    assert_eq!(names_in(dir.path())?, kept);
    Ok(())
}

#[test]
fn a_write_that_fails_leaves_the_old_file_and_nothing_else() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("file");
    put(&path, "old")?;
    let failed = replace(
        &path,
        Durability::OnDisk,
        |e| e,
        |out| {
            out.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        },
    );
    assert_eq!(failed.err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
    assert_eq!((names_in(dir.path())?, std::fs::read_to_string(&path)?), (vec!["file".into()], "old".into()));
    Ok(())
}
