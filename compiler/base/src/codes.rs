//! The table of diagnostics. One row here, one page in `compiler/base/pages/CODE.md`.
//!
//! Classes: 00 syntax, 01 names and modules, 02 types, sizes and dtypes, 03 effects and
//! mutation, 04 meshes and sharding, 05 kernels and schedules, 06 targets and devices,
//! 07 run time, 09 limits.

use crate::Severity;
use std::fmt;

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $code:ident;)*) => {
        /// A diagnostic code.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Code { $($(#[doc = $doc])* $code),* }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$code),*];

            pub fn name(self) -> &'static str {
                match self { $(Code::$code => stringify!($code)),* }
            }

            /// One line that says what the code stands for.
            pub fn title(self) -> &'static str {
                match self { $(Code::$code => concat!($($doc),*).trim_ascii()),* }
            }

            /// The page that `tessera explain CODE` prints (Markdown).
            pub fn page(self) -> &'static str {
                match self { $(Code::$code => include_str!(concat!("../pages/", stringify!($code), ".md"))),* }
            }
        }
    };
}

codes! {
    /// A character that no token begins with
    E0001;
    /// Something else was expected here
    E0002;
    /// A bracket that is never closed, or closed by another kind
    E0003;
    /// Indentation that matches no open block, or that is missing
    E0004;
    /// Tabs and spaces mixed in the indentation of one block
    E0005;
    /// A string that does not end, or an escape that is not known
    E0006;
    /// A number that cannot be read
    E0007;
    /// A block opener without its colon
    E0008;
    /// A statement where it has no meaning (`break` outside a loop, `return` outside a function)
    E0009;
    /// A target that cannot be assigned to
    E0010;
    /// Source text nested too deeply
    E0011;
    /// The text of an IR file that cannot be read
    E0012;

    /// A name that is not defined
    E0101;
    /// A module or a member of a module that does not exist
    E0102;
    /// A field or method that the value does not have
    E0103;
    /// The wrong number of arguments, or an argument missing
    E0104;
    /// A keyword argument that the function does not have, or that is given twice
    E0105;
    /// A name defined twice where it may be defined once
    E0106;
    /// A name that may be used before it has a value
    E0107;

    /// The contracted sizes of a matrix product differ
    E0201;
    /// Sizes that cannot be equal
    E0202;
    /// Shapes that do not broadcast
    E0203;
    /// A type where another one is needed
    E0204;
    /// Operand types that the operator does not take
    E0205;
    /// Two dtypes that neither widen exactly into the other
    E0206;
    /// A tensor of the wrong rank, or an axis out of range
    E0207;
    /// A reshape that does not keep the number of elements
    E0208;
    /// Types that disagree where control flow joins
    E0209;
    /// A value that is not callable
    E0210;
    /// More indices than dims, or an index of the wrong type
    E0211;
    /// A size that cannot be proved for all values of the signature
    E0212;
    /// A rank or dtype that must be known here and is not
    E0213;
    /// A dtype argument or value that is not allowed
    E0214;
    /// A type expression that is not a type
    E0215;
    /// A type that cannot be inferred
    E0216;
    /// A derivative that does not exist
    E0217;

    /// An operation that a graph function cannot contain
    E0301;
    /// A value that cannot be changed
    E0302;

    /// A sharding that is not well formed
    E0401;
    /// A mesh that is not well formed
    E0402;
    /// A mesh axis that does not exist
    E0403;
    /// Operands whose layouts do not go together
    E0404;
    /// A partial value where the whole one is needed
    E0405;
    /// A split dim that an operation needs in full
    E0406;
    /// A collective that does not fit the layout of its operand
    E0407;
    /// A per-device function that does not fit its call
    E0408;
    /// A value that differs between devices where it must not
    E0409;
    /// A collective of a value that all devices have
    E0410;
    /// Parts that are put together in another way than they were made
    E0411;
    /// A stage that mixes the rows of a microbatch
    E0412;
    /// A number that depends on how many devices there are
    E0413;
    /// Ways to use meshes that are not supported yet
    E0490;

    /// A directive or policy that is not known
    E0501;
    /// A schedule directive outside a kernel
    E0502;
    /// A kernel that does something other than compute tensors
    E0503;
    /// A directive or decorator of a kernel with arguments that it cannot have
    E0504;
    /// A kernel's output that nothing sees, or that is also an argument
    E0505;
    /// A tile that does not fit the scratch memory
    E0506;
    /// A race between the programs of a tile program
    E0507;
    /// A tile outside its tensor
    E0508;
    /// Kernels that are not supported yet
    E0590;

    /// The LLVM library could not be loaded
    E0601;
    /// A target or option that this build does not offer
    E0602;
    /// The compiler failed on generated code
    E0603;
    /// MPI cannot be used
    E0604;
    /// No GPU that can be used
    E0605;
    /// Kernels without a record of their schedule, or something to measure that this machine does not tell
    E0606;
    /// An operator or feature that is not supported yet
    E0690;

    /// Integer overflow
    E0701;
    /// Division by zero
    E0702;
    /// An index out of range
    E0703;
    /// A key that the dict does not have
    E0704;
    /// An assertion that failed
    E0705;
    /// A file that cannot be read or written
    E0706;
    /// The content of a file differs from the declared type
    E0707;
    /// Sizes that turned out to differ at run time
    E0708;
    /// The call stack is exhausted
    E0709;
    /// More memory than there is
    E0710;
    /// A value outside the domain of the operation
    E0711;
    /// Text that cannot be converted
    E0712;
    /// Interrupted
    E0713;
    /// A test that failed
    E0714;
    /// A file does not hold the tensors that are asked for
    E0715;
    /// A result that is not finite, of operands that are
    E0716;
    /// A region needs more memory than it may take
    E0717;
    /// A value is needed that only running gives
    E0718;
    /// A matrix without the factors or the solution that are asked for
    E0719;
    /// Processes of a run that do not do the same
    E0720;
    /// A process of a run that ended or does not answer
    E0721;
    /// A GPU that stopped
    E0722;

    /// A function that needs more than its budget
    E0801;
    /// A budget that says nothing that can be checked
    E0802;
    /// A budget of a function whose sizes are not known before the run
    E0803;

    /// A program that is too large or too deep for the compiler
    E0901;
    /// An error of the compiler itself
    E0999;

    /// A name that hides a built-in module
    W0101;
    /// Advice of a function for the numbers it is called with
    W0102;
    /// An assertion that what is known of the sizes rules out
    W0103;
    /// A size that has the name of a variable
    W0104;
    /// An import that nothing reads
    W0105;
    /// A statement without effect
    W0106;
    /// A random key that is used twice
    W0107;
    /// A variable that nothing reads
    W0108;
    /// A statement that is never reached
    W0109;
    /// A new value that nothing reads
    W0110;
    /// Two names for the rows of one tensor
    W0111;
    /// Axes that exchange nothing
    W0112;
    /// A computed float that is compared to the last bit
    W0113;
    /// An f-string without a value
    W0114;
    /// A loop of tensor code that is written out many times
    W0115;
    /// A collective with nothing to do
    W0401;
    /// An axis of a mesh that lies across nodes, while one with less to move lies inside
    W0402;
    /// A directive that the target cannot honour
    W0501;
    /// A tile that does not suit its element type
    W0502;
    /// A directive that nothing consumes
    W0503;
    /// A cache entry that could not be used
    W0601;
    /// An option that has no effect on a part of the program
    W0602;
    /// Records of tuning that could not be used or kept
    W0603;
    /// A budget that no call checks
    W0801;
}

impl Code {
    pub fn parse(text: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|c| c.name().eq_ignore_ascii_case(text))
    }

    pub fn severity(self) -> Severity {
        if self.name().starts_with('E') { Severity::Error } else { Severity::Warning }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}
