// Bundles each test with what it tests and hands them to Node's own runner: `npm test`.
import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = path.dirname(fileURLToPath(import.meta.url));
const out = path.join(here, '../node_modules/.tests');
const names = readdirSync(here).filter((name) => name.endsWith('.test.ts'));
rmSync(out, { recursive: true, force: true });
await build({
  entryPoints: names.map((name) => path.join(here, name)),
  outdir: out,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  platform: 'node',
  format: 'esm',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  logLevel: 'warning',
});
const files = names.map((name) => path.join(out, name.replace(/\.ts$/, '.mjs')));
process.exit(spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit' }).status ?? 1);
