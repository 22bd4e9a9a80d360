//! The runtime functions of pictures, sound, tables, JSON and folders, by their rows in `abi::rt`.

use crate::context::Context;
use crate::fault::{Fault, shown};
use crate::host_value::{self, HostValue};
use crate::io::ahead::{self, Section};
use crate::io::table::{Asked, Ending, Rows};
use crate::io::{files, image, json, table, unchanged, wav};
use crate::pending_save;
use crate::pool::Pool;
use crate::rt::{rows, settle};
use crate::rt_files::{alike, delimiter, give_alike, write_to};
use crate::value::{RecordObj, StrObj, TensorObj, TypeId, TypeInfo, TypeTable, new_list, new_record, new_str};
use crate::world;
use std::path::Path;
use std::sync::Arc;
use std::thread::ThreadId;
use tessera_abi::rt::RtFn;

/// The functions of this part of the table with their addresses.
pub fn symbols() -> Vec<(RtFn, *const u8)> {
    rows! {
        takes_3 io_read_image io_read_wav io_glob;
        takes_4 io_write_image io_read_json io_write_json;
        takes_3 io_count_rows;
        takes_5 io_write_wav io_write_table;
        takes_7 io_prefetch;
        takes_9 io_read_table;
    }
}

/// A whole file.
pub(crate) fn whole(path: &StrObj) -> Section {
    Section { path: Path::new(path.text()).to_owned(), first: 0 }
}

/// Who reads: the threads of the program, or one alone that reads ahead. They are the model's then, while it computes.
pub(crate) struct Pools {
    pool: Arc<Pool>,
    program: ThreadId,
}

impl Pools {
    pub(crate) fn of(cx: &Context) -> Pools {
        Pools { pool: cx.pool(), program: std::thread::current().id() }
    }

    pub(crate) fn here(&self) -> Arc<Pool> {
        if std::thread::current().id() == self.program { self.pool.clone() } else { Arc::new(Pool::new(1)) }
    }
}

/// The bytes of a file, the same in all processes; of a table or JSON what gzip data stands for.
fn bytes(path: &StrObj, span: i64, read: fn(&Path) -> Result<Vec<u8>, Fault>) -> Result<Vec<u8>, Fault> {
    world::at(span as u32);
    alike(path, read(Path::new(path.text())), |b| vec![b])
}

/// The word of what was read as a type.
fn settle_value(cx: &mut Context, span: i64, ty: i64, read: Result<HostValue, Fault>) -> u64 {
    let word = read.map(|value| host_value::write(&cx.types, value, ty as TypeId));
    settle(cx, span, word)
}

extern "C" fn io_read_image(cx: &mut Context, path: &StrObj, channels: i64, span: i64) -> u64 {
    let how = format!("image {channels}");
    let read = ahead::read(&how, whole(path), move |p| image::read(&p.path, &files::read_raw(&p.path)?, channels));
    give_alike(cx, path, span, read)
}

extern "C" fn io_write_image(cx: &mut Context, path: &StrObj, t: &TensorObj, quality: i64, span: i64) {
    write_to(cx, path, span, |path| image::write(path, &t.tensor, quality));
}

extern "C" fn io_read_wav(cx: &mut Context, path: &StrObj, ty: i64, span: i64) -> u64 {
    let read = ahead::read("wav", whole(path), |p| {
        let (samples, rate) = wav::read(&p.path, &files::read_raw(&p.path)?)?;
        Ok(HostValue::Record(vec![HostValue::Tensor(samples), HostValue::Int(rate)]))
    });
    world::at(span as u32);
    let value = alike(path, read, |value| match value {
        HostValue::Record(parts) => parts.iter().filter_map(sound_bytes).collect(),
        _ => vec![],
    });
    settle_value(cx, span, ty, value)
}

/// The bytes of the samples.
fn sound_bytes(part: &HostValue) -> Option<&[u8]> {
    match part {
        HostValue::Tensor(samples) => Some(samples.bytes()),
        _ => None,
    }
}

extern "C" fn io_write_wav(cx: &mut Context, path: &StrObj, t: &TensorObj, rate: i64, bits: i64, span: i64) {
    write_to(cx, path, span, |path| wav::write(path, &t.tensor, rate, bits));
}

extern "C" fn io_read_table(
    cx: &mut Context,
    path: &StrObj,
    columns: &StrObj,
    between: &StrObj,
    has_missing: i64,
    missing: i64,
    first: i64,
    rows: i64,
    ty: i64,
    span: i64,
) -> u64 {
    world::at(span as u32);
    let read = asked_rows(first, rows).and_then(|rows| {
        let missing = (has_missing != 0).then_some(missing);
        let (columns, delimiter) = (columns.text().to_owned(), delimiter(between)?);
        let how = format!("table {columns} {delimiter} {missing:?} {}", rows.count);
        let file = Path::new(path.text());
        if rows != Rows::ALL {
            unchanged::still_there(file)?;
        }
        let part = Section { path: file.to_owned(), first: rows.first };
        let counted = ahead::counted(&part);
        let pools = Pools::of(cx);
        let read = ahead::read(&how, part, move |part| {
            let rows = Rows { first: part.first, ..rows };
            table::read(&part.path, &Asked { columns: &columns, delimiter, missing, rows }, &pools.here())
        })?;
        let read = read.checked(file, rows, counted)?;
        if let Some(w) = world::world() {
            w.read_alike(path.text(), read.hash())?;
        }
        let words = read.words(&cx.types, &cx.pool())?;
        let record = new_record(ty as TypeId, words.len());
        // SAFETY: just made, with as many fields.
        unsafe { RecordObj::fill(record, &words) };
        Ok(record)
    });
    settle(cx, span, read)
}

/// Which rows a call asks for; the largest count stands for all.
fn asked_rows(first: i64, rows: i64) -> Result<Rows, Fault> {
    let first = u64::try_from(first)
        .map_err(|_| Fault::new(711, format!("the first row of a table has the number 0, and `first` is {first}")))?;
    let count = u64::try_from(rows)
        .map_err(|_| Fault::new(711, format!("at least 0 rows of a table are read, and `rows` is {rows}")))?;
    Ok(Rows { first, count: if rows == i64::MAX { u64::MAX } else { count } })
}

extern "C" fn io_prefetch(
    cx: &mut Context,
    path: &StrObj,
    next: &StrObj,
    first: i64,
    next_first: i64,
    keep: i64,
    rows: i64,
    span: i64,
) {
    let part = |path: &StrObj, first| -> Result<Section, Fault> {
        let rows = asked_rows(first, i64::MAX)?;
        Ok(Section { path: Path::new(path.text()).to_owned(), first: rows.first })
    };
    let keep = u64::try_from(keep)
        .map_err(|_| Fault::new(711, format!("at least 0 bytes of what was read are kept, and `keep` is {keep}")));
    let said = keep.and_then(|keep| {
        // No part of a table without rows is read.
        let rows = u64::try_from(rows).ok().filter(|n| *n > 0);
        ahead::follows(part(path, first)?, part(next, next_first)?, keep, rows);
        Ok(())
    });
    settle(cx, span, said);
}

extern "C" fn io_count_rows(cx: &mut Context, path: &StrObj, between: &StrObj, span: i64) -> i64 {
    world::at(span as u32);
    let counted = delimiter(between).and_then(|between| table::count_rows(Path::new(path.text()), between));
    let counted = counted.map(|n| (n as i64, n.to_le_bytes()));
    let counted = alike(path, counted, |(_, bytes)| vec![bytes]).map(|(n, _)| n);
    settle(cx, span, counted)
}

extern "C" fn io_write_table(cx: &mut Context, path: &StrObj, value: u64, between: &StrObj, ty: i64, span: i64) {
    // SAFETY: compiled code passes a live value of the type.
    let value = unsafe { host_value::read(&cx.types, value, ty as TypeId, false) };
    let names = match cx.types.get(ty as TypeId) {
        TypeInfo::Struct { fields, .. } => fields.iter().map(|(name, _)| name.clone()).collect(),
        _ => vec![],
    };
    let between = delimiter(between);
    write_to(cx, path, span, |path| match value {
        HostValue::Record(columns) => table::write(path, &names, &columns, between?),
        _ => table::write(path, &names, &[], between?),
    });
}

extern "C" fn io_read_json(cx: &mut Context, path: &StrObj, extra: i64, ty: i64, span: i64) -> u64 {
    let file = Path::new(path.text());
    let by_line = table::ending(file) == Ending::Lines;
    let read = if by_line { json::read_lines } else { json::read };
    let read = bytes(path, span, files::read_all).and_then(|b| read(&cx.types, file, &b, extra != 0, ty as TypeId));
    settle_value(cx, span, ty, read)
}

extern "C" fn io_write_json(cx: &mut Context, path: &StrObj, value: u64, ty: i64, span: i64) {
    let types = std::mem::take(&mut cx.types);
    write_to(cx, path, span, |path| {
        let by_line = table::ending(path) == Ending::Lines;
        files::write_atomically(path, |out| {
            // SAFETY: compiled code passes a live value of the type.
            unsafe { json::write(out, path, &types, value, ty as TypeId, by_line) }
        })
    });
    cx.types = types;
}

/// The paths that a pattern fits, by their bytes in order, so that no file system decides it.
fn fitting(pattern: &str) -> Result<Vec<String>, Fault> {
    let paths = glob::glob(pattern)
        .map_err(|e| Fault::new(711, format!("`{}` is no pattern of paths: {}", shown(pattern), e.msg)))?;
    let mut out = vec![];
    for path in paths {
        let path = path.map_err(|e| files::read_fault(e.path(), e.error()))?;
        match path.to_str() {
            Some(text) => out.push(text.to_owned()),
            None => {
                let text = format!("`{}` cannot be named: it is not UTF-8 text", shown(&path));
                return Err(Fault::new(706, text));
            }
        }
    }
    out.sort();
    Ok(out)
}

extern "C" fn io_glob(cx: &mut Context, pattern: &StrObj, _ty: i64, span: i64) -> u64 {
    world::at(span as u32);
    // A file that is still being written is there before it is looked for.
    let found = pending_save::finish().and_then(|()| fitting(pattern.text()));
    let found = alike(pattern, found, |all| all.iter().map(|p| p.as_bytes()).collect());
    let list = found.map(|all| new_list(&cx.types, TypeTable::STR, all.into_iter().map(new_str).collect()));
    settle(cx, span, list)
}
