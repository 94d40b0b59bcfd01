-- Starts the language server of C$ for files *.cb in Neovim (0.8 or later): a file of ~/.config/nvim/plugin.

vim.filetype.add({ extension = { cb = "cdollar" } })

vim.api.nvim_create_autocmd("FileType", {
    pattern = "cdollar",
    callback = function(event)
        vim.bo.commentstring = "// %s"
        vim.lsp.start({
            name = "cdollar",
            cmd = { "rayfold", "cdollar", "serve" },
            root_dir = vim.fs.dirname(vim.api.nvim_buf_get_name(event.buf)),
        })
        for keys, action in pairs({
            gd = vim.lsp.buf.definition,
            gr = vim.lsp.buf.references,
            K = vim.lsp.buf.hover,
            ["<F2>"] = vim.lsp.buf.rename,
        }) do
            vim.keymap.set("n", keys, action, { buffer = event.buf })
        end
    end,
})
