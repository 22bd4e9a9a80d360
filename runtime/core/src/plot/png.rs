//! An SVG as PNG.
//!
//! Letters come from a font inside the program, so that a picture is the same on every machine. Scripts that this font does
//! not have come from the fonts of the machine; where that has none either, a letter is a box.

use crate::fault::Fault;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};
use std::sync::{Arc, LazyLock};

const FAMILY: &str = "DejaVu Sans";

static OWN: LazyLock<Arc<Database>> = LazyLock::new(|| Arc::new(fonts(false)));
static ALL: LazyLock<Arc<Database>> = LazyLock::new(|| Arc::new(fonts(true)));

fn fonts(of_machine: bool) -> Database {
    let mut fonts = Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    if of_machine {
        fonts.load_system_fonts();
    }
    // After the fonts of the machine, whose settings say something else.
    fonts.set_sans_serif_family(FAMILY);
    fonts
}

/// Whether the font inside the program has no letters of this script.
fn is_foreign(c: char) -> bool {
    matches!(u32::from(c), 0x700..0x10a0 | 0x1100..0x1d00 | 0x2e80..0xfb00 | 0xfe10..0xfe70 | 0xff00..)
}

/// Paints an SVG and gives the bytes of the file.
///
/// # Errors
/// E0711 where the text cannot be painted, which is a mistake of the one that wrote it.
pub fn paint(svg: &str) -> Result<Vec<u8>, Fault> {
    let failed = |why: String| Fault::new(711, format!("the plot cannot be painted: {why}"));
    let fontdb = if svg.chars().any(is_foreign) { ALL.clone() } else { OWN.clone() };
    let options = Options { fontdb, ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|e| failed(e.to_string()))?;
    let size = tree.size().to_int_size();
    let mut picture = Pixmap::new(size.width(), size.height()).ok_or_else(|| failed("it has no size".into()))?;
    resvg::render(&tree, Transform::default(), &mut picture.as_mut());
    picture.encode_png().map_err(|e| failed(e.to_string()))
}
