import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { healthFrom, trouble } from '../src/base/health';
import { bytes, duration, percent, rate, sentence, whole } from '../src/base/words';
import { growth, parseMetrics, share, total } from '../src/monitor/metrics';
import { NAMES } from '../src/monitor/names';
import { groupOf, placeFromProcess, placesFrom } from '../src/monitor/plan';
import { slotsFrom, waitingFrom, waitsFrom } from '../src/monitor/slots';

const GIB = 2 ** 30;

test('rows of the text format', () => {
  const rows = parseMetrics(
    '# HELP a x\n# TYPE a counter\na 3\na{x="1"} 4 1700000000\n' +
      'b{path="/a\\"b\\\\\\n",status="200"} 1e3\nc NaN\nd +Inf\n}{ nonsense\nb{x="y"} 2.5\n',
  );
  assert.deepEqual(rows[2], { name: 'b', labels: { path: '/a"b\\\n', status: '200' }, value: 1000 });
  assert.equal(total(rows, 'a'), 7);
  assert.equal(total(rows, 'c'), undefined);
  assert.equal(total(rows, 'd'), Infinity);
});

test('how fast counters grow, also across a new start of the engine', () => {
  const at = (ms: number, value: number) => ({ at: ms, rows: [{ name: 'n', labels: {}, value }] });
  assert.equal(growth(at(0, 10), at(2000, 50), 'n'), 20);
  assert.equal(growth(at(0, 1000), at(1000, 5), 'n'), 5);
  assert.equal(growth(undefined, at(0, 1), 'n'), undefined);
  assert.equal(growth(at(0, 1), at(0, 1), 'n'), undefined);
  assert.equal(growth(at(0, 1), at(1000, 1), 'other'), undefined);
});

test('shares are those of late; of all where nothing happened of late', () => {
  const sample = (hits: number, misses: number) => ({
    at: 0,
    rows: [
      { name: 'h', labels: {}, value: hits },
      { name: 'm', labels: {}, value: misses },
    ],
  });
  const all = (rows: ReturnType<typeof sample>['rows']) =>
    (total(rows, 'h') ?? 0) + (total(rows, 'm') ?? 0);
  assert.equal(share(sample(100, 100), sample(190, 110), 'h', all), 0.9);
  assert.equal(share(sample(75, 25), sample(75, 25), 'h', all), 0.75);
  assert.equal(share(undefined, sample(0, 0), 'h', all), undefined);
  assert.equal(share(undefined, sample(1, 1), 'x', all), undefined);
});

test('the rows that the server has today are named as it names them', () => {
  const server = path.join(process.cwd(), '../strata/server');
  const text = readdirSync(server, { withFileTypes: true })
    .flatMap((entry) => {
      const file = path.join(server, entry.name);
      return entry.isDirectory() ? readdirSync(file).map((name) => path.join(file, name)) : [file];
    })
    .filter((file) => file.endsWith('.cpp') && !file.endsWith('_test.cpp'))
    .map((file) => readFileSync(file, 'utf8'))
    .join('');
  const missing = Object.values(NAMES).filter((name) => !text.includes(`"${name}"`));
  assert.deepEqual(missing, []);
});

test('a plan becomes a picture whose blocks fill it', () => {
  const places = placesFrom({
    cards: [
      {
        name: 'card0',
        budget_bytes: 10 * GIB,
        reserve_bytes: GIB,
        peak_bytes: 9 * GIB,
        used_bytes: 8 * GIB,
        expert_slots: 12,
        lines: [
          { owner: 'experts', name: 'slots', bytes: 6 * GIB },
          { owner: 'weights', name: 'matrices', bytes: 2 * GIB },
          { owner: 'state', name: 'trunk cells', bytes: GIB },
          { owner: 'tables', name: 'matrices in place', bytes: 3 * GIB, mapped: true },
          // Two phases that share half a GiB: the lines are more than the peak.
          { owner: 'qwen4exp', name: 'activations', bytes: GIB / 2 },
        ],
      },
      'nonsense',
    ],
    ram: { budget_bytes: 4 * GIB, peak_bytes: 2 * GIB, lines: [] },
    storage: { experts: 3, bytes: 5 * GIB },
  });
  assert.deepEqual(places.map(({ name }) => name), ['card0', 'RAM', 'Storage']);
  for (const { bytes: all, blocks } of places.slice(0, 1))
    assert.equal(blocks.reduce((sum, block) => sum + block.bytes, 0), all);
  assert.deepEqual(places[0]!.blocks.map(({ group }) => group), [
    'experts', 'weights', 'cache', 'reserve', 'free',
  ]);
  assert.equal(places[0]!.note, '8.0 GiB taken so far, 12 expert slots, 3.0 GiB used in the file');
  for (const nothing of [undefined, null, 'x', [], {}, { cards: {}, ram: null, storage: 3 }])
    assert.deepEqual(placesFrom(nothing), []);
});

test('lines of a plan are grouped by their owner', () => {
  assert.equal(groupOf({ owner: 'experts', name: 'in RAM' }), 'experts');
  assert.equal(groupOf({ owner: 'tables', name: 'embedding rows' }), 'weights');
  assert.equal(groupOf({ owner: 'experts', name: 'scratch on the host' }), 'work');
  assert.equal(groupOf({ owner: 'engine', name: 'prompt cache' }), 'cache');
  assert.equal(groupOf({ owner: 'weights', name: 'staging' }), 'work');
  assert.equal(groupOf({ owner: 'state', name: 'trunk recurrent' }), 'cache');
  assert.equal(groupOf({ owner: 'engine', name: 'step inputs' }), 'work');
  const process = placeFromProcess(5 * GIB, 2 * GIB, GIB);
  assert.deepEqual(process.blocks.map(({ bytes }) => bytes), [3 * GIB, 2 * GIB]);
});

test('slots and waits in the forms that servers use', () => {
  assert.equal(slotsFrom({ error: 1 }), null);
  assert.deepEqual(slotsFrom([{ id: 0, is_processing: true, n_ctx: 100, n_decoded: 5 }, {}]), [
    { id: '0', busy: true, promptTokens: undefined, answerTokens: 5, readTokens: undefined, contextTokens: 100, seconds: undefined },
    { id: '1', busy: false, promptTokens: undefined, answerTokens: undefined, readTokens: undefined, contextTokens: undefined, seconds: undefined },
  ]);
  assert.equal(slotsFrom({ slots: [{ state: 'idle' }, { state: 'prompt' }] })![1]!.busy, true);
  const list = {
    slots: [{ state: 'reading', prompt_tokens: 8, read_tokens: 2, running_ms: 1500 }],
    waiting: [{ prompt_tokens: 5, running_ms: 20 }, { running_ms: 900 }],
  };
  const [reading] = slotsFrom(list)!;
  assert.deepEqual([reading!.busy, reading!.readTokens, reading!.seconds], [true, 2, 1.5]);
  assert.deepEqual(waitingFrom(list), [
    { what: 'a request for a slot', seconds: 0.9 },
    { what: 'a request for a slot (prompt: 5 tokens)', seconds: 0.02 },
  ]);
  for (const nothing of [undefined, null, [], { waiting: 3 }]) assert.deepEqual(waitingFrom(nothing), []);
  assert.deepEqual(waitsFrom({ wait: 'step on card 0' }), [{ what: 'step on card 0' }]);
  assert.deepEqual(waitsFrom({ wait: '' }), []);
  assert.deepEqual(waitsFrom({ waits: [{ what: 'b', ms: 5 }, { what: 'a', ms: 900 }, {}] }), [
    { what: 'a', seconds: 0.9 },
    { what: 'b', seconds: 0.005 },
  ]);
});

test('the state of the server in words', () => {
  assert.equal(healthFrom({}).state, 'unreachable');
  assert.equal(trouble(healthFrom({ status: 'ready' })), '');
  const words = trouble(healthFrom({ status: 'failed', reasons: ['the file is damaged', 3] }));
  assert.equal(words, 'The engine has failed and stays off. The file is damaged.');
  assert.match(trouble(healthFrom({ status: 'starting', phase: 'loading weights' })), /\(loading weights\)/);
});

test('numbers as people read them', () => {
  assert.deepEqual([0, 999, 1000, 1234567].map(whole), ['0', '999', '1\u202f000', '1\u202f234\u202f567']);
  assert.deepEqual([0, 1023, 1024, 1.5 * GIB, 700 * GIB].map(bytes), ['0 B', '1023 B', '1.0 KiB', '1.5 GiB', '700 GiB']);
  assert.deepEqual([0.0123, 0.5, 12.3, 75, 3720].map(duration), ['12 ms', '0.5 s', '12 s', '1 min 15 s', '1 h 2 min']);
  assert.deepEqual([0, 0.123, 1].map(percent), ['0 %', '12.3 %', '100 %']);
  assert.deepEqual([9.94, 123.4].map(rate), ['9.9', '123']);
  assert.deepEqual(['', 'no model', 'Done!'].map(sentence), ['', 'No model.', 'Done!']);
});
