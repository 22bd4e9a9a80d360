; Examples in docstrings are programs.
((doctest_code) @injection.content
  (#set! injection.language "tessera")
  (#set! injection.combined))

((comment) @injection.content
  (#set! injection.language "comment"))
