import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import OpenAI from 'openai';
import {
  demoServer, hugeText, script, scriptedServer, tools, untilIdle, weatherCall, weatherParameters,
} from './support.mjs';

let demo, model, client, real;
const open = (server, more = {}) =>
    new OpenAI({baseURL: server.url + '/v1', apiKey: 'none', maxRetries: 0, ...more});
before(async () => {
  [demo, model] = await Promise.all([demoServer(), scriptedServer()]);
  client = open(model);
  real = open(demo);
});
after(() => Promise.all([demo?.stop(), model?.stop()]));

const weather = {
  type: 'function',
  function: {name: 'get_weather', description: 'Weather', parameters: weatherParameters},
};
const ask = (text, options, more = {}) =>
    ({model: 'any', messages: [{role: 'user', content: script(text, options)}], ...more});

async function collect(stream) {
  const all = {content: '', reasoning: '', calls: [], finish: null, usage: null};
  for await (const chunk of stream) {
    if (chunk.usage) all.usage = chunk.usage;
    const choice = chunk.choices[0];
    if (!choice) continue;
    all.content += choice.delta.content ?? '';
    all.reasoning += choice.delta.reasoning_content ?? '';
    for (const call of choice.delta.tool_calls ?? []) {
      if (call.id) all.calls[call.index] = {id: call.id, name: call.function.name, arguments: ''};
      all.calls[call.index].arguments += call.function.arguments ?? '';
    }
    all.finish = choice.finish_reason ?? all.finish;
  }
  return all;
}

test('text, streamed and not', async () => {
  const body = ask('Hello, \u{1F600} world.', {cut: 1});
  const whole = await client.chat.completions.create(body);
  assert.equal(whole.choices[0].message.content, 'Hello, \u{1F600} world.');
  assert.equal(whole.choices[0].finish_reason, 'stop');
  const joined = await collect(await client.chat.completions.create(
      {...body, stream: true, stream_options: {include_usage: true}}));
  assert.equal(joined.content, whole.choices[0].message.content);
  assert.deepEqual(joined.usage, whole.usage);
  const runner = client.chat.completions.stream(body);
  assert.equal((await runner.finalMessage()).content, 'Hello, \u{1F600} world.');
});

test('reasoning on and off', async () => {
  for (const stream of [false, true]) {
    const body = ask('<think>\nhm\n</think>\n\nYes.', {cut: 2}, {stream});
    const reply = await client.chat.completions.create(body);
    const got = stream ? await collect(reply) : reply.choices[0].message;
    assert.equal(got.content, 'Yes.');
    assert.equal(stream ? got.reasoning : got.reasoning_content, 'hm');
  }
  const off = await real.chat.completions.create({
    model: 'm', temperature: 0, max_tokens: 60, reasoning_effort: 'none',
    messages: [{role: 'user', content: 'What is a piano?'}],
  });
  assert.match(off.choices[0].message.content, /keyboard instrument/);
  assert.equal(off.choices[0].message.reasoning_content, undefined);
});

test('calls, streamed and not', async () => {
  const text = 'Looking.\n' + weatherCall('Paris') + '\n' + weatherCall('"Oslo"\n\\ line');
  const body = ask(text, {cut: 3}, {tools: [weather]});
  const whole = await client.chat.completions.create(body);
  const joined = await collect(await client.chat.completions.create({...body, stream: true}));
  assert.equal(whole.choices[0].finish_reason, 'tool_calls');
  assert.equal(joined.finish, 'tool_calls');
  const calls = whole.choices[0].message.tool_calls;
  assert.deepEqual(calls.map((c) => JSON.parse(c.function.arguments)),
                   [{city: 'Paris'}, {city: '"Oslo"\n\\ line'}]);
  assert.deepEqual(joined.calls.map((c) => c.arguments), calls.map((c) => c.function.arguments));
  assert.equal(new Set([...calls, ...joined.calls].map((c) => c.id)).size, 4);
});

test('reasoning on and off, by the real model', async () => {
  for (const enable_thinking of [false, true]) {
    for (const stream of [false, true]) {
      const reply = await real.chat.completions.create({
        model: 'm', temperature: 0, max_tokens: 200, stream,
        messages: [{role: 'user', content: 'What is 27 + 45?'}],
        chat_template_kwargs: {enable_thinking},
      });
      const got = stream ? await collect(reply) : reply.choices[0].message;
      const reasoning = stream ? got.reasoning : got.reasoning_content ?? '';
      assert.equal(reasoning.length > 0, enable_thinking);
      assert.ok(!got.content.includes('think>'));
    }
  }
});

test('each choice of a tool, by the real model', async () => {
  const all = Object.entries(tools).map(
      ([name, {description, parameters}]) =>
          ({type: 'function', function: {name, description, parameters}}));
  const with_choice = async (tool_choice, content = 'Who are you?', temperature = 0) => {
    const body = {
      model: 'm', temperature, seed: 1, max_tokens: 200, tools: all, tool_choice,
      messages: [{role: 'user', content}],
    };
    const {choices: [choice]} = await real.chat.completions.create(body);
    const joined = await collect(await real.chat.completions.create({...body, stream: true}));
    assert.equal(joined.finish, choice.finish_reason);
    assert.equal(joined.content, choice.message.content ?? '');
    assert.deepEqual(
        joined.calls.map((c) => [c.name, c.arguments]),
        (choice.message.tool_calls ?? []).map((c) => [c.function.name, c.function.arguments]));
    return choice;
  };
  const auto = await with_choice('auto', 'What is the weather in Paris?');
  assert.equal(auto.message.tool_calls?.[0].function.name, 'get_weather');
  const none = await with_choice('none', 'What is the weather in Paris?');
  assert.equal(none.message.tool_calls, undefined);
  for (const temperature of [0, 1.5]) {
    const required = await with_choice('required', 'Who are you?', temperature);
    if (required.finish_reason === 'length') continue;
    assert.equal(required.finish_reason, 'tool_calls');
    for (const call of required.message.tool_calls) {
      assert.ok(tools[call.function.name]);
      assert.equal(typeof JSON.parse(call.function.arguments), 'object');
    }
    const named = await with_choice({type: 'function', function: {name: 'lookup'}}, 'Hi', temperature);
    if (named.finish_reason === 'length') continue;
    assert.ok(named.message.tool_calls.every((c) => c.function.name === 'lookup'));
  }
});

test('a schema, by the real model', async () => {
  const schema = {
    type: 'object',
    properties: {answer: {enum: ['yes', 'no']}, n: {type: 'integer', minimum: 3, maximum: 9}},
    required: ['answer', 'n'],
    additionalProperties: false,
  };
  for (const stream of [false, true]) {
    const body = {
      model: 'm', temperature: 1.5, seed: 4, max_tokens: 60, stream,
      messages: [{role: 'user', content: 'Well?'}],
      response_format: {type: 'json_schema', json_schema: {name: 'x', strict: true, schema}},
    };
    const reply = await real.chat.completions.create(body);
    const got = JSON.parse(stream ? (await collect(reply)).content : reply.choices[0].message.content);
    assert.deepEqual(Object.keys(got), ['answer', 'n']);
    assert.ok(['yes', 'no'].includes(got.answer) && got.n >= 3 && got.n <= 9);
  }
});

test('log-probabilities, by the real model', async () => {
  const reply = await real.chat.completions.create({
    model: 'm', temperature: 0, max_tokens: 8, logprobs: true, top_logprobs: 3,
    messages: [{role: 'user', content: 'What is a piano?'}],
  });
  const {content} = reply.choices[0].logprobs;
  assert.equal(content.map((t) => t.token).join(''), reply.choices[0].message.content);
  for (const token of content) {
    assert.equal(token.top_logprobs.length, 3);
    assert.equal(token.top_logprobs[0].token, token.token);
    assert.ok(token.logprob <= 0);
    assert.ok(token.top_logprobs.reduce((sum, t) => sum + Math.exp(t.logprob), 0) <= 1.0001);
  }
  const streamed = [];
  const stream = await real.chat.completions.create({
    model: 'm', temperature: 0, max_tokens: 8, logprobs: true, top_logprobs: 3, stream: true,
    messages: [{role: 'user', content: 'What is a piano?'}],
  });
  for await (const chunk of stream) streamed.push(...chunk.choices[0]?.logprobs?.content ?? []);
  assert.deepEqual(streamed, content);
});

test('an abort ends the request', async () => {
  const controller = new AbortController();
  const stream = await client.chat.completions.create(
      ask('x'.repeat(1000), {cut: 1, delay_ms: 20}, {stream: true}), {signal: controller.signal});
  // The loop of an aborted stream ends without an error.
  let n = 0;
  for await (const _ of stream) {
    ++n;
    controller.abort();
  }
  assert.ok(n < 100);
  await untilIdle(model);
});

test('the errors are of their classes', async () => {
  const bad = (more) => client.chat.completions.create({model: 'm', messages: [], ...more});
  await assert.rejects(bad({}), (e) => e instanceof OpenAI.BadRequestError && e.param === 'messages');
  await assert.rejects(client.post('/nothing/here', {body: {}}), OpenAI.NotFoundError);
  await assert.rejects(
      client.chat.completions.create({model: 'm', messages: [{role: 'user', content: hugeText()}]}),
      (e) => e.status === 413);
  await assert.rejects(client.chat.completions.create(ask('', {code: 'resource'})),
                       (e) => e instanceof OpenAI.InternalServerError && e.status === 503);
  await assert.rejects(client.chat.completions.create(ask('', {code: 'internal'})),
                       (e) => e instanceof OpenAI.InternalServerError && e.status === 500);
  const stream = await client.chat.completions.create(ask('abc', {cut: 1, code: 'internal'}, {stream: true}));
  await assert.rejects(collect(stream), OpenAI.APIError);
  const [closed, full] =
      await Promise.all([scriptedServer('--api-key', 'secret'), scriptedServer('--full')]);
  try {
    await assert.rejects(open(closed).chat.completions.create(ask('a')), OpenAI.AuthenticationError);
    const good = await open(closed, {apiKey: 'secret'}).chat.completions.create(ask('a'));
    assert.equal(good.choices[0].message.content, 'a');
    await assert.rejects(open(full).chat.completions.create(ask('a')), OpenAI.RateLimitError);
  } finally {
    await Promise.all([closed.stop(), full.stop()]);
  }
});

test('responses, streamed and not', async () => {
  const body = {
    model: 'm',
    input: script('<think>\nhm\n</think>\n\nSo.\n' + weatherCall('Paris'), {cut: 2}),
    tools: [{type: 'function', name: 'get_weather', parameters: weatherParameters, strict: false}],
  };
  const whole = await client.responses.create(body);
  assert.equal(whole.output_text, 'So.');
  assert.deepEqual(whole.output.map((item) => item.type), ['reasoning', 'message', 'function_call']);
  assert.deepEqual(JSON.parse(whole.output[2].arguments), {city: 'Paris'});
  let text = '', last;
  for await (const event of await client.responses.create({...body, stream: true})) {
    if (event.type === 'response.output_text.delta') text += event.delta;
    last = event;
  }
  assert.equal(text, 'So.');
  assert.equal(last.type, 'response.completed');
  // The next turn, with the items that came.
  const next = await client.responses.create({
    model: 'm',
    input: [
      ...whole.output,
      {type: 'function_call_output', call_id: whole.output[2].call_id, output: 'sunny'},
      {role: 'user', content: script('Fine.')},
    ],
  });
  assert.equal(next.output_text, 'Fine.');
});

test('an agent loop over the tools of the real model', async () => {
  const all = Object.entries(tools).map(
      ([name, {description, parameters}]) =>
          ({type: 'function', function: {name, description, parameters}}));
  for (const [question, name] of [['What is the weather in Paris?', 'get_weather'],
                                  ['What time is it in Oslo?', 'get_time']]) {
    const messages = [{role: 'user', content: question}];
    const called = [];
    for (let turn = 0; turn < 4; ++turn) {
      const reply = await real.chat.completions.create(
          {model: 'm', temperature: 0, max_tokens: 120, messages, tools: all});
      const {message} = reply.choices[0];
      messages.push(message);
      if (!message.tool_calls) break;
      for (const call of message.tool_calls) {
        called.push(call.function.name);
        messages.push({
          role: 'tool',
          tool_call_id: call.id,
          content: tools[call.function.name].run(JSON.parse(call.function.arguments)),
        });
      }
    }
    assert.deepEqual(called.slice(0, 1), [name]);
  }
});
