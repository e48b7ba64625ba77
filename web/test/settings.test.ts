import assert from 'node:assert/strict';
import test from 'node:test';
import { propsFrom } from '../src/base/props';
import {
  changedCount,
  NO_SETTINGS,
  NUMBER_FIELDS,
  problemOf,
  readSettings,
  requestFields,
  stopsOf,
  toolsOf,
} from '../src/chat/settings';

const TOOLS = '[{"type": "function", "function": {"name": "f"}}]';
const field = (name: string) => NUMBER_FIELDS.find((each) => each.name === name)!;

test('what is left empty is left to the server', () => {
  assert.deepEqual(requestFields(NO_SETTINGS), {});
  assert.deepEqual(requestFields({ ...NO_SETTINGS, numbers: { temperature: ' ', seed: '' } }), {});
  assert.equal(changedCount(NO_SETTINGS), 0);
});

test('every setting becomes its field, with its type', () => {
  const numbers = Object.fromEntries(NUMBER_FIELDS.map(({ name }) => [name, '1']));
  const settings = { system: 'x', thinking: 'off', effort: 'low', stop: 'a\nb\\n', tools: TOOLS, numbers } as const;
  assert.deepEqual(requestFields({ ...settings }), {
    ...Object.fromEntries(NUMBER_FIELDS.map(({ name }) => [name, 1])),
    stop: ['a', 'b\n'],
    tools: JSON.parse(TOOLS),
    chat_template_kwargs: { enable_thinking: false },
    reasoning_effort: 'low',
  });
  assert.equal(changedCount({ ...settings }), NUMBER_FIELDS.length + 5);
});

test('tools that cannot be are named and not sent', () => {
  assert.deepEqual(toolsOf(' '), { tools: [], problem: '' });
  assert.deepEqual(toolsOf('{"function": {"name": "f"}}').tools, [{ function: { name: 'f' } }]);
  for (const wrong of ['[', '[1]', '[null]', '"x"', '[{"function": {}}]']) {
    const { tools, problem } = toolsOf(wrong);
    assert.deepEqual([tools.length, problem !== ''], [0, true], wrong);
    assert.deepEqual(requestFields({ ...NO_SETTINGS, tools: wrong }), {});
  }
});

test('numbers out of their range are named and not sent', () => {
  const cases: [string, string, boolean][] = [
    ['temperature', '0', true],
    ['temperature', '-0.1', false],
    ['temperature', '1e400', false],
    ['temperature', 'warm', false],
    ['top_p', '0', false],
    ['top_p', '0.001', true],
    ['top_p', '1.001', false],
    ['top_k', '2.5', false],
    ['seed', '9007199254740993000', false],
    ['max_tokens', '0', false],
    ['presence_penalty', '-2', true],
  ];
  for (const [name, typed, good] of cases) {
    assert.equal(problemOf(field(name), typed) === '', good, `${name} ${typed}`);
    const sent = requestFields({ ...NO_SETTINGS, numbers: { [name]: typed } });
    assert.deepEqual(sent, good ? { [name]: Number(typed) } : {});
  }
});

test('stop texts: one a line, with line breaks and tabs written out, no more than the API takes', () => {
  assert.deepEqual(stopsOf('###\n\n\\n\\nUser:\na\\\\nb\n\\t'), ['###', '\n\nUser:', 'a\\nb', '\t']);
  const many = Array.from({ length: 20 }, (_, i) => `s${i}`).join('\n');
  assert.equal((requestFields({ ...NO_SETTINGS, stop: many }).stop as string[]).length, 16);
});

test('stored settings that are damaged fall back', () => {
  for (const text of [null, '', '{', '[]', '{"thinking": "perhaps", "numbers": 3, "system": 1}'])
    assert.deepEqual(readSettings(text), NO_SETTINGS);
  const read = readSettings('{"numbers": {"seed": "3", "other": "1", "top_k": 5}, "effort": "high"}');
  assert.deepEqual(read, { ...NO_SETTINGS, effort: 'high', numbers: { seed: '3' } });
});

test('what the server says of itself is not believed blindly', () => {
  for (const nothing of [undefined, null, 3, 'x', {}, { chat_template: 'text', memory_plan: undefined }])
    assert.deepEqual(propsFrom(nothing), {
      defaults: {},
      thinking: undefined,
      effort: undefined,
      memoryPlan: undefined,
    });
  const body = { default_generation_settings: { top_p: 0.9 }, chat_template: { enable_thinking: false } };
  const { defaults, thinking } = propsFrom(body);
  assert.deepEqual([defaults.top_p, thinking], [0.9, false]);
});
