-- The language server. Put this into `init.lua`; `tessera` must be on the path.

if vim.lsp.config then
  -- Neovim 0.11 and newer.
  vim.lsp.config('tessera', {
    cmd = { 'tessera', 'lsp' },
    filetypes = { 'tessera' },
    root_markers = { '.git' },
  })
  vim.lsp.enable('tessera')
else
  -- Neovim 0.8 to 0.10.
  vim.api.nvim_create_autocmd('FileType', {
    pattern = 'tessera',
    callback = function(event)
      local marker = vim.fs.find('.git', { path = event.file, upward = true })[1]
      vim.lsp.start({
        name = 'tessera',
        cmd = { 'tessera', 'lsp' },
        root_dir = marker and vim.fs.dirname(marker) or vim.fs.dirname(event.file),
      })
    end,
  })
end
