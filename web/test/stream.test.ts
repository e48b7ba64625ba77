import assert from 'node:assert/strict';
import test from 'node:test';
import { Failure, retryAfter } from '../src/base/api';
import { EventParser, readEvents } from '../src/base/events';
import { streamAnswer, type Piece } from '../src/chat/answer';

const encoder = new TextEncoder();

function streamOf(...pieces: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
}

async function all<T>(pieces: AsyncIterable<T>): Promise<T[]> {
  const result: T[] = [];
  for await (const piece of pieces) result.push(piece);
  return result;
}

const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ model: 'm', choices: [{ delta, finish_reason }] })}\n\n`;

const ANSWER =
  ': waiting\n\n' +
  chunk({ role: 'assistant', content: '' }) +
  chunk({ reasoning_content: 'Grübeln 🤔' }) +
  chunk({ content: 'Größe: ' }) +
  chunk({ content: '7 \u2028 \ud83c\udf0d' }) +
  chunk({}, 'stop') +
  'data: {"choices": [], "usage": {"completion_tokens": 4}, "timings": {"decode_tokens_per_s": 9.5}}\n\n' +
  'data: [DONE]\n\n';

const EXPECTED: Piece[] = [
  { type: 'opened', model: 'm' },
  { type: 'reasoning', text: 'Grübeln 🤔' },
  { type: 'content', text: 'Größe: ' },
  { type: 'content', text: '7 \u2028 \ud83c\udf0d' },
  { type: 'end', reason: 'stop' },
];

test('events are the same wherever the stream is cut, with every kind of line end', async () => {
  for (const end of ['\n', '\r\n', '\r']) {
    const bytes = encoder.encode(ANSWER.replaceAll('\n', end) + (end === '\r' ? ': \n' : ''));
    const whole = await all(readEvents(streamOf(bytes)));
    assert.equal(whole.at(-1 - Number(end === '\r')), '[DONE]');
    for (let at = 1; at < bytes.length; at++)
      assert.deepEqual(await all(readEvents(streamOf(bytes.slice(0, at), bytes.slice(at)))), whole);
  }
});

test('calls of tools come in pieces, several of them beside each other', async () => {
  const given = globalThis.fetch;
  const call = (index: number, text: string, id?: string) =>
    chunk({ tool_calls: [{ index, id, function: { name: id && 'f', arguments: text } }] });
  const text = call(0, '', 'a') + call(0, '{}') + call(1, '{"x"', 'b') + call(1, ':1}') + chunk({}, 'tool_calls');
  globalThis.fetch = async () => new Response(streamOf(encoder.encode(text)));
  try {
    const pieces = await all(streamAnswer({}, new AbortController().signal));
    assert.deepEqual(pieces.slice(1), [
      { type: 'call', index: 0, id: 'a', name: 'f', text: '' },
      { type: 'call', index: 0, id: undefined, name: undefined, text: '{}' },
      { type: 'call', index: 1, id: 'b', name: 'f', text: '{"x"' },
      { type: 'call', index: 1, id: undefined, name: undefined, text: ':1}' },
      { type: 'end', reason: 'tool_calls' },
    ]);
  } finally {
    globalThis.fetch = given;
  }
});

test('data of several lines is one event; other fields are passed over', () => {
  const parser = new EventParser();
  const text = 'event: x\ndata: a\ndata:b\nid: 3\n\n\n\ndata\ndata: unfinished\n';
  assert.deepEqual([...parser.push(text)], ['a\nb']);
});

async function answerTo(reply: () => Promise<Response>, silenceMs?: number, signal = new AbortController().signal) {
  const before = globalThis.fetch;
  globalThis.fetch = (_, init) =>
    new Promise((resolve, reject) => {
      init?.signal?.addEventListener('abort', () => reject(init.signal!.reason));
      if (init?.signal?.aborted) reject(init.signal.reason);
      reply().then(resolve, reject);
    });
  try {
    return await all(streamAnswer({}, signal, silenceMs));
  } finally {
    globalThis.fetch = before;
  }
}

const streamed = (text: string) => async () => new Response(text);

async function failure(promise: Promise<unknown>): Promise<Failure> {
  const error = await promise.then(() => assert.fail('no failure'), (reason) => reason);
  assert.ok(error instanceof Failure, String(error));
  return error;
}

test('an answer comes in pieces and ends with what the server measured', async () => {
  const pieces = await answerTo(streamed(ANSWER));
  assert.deepEqual(pieces.slice(0, -1), EXPECTED);
  const last = pieces.at(-1)!;
  assert.ok(last.type === 'measured');
  assert.deepEqual([last.measured.tokens, last.measured.rate], [4, 9.5]);
});

test('a stream that ends too soon is cut, wherever that happens', async () => {
  const text = ANSWER.slice(0, ANSWER.indexOf('"stop"'));
  for (const length of [0, 5, 40, text.length]) {
    const error = await failure(answerTo(streamed(text.slice(0, length))));
    assert.equal(error.kind, 'cut');
  }
  // The reason has come: what is missing is no part of the answer.
  const end = ANSWER.indexOf('data: {"choices": []');
  assert.equal((await answerTo(streamed(ANSWER.slice(0, end)))).at(-1)!.type, 'end');
});

test('an error inside the stream has its message', async () => {
  const text = chunk({ content: 'a' }) + 'data: {"error": {"message": "the engine died"}}\n\n';
  const error = await failure(answerTo(streamed(text)));
  assert.deepEqual([error.kind, error.message], ['server', 'the engine died']);
});

test('refusals are told apart', async () => {
  const reply = (status: number, body: string, headers = {}) =>
    failure(answerTo(async () => new Response(body, { status, headers })));
  const busy = await reply(429, '{"error": {"message": "full"}}', { 'Retry-After': '7' });
  assert.deepEqual([busy.kind, busy.message, busy.details.retryAfter], ['busy', 'full', 7]);
  assert.equal((await reply(503, '<html>')).kind, 'busy');
  assert.equal((await reply(401, '{}')).kind, 'key');
  assert.equal((await reply(413, '{"error": {}}')).kind, 'refused');
  assert.match((await reply(502, 'Bad gateway')).message, /502/);
  const gone = await failure(answerTo(() => Promise.reject(new TypeError('fetch failed'))));
  assert.equal(gone.kind, 'unreachable');
});

test('silence ends an answer, and so does whoever asked', async () => {
  const never = () => new Promise<Response>(() => undefined);
  const silent = await failure(answerTo(never, 20));
  assert.deepEqual([silent.kind, silent.message], ['cut', 'The server fell silent.']);
  const controller = new AbortController();
  const stopped = answerTo(never, 60_000, controller.signal);
  controller.abort('enough');
  await assert.rejects(stopped, (reason) => reason === 'enough');
});

test('Retry-After is seconds or a date', () => {
  const now = Date.parse('2030-01-01T00:00:00Z');
  assert.equal(retryAfter(' 12 ', now), 12);
  assert.equal(retryAfter('Tue, 01 Jan 2030 00:00:30 GMT', now), 30);
  assert.equal(retryAfter('Tue, 01 Jan 2029 00:00:30 GMT', now), 0);
  for (const nothing of [null, '', 'soon']) assert.equal(retryAfter(nothing, now), undefined);
});
