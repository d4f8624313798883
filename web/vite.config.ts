import { defineConfig } from "vite";

export default defineConfig({
  base: "/dibs/",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2021",
    // Everything in one script and one sheet: there is nothing to load later, so nothing that loads.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rollupOptions: { output: { manualChunks: undefined } },
  },
});
