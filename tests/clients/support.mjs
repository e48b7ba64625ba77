// Starts the servers that the suites of this folder talk to.
//   STRATA_BINARY           the program, with its demo model
//   STRATA_SCRIPTED_SERVER  the same server before a model that writes what the test says
import {spawn} from 'node:child_process';
import {fileURLToPath} from 'node:url';
import path from 'node:path';

const root = fileURLToPath(new URL('../..', import.meta.url));
const build = path.join(root, 'build/release/bin');
const binary = process.env.STRATA_BINARY ?? path.join(build, 'strata');
const scripted = process.env.STRATA_SCRIPTED_SERVER ?? path.join(build, 'scripted_server');

async function start(command, args) {
  const child = spawn(command, args, {cwd: root, stdio: ['ignore', 'ignore', 'pipe']});
  const url = await new Promise((resolve, reject) => {
    let log = '';
    child.stderr.on('data', (data) => {
      log += data;
      const found = / on (http:\/\/\S+)/.exec(log);
      if (found) resolve(found[1]);
    });
    child.on('exit', (code) => reject(new Error(`left with ${code}: ${log}`)));
  });
  for (;;) {
    const reply = await fetch(url + '/health').catch(() => ({status: 0}));
    if (reply.status === 200) break;
    if (child.exitCode !== null) throw new Error('the server left');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    url,
    stop: () => new Promise((resolve) => {
      child.on('exit', resolve);
      child.kill('SIGKILL');
    }),
  };
}

export const demoServer = (...args) =>
    start(binary, ['serve', '--port', '0', '--threads', '1', ...args]);
export const scriptedServer = (...args) => start(scripted, args);

// What the scripted model is to write: the last message of a user.
// cut: bytes of a piece; finish: "stop" or "length"; fail: an error after so many pieces.
export const script = (text, options = {}) => 'SCRIPT ' + JSON.stringify({text, ...options});

export const weatherCall = (city) => `<tool_call>\n<function=get_weather>\n<parameter=city>\n${
    city}\n</parameter>\n</function>\n</tool_call>`;

export const weatherParameters = {
  type: 'object',
  properties: {city: {type: 'string', description: 'The city'}},
  required: ['city'],
};

// Ends once nothing is being written any more: what was aborted has left the engine, too.
export async function untilIdle(server) {
  for (let busy = 1; busy > 0;) {
    const {slots} = await (await fetch(server.url + '/slots')).json();
    busy = slots.filter((slot) => slot.state !== 'idle').length;
  }
}

// Beyond what a server takes.
export const hugeText = () => 'x'.repeat(17 << 20);

// What the demo model knows to call.
export const tools = {
  get_weather: {
    description: 'The weather in a city',
    parameters: weatherParameters,
    run: ({city}) => `It is sunny in ${city}.`,
  },
  calculate: {
    description: 'Computes an expression',
    parameters: {
      type: 'object',
      properties: {expression: {type: 'string'}},
      required: ['expression'],
    },
    run: ({expression}) => String(expression.split('+').map(Number).reduce((a, b) => a + b, 0)),
  },
  lookup: {
    description: 'Looks up a word',
    parameters: {type: 'object', properties: {word: {type: 'string'}}, required: ['word']},
    run: ({word}) => `${word}: a word`,
  },
  get_time: {
    description: 'The time in a city',
    parameters: weatherParameters,
    run: ({city}) => `It is noon in ${city}.`,
  },
};
