//! A profile as a flame graph: what is below a box is around it, and widths are times.

use super::{source_line, span_of};
use inferno::flamegraph::{Options, from_lines};
use std::io;
use tessera_resolve::source::SourceMap;
use tessera_runtime::profile::{DEVICES, Kind, Row};

/// An SVG. The text of a line stands below the kernels that compute it, stages of the tool beside the files.
///
/// # Errors
/// Where there is no time to show.
pub fn graph(rows: &[Row], sources: &SourceMap) -> io::Result<Vec<u8>> {
    let stacks: Vec<String> = rows.iter().filter(|r| r.name != DEVICES).map(|r| stack(r, sources)).collect();
    let mut options = Options::default();
    options.title = "Time of the program".into();
    options.count_name = "µs".into();
    options.no_sort = false;
    let mut out = vec![];
    from_lines(&mut options, stacks.iter().map(String::as_str), &mut out).map_err(io::Error::other)?;
    Ok(out)
}

/// `around;inside;… N`, as the tools for flame graphs have it.
fn stack(row: &Row, sources: &SourceMap) -> String {
    let time = row.time().as_micros();
    let clean = |text: &str| text.replace([';', '\n'], " ");
    match (row.kind, text_of(row, sources)) {
        (Kind::Step, Some((file, text))) => {
            format!(
                "{};{}: {};{} {time}",
                clean(&file),
                clean(&source_line(row, sources)),
                clean(&text),
                clean(&row.name)
            )
        }
        (Kind::Step, None) => format!("kernels;{} {time}", clean(&row.name)),
        (Kind::Stage, _) => format!("the tool;{} {time}", row.name),
    }
}

/// The file of a row and the text of its line.
fn text_of(row: &Row, sources: &SourceMap) -> Option<(String, String)> {
    let (file, line, _) = sources.line_col(span_of(row))?;
    let file = sources.file(file)?;
    let text = file.text.lines().nth(line.checked_sub(1)?)?;
    Some((file.path.to_string(), text.trim().to_owned()))
}
