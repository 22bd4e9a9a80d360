; Names of captures as in Neovim. `test.sh` of `editors/` only checks that the query fits the grammar.
[
  (function_definition)
  (struct_definition)
  (if_statement)
  (for_statement)
  (while_statement)
  (with_statement)
  (parameters)
  (argument_list)
  (list)
  (list_comprehension)
  (tuple)
  (dictionary)
  (parenthesized_expression)
  (subscript)
] @indent.begin

(
  [
    (elif_clause)
    (else_clause)
  ] @indent.branch
)

[
  ")"
  "]"
  "}"
] @indent.branch @indent.end

[
  (return_statement)
  (break_statement)
  (continue_statement)
  (pass_statement)
] @indent.dedent

[
  (string)
  (comment)
] @indent.auto
