// What the tests of the page share: a browser, the program, and a server that says what a test wants.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const BINARY = process.env.STRATA_BINARY ?? path.join(ROOT, 'build/release/bin/strata');
const CHROMIUM = process.env.STRATA_CHROMIUM ?? '/usr/bin/chromium';
/** What a busy machine may take for what takes a moment on an idle one. */
export const PATIENCE_MS = 60_000;

/** Why the tests cannot run here; empty: they can. */
export function obstacle() {
  if (!existsSync(CHROMIUM)) return `no Chromium at ${CHROMIUM}`;
  if (!existsSync(path.join(ROOT, 'web/node_modules/playwright-core')))
    return 'no web/node_modules: run npm ci in web/';
  return '';
}

/** A browser; `visit` opens a page in a profile of its own that fails on errors and foreign requests. */
export async function openBrowser() {
  const { chromium } = createRequire(path.join(ROOT, 'web/package.json'))('playwright-core');
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    // Tests run in containers, too, as root and with a small /dev/shm.
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
  return {
    close: () => browser.close(),
    async visit(url, options = {}) {
      const context = await browser.newContext({
        viewport: { width: 1180, height: 780 },
        reducedMotion: 'reduce',
        ...options,
      });
      context.setDefaultTimeout(PATIENCE_MS);
      const page = await context.newPage();
      const faults = [];
      page.on('pageerror', (error) => faults.push(error.stack ?? String(error)));
      page.on('console', (message) => {
        // What the policy forbids stands here. A refused request is for each test to judge.
        const text = message.text();
        if (message.type() === 'error' && !text.includes('Failed to load resource'))
          faults.push(text);
      });
      page.on('request', (request) => {
        if (!request.url().startsWith(url) && !/^(data|blob):/.test(request.url()))
          faults.push('asked for ' + request.url());
      });
      await page.goto(url);
      return { page, context, faults };
    },
  };
}

/** `strata serve` with the demo model. */
export async function startStrata(...options) {
  const model = path.join(ROOT, 'models/strata-demo.gguf');
  const args = ['serve', model, '--port', '0', '--threads', '1', ...options];
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('STRATA_')),
  );
  const child = spawn(BINARY, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
  let log = '';
  const url = await new Promise((resolve, reject) => {
    child.stderr.setEncoding('utf8');
    child.stderr.on('data', (text) => {
      log += text;
      const match = /serving .* on (http:\/\/\S+:\d+)/.exec(log);
      if (match) resolve(match[1] + '/');
    });
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`strata ended with ${code}:\n${log}`)));
  });
  await waitFor('ready', async () => (await fetch(url + 'health')).ok);
  return {
    url,
    log: () => log,
    /** The process that computes, a child of the front. */
    async enginePid() {
      const { readFileSync, readdirSync } = await import('node:fs');
      for (const task of readdirSync(`/proc/${child.pid}/task`)) {
        const children = readFileSync(`/proc/${child.pid}/task/${task}/children`, 'utf8').trim();
        if (children) return Number(children.split(' ')[0]);
      }
      return 0;
    },
    async stop() {
      if (child.exitCode !== null) return;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await ended;
    },
  };
}

export async function waitFor(what, condition, limitMs = PATIENCE_MS) {
  const end = Date.now() + limitMs;
  for (;;) {
    try {
      const result = await condition();
      if (result) return result;
    } catch {
      // Not yet.
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
