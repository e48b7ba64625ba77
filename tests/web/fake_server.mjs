// Serves the built page, under the policy of the real server, before an API that says what a test wants.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { ROOT } from './support.mjs';

const PAGE = path.join(ROOT, 'strata/server/page');
const FILES = {
  '/': ['index.html', 'text/html; charset=utf-8'],
  '/app.js': ['app.js', 'text/javascript; charset=utf-8'],
  '/style.css': ['style.css', 'text/css; charset=utf-8'],
};

/** The policy as strata/server/page.h has it. */
function policy() {
  const header = readFileSync(path.join(ROOT, 'strata/server/page.h'), 'utf8');
  const strings = /kPageSecurityPolicy =\s*((?:"[^"]*"\s*)+);/.exec(header)[1];
  return [...strings.matchAll(/"([^"]*)"/g)].map(([, part]) => part).join('');
}

export const READY = {
  status: 'ready',
  reasons: [],
  phase: 'ready',
  model: 'fake-model',
  restarts: 0,
  engine: { state: 'ready', slots: 4, running: 0, waiting: 0, wait: '', context_length: 32768 },
};

/**
 * `script` may be changed while it runs: `health` (null: no answer at all), `answer(request, reply)`
 * for chat completions, `get` with the texts of other paths, `key` when one is asked for.
 */
export async function startFake(script) {
  const bodies = [];
  const server = http.createServer(async (request, response) => {
    const where = new URL(request.url, 'http://localhost').pathname;
    if (FILES[where]) {
      const [file, type] = FILES[where];
      response.writeHead(200, { 'Content-Type': type, 'Content-Security-Policy': policy() });
      return response.end(readFileSync(path.join(PAGE, file)));
    }
    if (where === '/health') {
      if (!script.health) return request.socket.destroy();
      const ok = ['ready', 'degraded'].includes(script.health.status);
      return sendJson(response, ok ? 200 : 503, script.health);
    }
    if (script.key && request.headers.authorization !== `Bearer ${script.key}`)
      return sendError(response, 401, 'the request has no valid API key');
    if (where === '/v1/chat/completions') {
      let text = '';
      for await (const piece of request) text += piece;
      bodies.push(JSON.parse(text));
      return script.answer(bodies.at(-1), response, bodies.length);
    }
    const given = script.get?.[where];
    const body = typeof given === 'function' ? given() : given;
    if (body === undefined) return sendError(response, 404, 'nothing is here');
    response.writeHead(200, { 'Content-Type': 'text/plain' });
    return response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    bodies,
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

function sendJson(response, status, body, headers = {}) {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

export function sendError(response, status, message, headers = {}) {
  sendJson(response, status, { error: { message, type: 'x', param: null, code: null } }, headers);
}

/** Events of a stream; `deltas` are objects of a choice's delta, or an `error`. */
export function openStream(response) {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const event = (body) => response.write(`data: ${JSON.stringify(body)}\n\n`);
  const choice = (delta, reason = null) =>
    event({ model: 'fake-model', choices: [{ index: 0, delta, finish_reason: reason }] });
  return {
    event,
    delta: (delta) => choice(delta),
    end(reason = 'stop', n = 10) {
      choice({}, reason);
      event({
        choices: [],
        usage: { prompt_tokens: 7, completion_tokens: n, prompt_tokens_details: { cached_tokens: 3 } },
        timings: { queue_ms: 0.1, prompt_ms: 120, decode_tokens_per_s: 41.5 },
      });
      response.end('data: [DONE]\n\n');
    },
  };
}

export function say(response, content, reasoning = '') {
  const stream = openStream(response);
  if (reasoning) stream.delta({ reasoning_content: reasoning });
  stream.delta({ content });
  stream.end();
}
