((doctest_code) @injection.content
  (#set! injection.language "tessera")
  (#set! injection.combined))
