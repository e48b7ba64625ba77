import Anthropic from '@anthropic-ai/sdk';
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {
  demoServer, hugeText, script, scriptedServer, tools, untilIdle, weatherCall, weatherParameters,
} from './support.mjs';

let demo, model, client, real;
const open = (server, more = {}) =>
    new Anthropic({baseURL: server.url, apiKey: 'none', maxRetries: 0, ...more});
before(async () => {
  [demo, model] = await Promise.all([demoServer(), scriptedServer()]);
  client = open(model);
  real = open(demo);
});
after(() => Promise.all([demo?.stop(), model?.stop()]));

const weather = {name: 'get_weather', description: 'Weather', input_schema: weatherParameters};
const ask = (text, options, more = {}) =>
    ({model: 'm', max_tokens: 200, messages: [{role: 'user', content: script(text, options)}], ...more});

test('a turn with thinking, text and two calls, streamed and not', async () => {
  const text = '<think>\nhm\n</think>\n\nSo \u{1F600}.\n' + weatherCall('Paris') + '\n' + weatherCall('Oslo');
  const body = ask(text, {cut: 1}, {tools: [weather]});
  const whole = await client.messages.create(body);
  assert.deepEqual(whole.content.map((b) => b.type), ['thinking', 'text', 'tool_use', 'tool_use']);
  assert.equal(whole.content[1].text, 'So \u{1F600}.');
  assert.deepEqual(whole.content.slice(2).map((b) => b.input), [{city: 'Paris'}, {city: 'Oslo'}]);
  assert.equal(whole.stop_reason, 'tool_use');
  const streamed = await client.messages.stream(body).finalMessage();
  const plain = (m) => m.content.map(({id, ...rest}) => rest);
  assert.deepEqual(plain(streamed), plain(whole));
  assert.equal(streamed.stop_reason, 'tool_use');
  assert.deepEqual(streamed.usage.output_tokens, whole.usage.output_tokens);
  // The next turn, with what came.
  const next = await client.messages.create({
    ...body,
    messages: [
      ...body.messages,
      {role: 'assistant', content: whole.content},
      {
        role: 'user',
        content: [
          ...whole.content.slice(2).map((b) => ({type: 'tool_result', tool_use_id: b.id, content: 'sunny'})),
          {type: 'text', text: script('Fine.')},
        ],
      },
    ],
  });
  assert.equal(next.content[0].text, 'Fine.');
});

test('ends and stop sequences', async () => {
  const cut = await client.messages.create(ask('abc', {finish: 'length'}));
  assert.equal(cut.stop_reason, 'max_tokens');
  const stopped = await real.messages.create({
    model: 'm', max_tokens: 60, temperature: 0, stop_sequences: ['keyboard'],
    messages: [{role: 'user', content: 'What is a piano?'}],
  });
  assert.equal(stopped.stop_reason, 'stop_sequence');
  assert.equal(stopped.stop_sequence, 'keyboard');
});

test('counted tokens are those of the request', async () => {
  const body = {model: 'm', system: 'Be kind.', messages: [{role: 'user', content: 'What is a piano?'}],
                tools: [weather]};
  const {input_tokens} = await real.messages.countTokens(body);
  const {usage} = await real.messages.create({...body, max_tokens: 5});
  assert.equal(input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
});

const all = Object.entries(tools).map(
    ([name, t]) => ({name, description: t.description, input_schema: t.parameters}));

test('thinking on and off, by the real model', async () => {
  for (const thinking of [{type: 'disabled'}, {type: 'enabled', budget_tokens: 1024}]) {
    const body = {
      model: 'm', max_tokens: 1500, temperature: 0, thinking,
      messages: [{role: 'user', content: 'What is 27 + 45?'}],
    };
    const whole = await real.messages.create(body);
    const types = whole.content.map((b) => b.type);
    assert.deepEqual(types, thinking.type === 'enabled' ? ['thinking', 'text'] : ['text']);
    const streamed = await real.messages.stream(body).finalMessage();
    assert.deepEqual(streamed.content, whole.content);
  }
});

test('the schema of a strict tool, by the real model', async () => {
  const reply = await real.messages.create({
    model: 'm', max_tokens: 200, temperature: 1.5,
    messages: [{role: 'user', content: 'Well?'}],
    tool_choice: {type: 'tool', name: 'say', disable_parallel_tool_use: true},
    tools: [{
      name: 'say', strict: true,
      input_schema: {
        type: 'object', additionalProperties: false, required: ['word', 'n', 'code'],
        properties: {
          word: {enum: ['red', 'green']},
          n: {type: 'integer', minimum: 1, maximum: 5},
          code: {type: 'string', pattern: '^[a-f]{4}$'},
        },
      },
    }],
  });
  const {input} = reply.content.find((b) => b.type === 'tool_use');
  assert.ok(['red', 'green'].includes(input.word) && input.n >= 1 && input.n <= 5);
  assert.match(input.code, /^[a-f]{4}$/);
});

test('an abort ends the request', async () => {
  const stream = client.messages.stream(ask('x'.repeat(1000), {cut: 1, delay_ms: 20}));
  let n = 0;
  stream.on('text', () => {
    ++n;
    stream.abort();
  });
  await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError);
  assert.ok(n < 100);
  await untilIdle(model);
});

test('an agent loop over the tools of the real model', async () => {
  const messages = [{role: 'user', content: 'What is the weather in Paris?'}];
  const called = [];
  for (let turn = 0; turn < 4; ++turn) {
    const reply = await real.messages.create(
        {model: 'm', max_tokens: 120, temperature: 0, messages, tools: all});
    messages.push({role: 'assistant', content: reply.content});
    const calls = reply.content.filter((b) => b.type === 'tool_use');
    if (calls.length === 0) break;
    called.push(...calls.map((b) => b.name));
    messages.push({
      role: 'user',
      content: calls.map((b) => ({type: 'tool_result', tool_use_id: b.id, content: tools[b.name].run(b.input)})),
    });
  }
  assert.equal(called[0], 'get_weather');
});

test('each choice of a tool, by the real model', async () => {
  const body = {model: 'm', max_tokens: 200, temperature: 0, tools: all};
  const asked = async (content, tool_choice) => {
    const asked = {...body, messages: [{role: 'user', content}], tool_choice};
    const whole = await real.messages.create(asked);
    const streamed = await real.messages.stream(asked).finalMessage();
    const plain = (m) => m.content.map(({id, ...rest}) => rest);
    assert.deepEqual(plain(streamed), plain(whole));
    assert.equal(streamed.stop_reason, whole.stop_reason);
    return whole;
  };
  const auto = await asked('What is the weather in Paris?', {type: 'auto'});
  assert.equal(auto.content.find((b) => b.type === 'tool_use')?.name, 'get_weather');
  const none = await asked('What is the weather in Paris?', {type: 'none'});
  assert.ok(none.content.every((b) => b.type === 'text'));
  const any = await asked('Who are you?', {type: 'any'});
  assert.ok(any.stop_reason === 'max_tokens' || any.content.some((b) => b.type === 'tool_use'));
  const named = await asked('Hi', {type: 'tool', name: 'lookup'});
  assert.ok(named.stop_reason === 'max_tokens' ||
            named.content.filter((b) => b.type === 'tool_use').every((b) => b.name === 'lookup'));
});

test('the errors are of their classes', async () => {
  await assert.rejects(client.messages.create({model: 'm', max_tokens: 5, messages: []}),
                       Anthropic.BadRequestError);
  await assert.rejects(
      client.messages.create({model: 'm', max_tokens: 5, messages: [{role: 'user', content: hugeText()}]}),
      (e) => e instanceof Anthropic.APIError && e.status === 413);
  await assert.rejects(client.post('/v1/nothing', {body: {}}), Anthropic.NotFoundError);
  await assert.rejects(client.messages.create(ask('', {code: 'resource'})),
                       (e) => e instanceof Anthropic.InternalServerError && e.status === 503);
  const stream = client.messages.stream(ask('abc', {cut: 1, code: 'internal'}));
  await assert.rejects(stream.finalMessage(), Anthropic.AnthropicError);
  const [closed, full] =
      await Promise.all([scriptedServer('--api-key', 'secret'), scriptedServer('--full')]);
  try {
    await assert.rejects(open(closed).messages.create(ask('a')), Anthropic.AuthenticationError);
    await assert.rejects(open(full).messages.create(ask('a')), Anthropic.RateLimitError);
  } finally {
    await Promise.all([closed.stop(), full.stop()]);
  }
});
