; Functions, lambdas and comprehensions have names of their own; blocks have not.
[
  (module)
  (function_definition)
  (struct_definition)
  (lambda)
  (list_comprehension)
  (generator)
] @local.scope

(function_definition name: (identifier) @local.definition.function)
(struct_definition name: (identifier) @local.definition.type)
(type_parameters (identifier) @local.definition.type)

(parameter name: (identifier) @local.definition.parameter)
(rest_parameter name: (identifier) @local.definition.parameter)

(assignment left: (identifier) @local.definition.var)
(assignment left: (expression_list (identifier) @local.definition.var))
(assignment left: (tuple (identifier) @local.definition.var))
(assignment left: (list (identifier) @local.definition.var))
(annotated_assignment left: (identifier) @local.definition.var)
(for_statement left: (identifier) @local.definition.var)
(for_statement left: (expression_list (identifier) @local.definition.var))
(for_statement left: (tuple (identifier) @local.definition.var))
(for_clause left: (identifier) @local.definition.var)
(for_clause left: (expression_list (identifier) @local.definition.var))
(for_clause left: (tuple (identifier) @local.definition.var))
(with_item alias: (identifier) @local.definition.var)

(import_statement (dotted_name . (identifier) @local.definition.import .))
(aliased_import alias: (identifier) @local.definition.import)
(import_from_statement name: (identifier) @local.definition.import)

(identifier) @local.reference
