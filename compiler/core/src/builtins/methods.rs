//! Methods that change a list or dict in place.

use tessera_abi::rt::RtFn;

/// What such a method takes, beside what it changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// An element of the list.
    Element,
    /// A key of the dict.
    Key,
    /// Another list or dict of the same type.
    Whole,
    /// A position in the list.
    Position,
    /// Whether to sort from the greatest to the least.
    Descending,
}

/// All that is known of a method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MethodDef {
    /// The name in Core.
    pub name: &'static str,
    /// Of a dict; else of a list.
    pub of_dict: bool,
    pub takes: &'static [Takes],
    /// Takes the old value and the arguments, and gives the new one.
    pub func: RtFn,
}

macro_rules! methods {
    ($($variant:ident $name:literal of_dict $of_dict:literal [$($takes:ident)*] $func:ident;)*) => {
        /// A method that changes a list or dict in place.
        #[allow(non_camel_case_types, reason = "variants are the names in Core")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Method { $($variant),* }

        impl Method {
            pub const ALL: &[Method] = &[$(Method::$variant),*];

            pub fn def(self) -> MethodDef {
                match self {
                    $(Method::$variant => MethodDef {
                        name: $name,
                        of_dict: $of_dict,
                        takes: &[$(Takes::$takes),*],
                        func: RtFn::$func,
                    }),*
                }
            }
        }
    };
}

methods! {
    list_append "list.append" of_dict false [Element] list_push;
    list_extend "list.extend" of_dict false [Whole] list_extend;
    list_insert "list.insert" of_dict false [Position Element] list_insert;
    list_pop "list.pop" of_dict false [Position] list_delete;
    list_remove "list.remove" of_dict false [Element] list_remove;
    list_sort "list.sort" of_dict false [Descending] list_sort;
    list_reverse "list.reverse" of_dict false [] list_reverse;
    list_clear "list.clear" of_dict false [] list_clear;
    dict_pop "dict.pop" of_dict true [Key] dict_delete;
    dict_update "dict.update" of_dict true [Whole] dict_update;
    dict_clear "dict.clear" of_dict true [] dict_clear;
}

impl Method {
    pub fn name(self) -> &'static str {
        self.def().name
    }

    pub fn parse(name: &str) -> Option<Method> {
        Method::ALL.iter().copied().find(|c| c.name() == name)
    }
}
