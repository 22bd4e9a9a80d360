//! The operators: one row each.

mod attention;
mod contrib;
mod contrib_attention;
mod draws;
mod elementwise;
mod index;
mod norm;
mod pairs;
mod pools;
mod product;
mod quantized;
mod recurrent;
mod reduce;
mod regions;
mod scatter;
mod selection;
mod sequences;
mod shape;
mod signal;
mod sizes;
mod windows;

use crate::node::{No, Node};

/// What a node is translated with.
pub type Translate = fn(&mut Node) -> Result<(), No>;

/// A standard operator, its translation, and what becomes of each attribute that it has in any version.
pub struct Row {
    pub name: &'static str,
    /// `None` for what holds graphs, which are translated with the graph around them.
    pub translate: Option<Translate>,
    /// Attributes that the translation follows; values that it cannot follow it refuses by name.
    pub honoured: &'static [&'static str],
    /// Attributes that change nothing here: they say once more what arguments say, or concern what a file does
    /// not use or what this language does not leave open.
    pub moot: &'static [&'static str],
    /// Attributes of which the default alone is translated.
    pub refused: &'static [&'static str],
}

/// A row of an operator without attributes.
const fn row(name: &'static str, translate: Translate) -> Row {
    Row { name, translate: Some(translate), honoured: &[], moot: &[], refused: &[] }
}

impl Row {
    const fn honours(self, honoured: &'static [&'static str]) -> Row {
        Row { honoured, ..self }
    }

    const fn ignores(self, moot: &'static [&'static str]) -> Row {
        Row { moot, ..self }
    }

    const fn refuses(self, refused: &'static [&'static str]) -> Row {
        Row { refused, ..self }
    }
}

/// An operator with graphs.
const fn control(name: &'static str, honoured: &'static [&'static str]) -> Row {
    Row { name, translate: None, honoured, moot: &[], refused: &[] }
}

const CONTROL: &[Row] = &[
    control("SequenceMap", &["body"]),
    control("If", &["then_branch", "else_branch"]),
    control("Loop", &["body"]),
    control(
        "Scan",
        &[
            "body",
            "num_scan_inputs",
            "scan_input_axes",
            "scan_input_directions",
            "scan_output_axes",
            "scan_output_directions",
        ],
    )
    .refuses(&["directions"]),
];

/// The row of an operator.
pub fn find(domain: &str, op: &str) -> Option<&'static Row> {
    match domain {
        "" | "ai.onnx" => all().find(|row| row.name == op),
        // Rows of other domains have theirs before their name.
        _ => all().find(|row| row.name.strip_suffix(op).and_then(|d| d.strip_suffix('.')) == Some(domain)),
    }
}

/// Every row.
pub fn all() -> impl Iterator<Item = &'static Row> {
    let tables = [
        CONTROL,
        attention::ROWS,
        contrib::ROWS,
        contrib_attention::ROWS,
        draws::ROWS,
        elementwise::ROWS,
        index::ROWS,
        norm::ROWS,
        pairs::ROWS,
        pools::ROWS,
        product::ROWS,
        quantized::ROWS,
        recurrent::ROWS,
        reduce::ROWS,
        regions::ROWS,
        scatter::ROWS,
        selection::ROWS,
        sequences::ROWS,
        shape::ROWS,
        signal::ROWS,
        sizes::ROWS,
        windows::ROWS,
    ];
    tables.into_iter().flatten()
}
