(function_definition "def" @context name: (identifier) @name) @item
(struct_definition "struct" @context name: (identifier) @name) @item
