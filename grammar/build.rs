//! Generates the parser from `tessera.lalrpop`.

use std::{env, error::Error, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    lalrpop::Configuration::new()
        .set_out_dir(env::var("OUT_DIR")?)
        .emit_rerun_directives(true)
        .process_file(Path::new("tessera.lalrpop"))
}
