import {createOpenAICompatible} from '@ai-sdk/openai-compatible';
import {
  APICallError, generateObject, generateText, jsonSchema, stepCountIs, streamObject, streamText, tool,
} from 'ai';
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {
  demoServer, hugeText, script, scriptedServer, tools, untilIdle, weatherCall, weatherParameters,
} from './support.mjs';

let demo, model, scripted, real;
const provider = (server, more = {}) => createOpenAICompatible({
  name: 'strata', baseURL: server.url + '/v1', supportsStructuredOutputs: true, includeUsage: true, ...more,
});
const open = (server, more) => provider(server, more)('m');
before(async () => {
  [demo, model] = await Promise.all([demoServer(), scriptedServer()]);
  scripted = open(model);
  real = open(demo);
});
after(() => Promise.all([demo?.stop(), model?.stop()]));

test('text and reasoning, streamed and not', async () => {
  const prompt = script('<think>\nhm\n</think>\n\nYes, \u{1F600}.', {cut: 1});
  const whole = await generateText({model: scripted, prompt});
  assert.equal(whole.text, 'Yes, \u{1F600}.');
  assert.equal(whole.reasoningText, 'hm');
  const stream = streamText({model: scripted, prompt});
  assert.equal(await stream.text, whole.text);
  assert.equal(await stream.reasoningText, 'hm');
  assert.equal(await stream.finishReason, 'stop');
});

test('calls, streamed and not', async () => {
  const asked = {
    model: scripted,
    prompt: script(weatherCall('Paris') + '\n' + weatherCall('Oslo'), {cut: 2}),
    tools: {get_weather: tool({description: 'w', inputSchema: jsonSchema(weatherParameters)})},
  };
  const whole = await generateText(asked);
  assert.deepEqual(whole.toolCalls.map((c) => c.input), [{city: 'Paris'}, {city: 'Oslo'}]);
  const stream = streamText(asked);
  assert.deepEqual((await stream.toolCalls).map((c) => c.input), [{city: 'Paris'}, {city: 'Oslo'}]);
  assert.equal(await stream.finishReason, 'tool-calls');
});

const realTools = Object.fromEntries(Object.entries(tools).map(
    ([name, t]) => [name, tool({
      description: t.description,
      inputSchema: jsonSchema(t.parameters),
      execute: async (input) => t.run(input),
    })]));

test('each choice of a tool, by the real model, streamed and not', async () => {
  const calls = async (toolChoice, prompt) => {
    const body = {model: real, temperature: 0, maxOutputTokens: 200, tools: realTools, toolChoice, prompt};
    const whole = await generateText(body);
    const stream = streamText(body);
    const names = (list) => list.map((call) => call.toolName);
    assert.deepEqual(names(await stream.toolCalls), names(whole.toolCalls));
    assert.equal(await stream.finishReason, whole.finishReason);
    return [whole.finishReason, names(whole.toolCalls)];
  };
  assert.deepEqual(await calls('auto', 'What is the weather in Paris?'), ['tool-calls', ['get_weather']]);
  assert.deepEqual((await calls('none', 'What is the weather in Paris?'))[1], []);
  const [reason, any] = await calls('required', 'Who are you?');
  assert.ok(reason === 'length' || any.length > 0);
  const [end, named] = await calls({type: 'tool', toolName: 'lookup'}, 'Hi');
  assert.ok(end === 'length' || named.length > 0);
  assert.ok(named.every((name) => name === 'lookup'));
});

test('reasoning on and off, by the real model', async () => {
  for (const enable_thinking of [false, true]) {
    const reply = await generateText({
      model: real, temperature: 0, maxOutputTokens: 200, prompt: 'What is 27 + 45?',
      providerOptions: {strata: {chat_template_kwargs: {enable_thinking}}},
    });
    assert.equal((reply.reasoningText ?? '').length > 0, enable_thinking);
  }
});

test('log-probabilities are in the body of the answer', async () => {
  const {response, text} = await generateText({
    model: real, temperature: 0, maxOutputTokens: 8, prompt: 'What is a piano?',
    providerOptions: {strata: {logprobs: true, top_logprobs: 2}},
  });
  const {content} = response.body.choices[0].logprobs;
  assert.equal(content.map((t) => t.token).join(''), text);
  assert.ok(content.every((t) => t.top_logprobs.length === 2));
});

test('an abort ends the request', async () => {
  const controller = new AbortController();
  const stream = streamText({
    model: scripted, prompt: script('x'.repeat(1000), {cut: 1, delay_ms: 20}),
    abortSignal: controller.signal, onError: () => {},
  });
  let n = 0;
  for await (const part of stream.fullStream) {
    if (part.type !== 'text-delta') continue;
    ++n;
    controller.abort();
  }
  assert.ok(n > 0 && n < 100);
  await untilIdle(model);
});

test('errors have their status, and say whether another try may help', async () => {
  const [closed, full] =
      await Promise.all([scriptedServer('--api-key', 'secret'), scriptedServer('--full')]);
  const fails = (model, prompt, status, isRetryable) =>
      assert.rejects(generateText({model, prompt, maxRetries: 0}), (e) => {
        assert.ok(APICallError.isInstance(e), String(e));
        assert.deepEqual([e.statusCode, e.isRetryable], [status, isRetryable]);
        return true;
      });
  const other = (more) => open(model, more);
  try {
    await fails(other({transformRequestBody: (body) => ({...body, messages: []})}), 'x', 400, false);
    await fails(open(closed), 'x', 401, false);
    await fails(other({baseURL: model.url + '/nothing'}), 'x', 404, false);
    await fails(scripted, hugeText(), 413, false);
    await fails(open(full), 'x', 429, true);
    await fails(scripted, script('', {code: 'resource'}), 503, true);
    const {text} = await generateText({model: open(closed, {apiKey: 'secret'}), prompt: script('a')});
    assert.equal(text, 'a');
  } finally {
    await Promise.all([closed.stop(), full.stop()]);
  }
});

test('an object by its schema, from the real model, streamed and not', async () => {
  const body = {
    model: real, temperature: 1, seed: 3, maxOutputTokens: 60, prompt: 'Well?',
    schema: jsonSchema({
      type: 'object',
      properties: {word: {enum: ['red', 'green']}, n: {type: 'integer', minimum: 1, maximum: 5}},
      required: ['word', 'n'],
      additionalProperties: false,
    }),
  };
  const {object} = await generateObject(body);
  const stream = streamObject(body);
  let last;
  for await (const partial of stream.partialObjectStream) last = partial;
  assert.deepEqual(last, object);
  assert.ok(['red', 'green'].includes(object.word) && object.n >= 1 && object.n <= 5);
});

test('an agent loop over the tools of the real model', async () => {
  const result = await generateText({
    model: real, temperature: 0, maxOutputTokens: 120, stopWhen: stepCountIs(4),
    prompt: 'What is the weather in Paris?',
    tools: realTools,
  });
  const calls = result.steps.flatMap((step) => step.toolCalls.map((call) => call.toolName));
  assert.equal(calls[0], 'get_weather');
});
