import {createOpenAICompatible} from '@ai-sdk/openai-compatible';
import {generateObject, generateText, jsonSchema, stepCountIs, streamText, tool} from 'ai';
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {demoServer, script, scriptedServer, tools, weatherCall, weatherParameters} from './support.mjs';

let demo, model, scripted, real;
const open = (server) => createOpenAICompatible(
    {name: 'strata', baseURL: server.url + '/v1', supportsStructuredOutputs: true, includeUsage: true})('m');
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

test('an object by its schema, from the real model', async () => {
  const {object} = await generateObject({
    model: real, temperature: 1, seed: 3, maxOutputTokens: 60, prompt: 'Well?',
    schema: jsonSchema({
      type: 'object',
      properties: {word: {enum: ['red', 'green']}, n: {type: 'integer', minimum: 1, maximum: 5}},
      required: ['word', 'n'],
      additionalProperties: false,
    }),
  });
  assert.ok(['red', 'green'].includes(object.word) && object.n >= 1 && object.n <= 5);
});

test('an agent loop over the tools of the real model', async () => {
  const result = await generateText({
    model: real, temperature: 0, maxOutputTokens: 120, stopWhen: stepCountIs(4),
    prompt: 'What is the weather in Paris?',
    tools: Object.fromEntries(Object.entries(tools).map(
        ([name, t]) => [name, tool({
          description: t.description,
          inputSchema: jsonSchema(t.parameters),
          execute: async (input) => t.run(input),
        })])),
  });
  const calls = result.steps.flatMap((step) => step.toolCalls.map((call) => call.toolName));
  assert.equal(calls[0], 'get_weather');
});
