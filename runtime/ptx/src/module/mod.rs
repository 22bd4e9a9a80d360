//! A PTX text as a whole: directives, variables, kernels.

mod body;
mod operands;
mod parser;
mod storage;

use crate::inst::Kernel;
use crate::{Error, lex};
use parser::{Parser, Symbol};
use std::collections::BTreeMap;
pub use storage::Storage;

/// A variable in global or constant memory.
#[derive(Debug)]
pub struct Variable {
    pub name: String,
    pub storage: Storage,
}

/// A decoded text.
#[derive(Debug)]
pub struct Module {
    version: String,
    target: String,
    kernels: Vec<Kernel>,
    variables: Vec<Variable>,
}

impl Module {
    /// The names of the kernels, in the order of the text.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernels.iter().map(|k| k.name.as_str())
    }

    /// The first target that the text names, as `sm_90a`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The version of PTX that the text names.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The address and the bytes of a variable in global or constant memory.
    pub fn variable(&self, name: &str) -> Option<(u64, u64)> {
        self.variables.iter().find(|v| v.name == name).map(|v| (v.storage.address(), v.storage.bytes()))
    }

    /// The addresses and sizes of all variables.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.variables.iter().map(|v| (v.storage.address(), v.storage.bytes()))
    }

    pub(crate) fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|k| k.name == name)
    }

    /// The bytes that a kernel's parameters take, one after the other; None where there is no such kernel.
    pub fn parameter_bytes(&self, kernel: &str) -> Option<Vec<usize>> {
        Some(self.kernel(kernel)?.params.iter().map(|p| p.size as usize).collect())
    }

    /// Where a kernel's parameters lie in its parameter space.
    pub(crate) fn parameter_offsets(&self, kernel: &str) -> Vec<usize> {
        self.kernel(kernel).map(|k| k.params.iter().map(|p| p.offset as usize).collect()).unwrap_or_default()
    }

    /// Bytes of static shared memory, of local memory, and registers of a kernel.
    pub(crate) fn sizes(&self, kernel: &str) -> Option<[u32; 3]> {
        self.kernel(kernel).map(|k| [k.static_shared, k.local_bytes, k.template.len() as u32])
    }

    /// The threads that a block of a kernel may have.
    pub(crate) fn most_threads(&self, kernel: &str) -> u32 {
        let bound = self.kernel(kernel).and_then(|k| k.required_threads.or(k.max_threads));
        bound.map_or(1024, |[x, y, z]| x.saturating_mul(y).saturating_mul(z).min(1024))
    }
}

/// Decodes a PTX text.
pub fn parse(text: &str) -> Result<Module, Error> {
    let tokens = lex::tokens(text)?;
    let mut parser = Parser::new(text, &tokens);
    let mut module =
        Module { version: String::new(), target: String::new(), kernels: Vec::new(), variables: Vec::new() };
    while let Some(token) = parser.peek() {
        match token.text {
            ".version" => {
                parser.next();
                module.version = parser.word()?.to_string();
            }
            ".target" => {
                parser.next();
                module.target = parser.word()?.to_string();
                while parser.take(",") {
                    parser.word()?;
                }
            }
            ".address_size" => {
                parser.next();
                if parser.word()? != "64" {
                    return Err(parser.wrong("only addresses of 64 bits are supported"));
                }
            }
            ".file" | ".loc" => parser.skip_line(),
            ".section" => {
                parser.next();
                parser.word()?;
                parser.skip_block()?;
            }
            ".pragma" => parser.skip_statement()?,
            ".visible" | ".weak" | ".extern" | ".common" => {
                parser.external = token.text == ".extern";
                parser.next();
                continue;
            }
            ".global" | ".const" | ".shared" => parser.variable(&mut module.variables)?,
            ".func" => parser.skip_function()?,
            ".entry" => {
                parser.next();
                let kernel = parser.kernel()?;
                if module.kernel(&kernel.name).is_some() {
                    return Err(parser.wrong("two kernels have one name"));
                }
                module.kernels.push(kernel);
            }
            _ => return Err(parser.wrong("unknown directive")),
        }
        parser.external = false;
    }
    if module.version.is_empty() || module.target.is_empty() {
        return Err(Error::text(1, "", "the text lacks .version or .target"));
    }
    parser.initialise(&mut module.variables)?;
    Ok(module)
}

/// The symbols of a module, by name.
pub type Symbols<'a> = BTreeMap<&'a str, Symbol>;
