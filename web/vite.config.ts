import { defineConfig, type Plugin } from 'vite';

/** Of marked only the lexer is used; what follows it in the file makes HTML, and would go along. */
const lexerOfMarked: Plugin = {
  name: 'lexer-of-marked',
  apply: 'build',
  transform(code, id) {
    if (!id.endsWith('marked.esm.js')) return undefined;
    const end = code.indexOf('// src/Renderer.ts');
    if (end < 0) this.error('marked has another form: see lexerOfMarked in vite.config.ts');
    return { code: code.slice(0, end) + 'export { _Lexer as Lexer };', map: null };
  },
};

// The bundle is three files with fixed names, which the server has built in: strata/server/page/.
export default defineConfig({
  base: './',
  plugins: [lexerOfMarked],
  build: {
    // Not only what the page itself asks for: light-dark() of the style sheet needs these browsers.
    target: ['chrome123', 'firefox120', 'safari17.5'],
    outDir: process.env.STRATA_PAGE_OUT ?? '../strata/server/page',
    emptyOutDir: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    sourcemap: false,
    rollupOptions: {
      output: {
        entryFileNames: 'app.js',
        assetFileNames: 'style[extname]',
        inlineDynamicImports: true,
      },
    },
  },
  server: {
    // `npm run dev` beside a running server.
    proxy: Object.fromEntries(
      ['/v1', '/health', '/metrics', '/props', '/slots'].map((path) => [
        path,
        process.env.STRATA_URL ?? 'http://127.0.0.1:8080',
      ]),
    ),
  },
});
