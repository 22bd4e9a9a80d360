-- A real session against the language server: `TESSERA=target/release/tessera nvim --headless -u NONE -l …` in new versions,
-- `nvim --headless -u NONE -c 'luafile editors/neovim/test/session.lua'` in all. Prints `ok` lines, and leaves with 1 on a failure.

local function finish(failure)
  if failure then
    io.stdout:write('FAILED: ' .. failure .. '\n')
    vim.cmd('cquit 1')
  end
  vim.cmd('qall!')
end

local function check(what, holds, seen)
  if not holds then
    finish(what .. (seen and (': ' .. vim.inspect(seen)) or ''))
  end
  io.stdout:write('ok ' .. what .. '\n')
end

local text = {
  'def twice(x: Tensor[N, f32]) -> Tensor[N, f32]:',
  '    y = x * 2.0',
  '    return y',
  '',
  '',
  'z = twice(op.ones((4,)))',
  'print(z.shap)',
}
local file = vim.fn.tempname() .. '.tsr'
vim.fn.writefile(text, file)
vim.cmd('edit ' .. file)
local server = vim.env.TESSERA or 'tessera'
local id = vim.lsp.start_client({ name = 'tessera', cmd = { server, 'lsp' }, root_dir = vim.fn.fnamemodify(file, ':h') })
check('the server starts', id ~= nil)
vim.lsp.buf_attach_client(0, id)

local found
vim.wait(10000, function()
  found = vim.diagnostic.get(0)
  return #found > 0
end, 20)
check('diagnostics', #found == 1 and found[1].lnum == 6 and found[1].message:find('no attribute `shap`'), found)

local function ask(method, line, column, more)
  local params = { textDocument = vim.lsp.util.make_text_document_params(), position = { line = line, character = column } }
  local all = vim.lsp.buf_request_sync(0, method, vim.tbl_extend('force', params, more or {}), 10000) or {}
  return (all[id] or {}).result
end

local hover = ask('textDocument/hover', 1, 4)
check('hover', hover and hover.contents.value:find('y: Tensor%[N, f32%]'), hover)

local definition = ask('textDocument/definition', 5, 5)
check('definition', definition and definition[1].range.start.line == 0, definition)

local items = ask('textDocument/completion', 6, 8)
local labels = vim.tbl_map(function(item) return item.label end, items.items or items)
check('completion', vim.tbl_contains(labels, 'shape'), labels)

local edit = ask('textDocument/rename', 1, 4, { newName = 'doubled' })
vim.lsp.util.apply_workspace_edit(edit, 'utf-16')
local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
check('rename', lines[2] == '    doubled = x * 2.0' and lines[3] == '    return doubled', lines)

local actions = ask('textDocument/codeAction', 6, 9, {
  range = { start = { line = 6, character = 8 }, ['end'] = { line = 6, character = 8 } },
  context = { diagnostics = {} },
})
local fix = vim.tbl_filter(function(action) return action.kind == 'quickfix' end, actions or {})[1]
check('a fix is offered', fix ~= nil, actions)
vim.lsp.util.apply_workspace_edit(fix.edit, 'utf-16')
vim.wait(10000, function()
  found = vim.diagnostic.get(0)
  return #found == 0
end, 20)
lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
check('the fix mends the program', lines[7] == 'print(z.shape)' and #found == 0, { lines, found })

vim.api.nvim_buf_set_lines(0, 6, 7, false, { 'print( z.shape )' })
local edits = ask('textDocument/formatting', 0, 0, { options = { tabSize = 4, insertSpaces = true } })
vim.lsp.util.apply_text_edits(edits, 0, 'utf-16')
lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
check('formatting', lines[7] == 'print(z.shape)', lines)

vim.lsp.stop_client(id)
finish()
