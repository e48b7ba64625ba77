// What the page shows when things go wrong, and what it does with answers that mean harm.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { openStream, READY, say, sendError, startFake } from './fake_server.mjs';
import { openBrowser } from './support.mjs';

let browser, fake, script, page, context, faults;

before(async () => {
  browser = await openBrowser();
});
after(() => browser?.close());

beforeEach(async () => {
  script = { health: READY, answer: (_, reply) => say(reply, 'Well.'), get: {} };
  fake = await startFake(script);
  ({ page, context, faults } = await browser.visit(fake.url));
});
afterEach(async () => {
  await context.close();
  await fake.stop();
});

const field = () => page.getByRole('textbox', { name: 'Message', exact: true });
const last = () => page.locator('.message').last();

async function ask(words) {
  await field().fill(words);
  await field().press('Enter');
}

async function answered(words) {
  await last().locator('.prose', { hasText: words }).waitFor();
  await last().locator('.figures').waitFor();
}

test('a busy server is asked again when it said so', async () => {
  script.answer = (_, reply, n) =>
    n < 3
      ? sendError(reply, n === 1 ? 429 : 503, 'too many requests are waiting', { 'Retry-After': '1' })
      : say(reply, 'At last.');
  await ask('x');
  await page.getByText('Too many requests are waiting. Asked again in 1 s.').waitFor();
  await answered('At last.');
  assert.equal(fake.bodies.length, 3);
});

test('one who waits for a busy server can stop', async () => {
  script.answer = (_, reply) => sendError(reply, 503, 'loading', { 'Retry-After': '50' });
  await ask('x');
  await page.getByText(/Asked again in (50|49) s/).waitFor();
  await page.keyboard.press('Escape');
  await last().getByText('Stopped.').waitFor();
  assert.equal(fake.bodies.length, 1);
});

test('a refusal is shown in the words of the server and not asked again', async () => {
  script.answer = (_, reply) => sendError(reply, 400, 'temperature must be at most 100');
  await ask('x');
  await last().getByText('Temperature must be at most 100.').waitFor();
  script.answer = (_, reply) => say(reply, 'Fine now.');
  await last().getByRole('button', { name: 'Try again' }).click();
  await answered('Fine now.');
  // An answer that failed without a word leaves no version behind.
  assert.equal(await page.locator('.versions').count(), 0);
  assert.equal(fake.bodies.length, 2);
});

test('a stream that is cut keeps what came, and the next try stands beside it', async () => {
  let cut;
  script.answer = (_, reply) => {
    openStream(reply).delta({ content: 'Half an ans' });
    cut = () => reply.destroy();
  };
  await ask('x');
  await last().getByText('Half an ans').waitFor();
  cut();
  await last().getByText('The connection ended before the answer did.').waitFor();
  assert.equal(await last().locator('.prose').innerText(), 'Half an ans');
  script.answer = (_, reply) => say(reply, 'Whole.');
  await last().getByRole('button', { name: 'Try again' }).click();
  await answered('Whole.');
  assert.match(await last().locator('.versions').innerText(), /2 \/ 2/);
});

test('an error inside the stream', async () => {
  script.answer = (_, reply) => {
    const stream = openStream(reply);
    stream.delta({ content: 'Begun' });
    stream.event({ error: { message: 'the engine was lost' } });
    reply.end('data: [DONE]\n\n');
  };
  await ask('x');
  await last().getByText('The engine was lost.').waitFor();
});

test('a key is asked for, and the question goes on with the right one', async () => {
  script.key = 'secret';
  await ask('x');
  const key = page.getByLabel('Key', { exact: true });
  await key.fill('wrong');
  await key.press('Enter');
  await page.getByText('The server does not know this key.').waitFor();
  await key.fill('secret');
  await page.getByLabel('Remember it in this browser').check();
  await key.press('Enter');
  await answered('Well.');
  await page.reload();
  await ask('y');
  await answered('Well.');
  assert.equal(await page.getByRole('dialog').count(), 0);
  // Closing the dialog gives the question up.
  script.key = 'other';
  await ask('z');
  await key.waitFor();
  await page.keyboard.press('Escape');
  await last().locator('.problem').waitFor();
});

test('the monitor says that it needs a key, and does not insist', async () => {
  script.key = 'secret';
  script.get['/metrics'] = 'strata_engine_slots 4\nstrata_engine_running_requests 1\n';
  await page.keyboard.press('Alt+m');
  const button = page.getByRole('button', { name: 'API key…' });
  await button.click();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await button.click();
  await page.getByLabel('Key', { exact: true }).fill('secret');
  await page.keyboard.press('Enter');
  await page.getByText('of 4 slots').waitFor();
});

test('a server that goes away and comes back', async () => {
  script.health = null;
  script.answer = (_, reply) => reply.destroy();
  await ask('x');
  await last().getByText('The server cannot be reached.').waitFor();
  await page.getByText('it is tried again every two seconds').waitFor();
  script.health = { ...READY, status: 'restarting', reasons: ['ended by signal 9'] };
  await page.getByText('The engine is being started again').waitFor();
  await page.getByText('Ended by signal 9.').waitFor();
  script.health = { ...READY, status: 'degraded', reasons: ['1 of 9 steps failed'] };
  await page.getByText('not all is well. 1 of 9 steps failed.').waitFor();
  script.health = READY;
  await page.locator('.banner').waitFor({ state: 'detached' });
});

test('HTML in an answer stays text, and links lead nowhere bad', async () => {
  const evil = [
    '<img src=x onerror="window.hit=1"><script>window.hit=2</script>',
    '',
    '<iframe srcdoc="<script>parent.hit=3</script>"></iframe>',
    '',
    '[a](javascript:window.hit=4) ![b](http://elsewhere.example/x.png) <http://good.example/>',
    '',
    '```html\n<svg onload="window.hit=5"></svg>\n```',
    '',
    '| <b>x</b> |\n|---|\n| <style>*{display:none}</style> |',
  ].join('\n');
  script.answer = (_, reply) => say(reply, evil, evil);
  await ask(evil);
  await last().locator('.figures').waitFor();
  await last().getByRole('button', { name: /^Thought/ }).click();
  const inside = '.messages :is(img, script, iframe, style, svg:not(.icon), [onerror], [onload])';
  assert.equal(await page.locator(inside).count(), 0);
  const links = await last().locator('.prose a').evaluateAll((all) => all.map((a) => a.href));
  assert.deepEqual(links, ['http://elsewhere.example/x.png', 'http://good.example/']);
  assert.ok((await last().locator('.prose').innerText()).includes('<script>window.hit=2</script>'));
  assert.equal(await page.evaluate(() => window.hit), undefined);
  // The browser itself refuses to make HTML of a string.
  await assert.rejects(page.evaluate(() => (document.body.innerHTML = '<p>x')), /TrustedHTML/);
  faults = faults.filter((fault) => !/TrustedHTML/.test(fault));
  assert.deepEqual(faults, []);
});

test('settings become the fields of the request, and nothing else is sent', async () => {
  await ask('plain');
  await answered('Well.');
  const plain = fake.bodies.at(-1);
  assert.deepEqual(Object.keys(plain).sort(), ['messages', 'model', 'stream', 'stream_options']);
  await page.keyboard.press('Alt+s');
  await page.getByLabel('System prompt').fill('Be brief.');
  await page.getByLabel('Top-p').fill('0.9');
  await page.getByLabel('Seed').fill('-1');
  await page.getByText('has to be at least 0; not used').waitFor();
  await page.getByRole('combobox', { name: 'Thinking' }).selectOption('on');
  await page.getByLabel('Stop at').fill('END\n\\n\\n');
  await page.keyboard.press('Escape');
  await ask('again');
  await answered('Well.');
  const { messages, model, stream, stream_options, ...fields } = fake.bodies.at(-1);
  assert.deepEqual(fields, {
    top_p: 0.9,
    stop: ['END', '\n\n'],
    chat_template_kwargs: { enable_thinking: true },
  });
  assert.deepEqual(messages.map(({ role }) => role), ['system', 'user', 'assistant', 'user']);
});

test('the settings of the server stand where nothing was typed', async () => {
  script.get['/props'] = {
    default_generation_settings: { temperature: 0.7, top_k: 20 },
    chat_template: { enable_thinking: false, reasoning_effort: true },
  };
  await page.reload();
  await page.getByRole('button', { name: /^Thinking/ }).waitFor({ state: 'hidden' });
  await page.keyboard.press('Alt+s');
  await page.getByPlaceholder('default: 0.7').waitFor();
  assert.equal(await page.getByLabel('Top-k').getAttribute('placeholder'), 'default: 20');
  assert.equal(await page.getByLabel('Seed').getAttribute('placeholder'), 'default');
  assert.equal(await page.getByRole('combobox', { name: 'Thinking' }).count(), 0);
  assert.equal(await page.getByRole('combobox', { name: 'Effort' }).count(), 1);
});

test('calls of tools are folded, and the model goes on with their results', async () => {
  const tools = [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } }];
  await page.keyboard.press('Alt+s');
  await page.getByLabel('Tools').fill('[{"type": "function"}]');
  await page.getByText('A tool has no function.name.').waitFor();
  await page.getByLabel('Tools').fill(JSON.stringify(tools));
  await page.keyboard.press('Escape');
  script.answer = (body, reply, n) => {
    if (n > 1) return say(reply, 'Sunny in both.');
    const stream = openStream(reply);
    const call = (index, function_, id) => stream.delta({ tool_calls: [{ index, id, function: function_ }] });
    call(0, { name: 'get_weather', arguments: '' }, 'call_a');
    call(0, { arguments: '{"city":' });
    call(0, { arguments: '"Paris"}' });
    call(1, { name: 'get_weather', arguments: '{"city":"Oslo"}' }, 'call_b');
    stream.end('tool_calls');
  };
  await ask('Weather?');
  const calls = page.locator('.call');
  await calls.nth(1).waitFor();
  await last().locator('.figures').waitFor();
  assert.equal(await last().getByText('The answer is empty.').count(), 0);
  const fold = calls.first().getByRole('button', { name: /^Calls get_weather/ });
  assert.equal(await fold.getAttribute('aria-expanded'), 'false');
  await fold.click();
  assert.equal(await calls.first().locator('.thoughts').innerText(), '{\n  "city": "Paris"\n}');
  for (const i of [0, 1]) {
    await calls.nth(i).getByLabel('Result of get_weather').fill(`sunny ${i}`);
    await calls.nth(i).getByRole('button', { name: 'Give' }).click();
  }
  await answered('Sunny in both.');
  await page.getByRole('button', { name: /^Called get_weather/ }).first().waitFor();
  const call = (id, city) => ({ id, type: 'function', function: { name: 'get_weather', arguments: `{"city":"${city}"}` } });
  assert.equal(fake.bodies.length, 2);
  assert.deepEqual(fake.bodies[1].tools, tools);
  assert.deepEqual(fake.bodies[1].messages, [
    { role: 'user', content: 'Weather?' },
    { role: 'assistant', content: '', tool_calls: [call('call_a', 'Paris'), call('call_b', 'Oslo')] },
    { role: 'tool', tool_call_id: 'call_a', content: 'sunny 0' },
    { role: 'tool', tool_call_id: 'call_b', content: 'sunny 1' },
  ]);
  await page.reload();
  await page.getByText('Sunny in both.').waitFor();
  assert.equal(await page.locator('.call').count(), 2);
});

test('the monitor leaves out what the server does not report', async () => {
  await page.keyboard.press('Alt+m');
  await page.getByText('Nothing is here.').or(page.getByText('nothing is here')).waitFor();
  script.get['/metrics'] = 'strata_engine_slots 4\nstrata_engine_running_requests 1\n';
  await page.getByText('of 4 slots').waitFor();
  for (const title of ['Answers', 'Experts on cards', 'Experts in RAM', 'Drafts', 'Memory', 'Since the start'])
    assert.equal(await page.getByRole('heading', { name: title, exact: true }).count(), 0, title);
  script.get['/metrics'] +=
    'strata_engine_expert_hits_total{tier="card"} 90\nstrata_engine_expert_misses_total{tier="card"} 10\n' +
    'strata_engine_expert_hits_total{tier="ram"} 3\nstrata_engine_expert_misses_total{tier="ram"} 1\n' +
    'strata_engine_guessed_tokens_total{depth="1"} 7\nstrata_engine_guessed_tokens_total{depth="2"} 3\n' +
    'strata_engine_right_guesses_total{depth="1"} 6\nstrata_engine_right_guesses_total{depth="2"} 2\n';
  await page.getByText('90.0 %').waitFor();
  await page.getByText('75.0 %').waitFor();
  await page.getByText('80.0 %').waitFor();
  script.health = null;
  await page.locator('.cards.old').waitFor();
});

test('the plan of memory is drawn, a stack for each place', async () => {
  const GIB = 2 ** 30;
  const lines = [
    { owner: 'experts', name: 'slots', bytes: 6 * GIB },
    { owner: 'state', name: 'trunk cells', bytes: 2 * GIB },
  ];
  const card = { name: 'card0', budget_bytes: 9 * GIB, reserve_bytes: GIB, peak_bytes: 8 * GIB, lines };
  script.get['/metrics'] = 'strata_engine_slots 1\n';
  script.get['/slots'] = [{ id: 0, is_processing: true, n_ctx: 100, n_prompt_tokens: 50 }];
  script.get['/props'] = {
    memory_plan: {
      cards: [card],
      ram: { name: 'RAM', budget_bytes: 4 * GIB, peak_bytes: 3 * GIB, lines: [] },
      storage: { experts: 5, bytes: 20 * GIB },
    },
  };
  await page.keyboard.press('Alt+m');
  await page.locator('.place').nth(2).waitFor();
  const name = await page.getByRole('img', { name: /^card0/ }).getAttribute('aria-label');
  assert.equal(name, 'card0: experts 6.0 GiB, context and state 2.0 GiB, reserve 1.0 GiB, free 1.0 GiB');
  const widths = await page
    .locator('.place')
    .first()
    .locator('.stack span')
    .evaluateAll((spans) => spans.map((span) => span.getBoundingClientRect().width));
  assert.ok(Math.abs(widths[0] / widths[1] - 3) < 0.1, String(widths));
  assert.equal(await page.locator('.slots .busy').getAttribute('title'), 'Slot 0: busy, prompt 50 tokens');
});

test('where the browser keeps nothing the page works and says so', async () => {
  await context.addInitScript(() => {
    Object.defineProperty(window, 'indexedDB', { get: () => undefined });
    Storage.prototype.setItem = () => {
      throw new Error('full');
    };
  });
  await page.reload();
  await page.getByText('conversations end with it').waitFor();
  await ask('x');
  await answered('Well.');
});

test('what was exported can be read in another browser', async () => {
  await ask('To be taken along');
  await answered('Well.');
  await page.keyboard.press('Alt+s');
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Export all' }).click(),
  ]);
  const { page: other, faults: itsFaults } = await browser.visit(fake.url);
  await other.keyboard.press('Alt+s');
  const file = other.getByLabel('Export to read');
  await file.setInputFiles({ name: 'x.json', mimeType: 'text/plain', buffer: Buffer.from('{}') });
  await other.getByText('That is no export of this page.').waitFor();
  await file.setInputFiles(await download.path());
  await other.getByText('1 conversation read.').waitFor();
  await other.keyboard.press('Escape');
  await other.reload();
  await other.locator('.entry', { hasText: 'To be taken along' }).locator('.title').click();
  await other.locator('.prose', { hasText: 'Well.' }).waitFor();
  assert.deepEqual(itsFaults, []);
});

test('two tabs know of each other', async () => {
  const other = await context.newPage();
  await other.goto(fake.url);
  await field().waitFor();
  await other.getByRole('textbox', { name: 'Message', exact: true }).fill('From the other tab');
  await other.keyboard.press('Enter');
  await other.locator('.figures').waitFor();
  await page.locator('.entry', { hasText: 'From the other tab' }).click();
  await answered('Well.');
});

test('the keyboard reaches everything, and everything has a name', async () => {
  await ask('x');
  await answered('Well.');
  const unnamed = await page
    .locator('button, input, textarea, select')
    .evaluateAll((all) =>
      all
        .filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length))
        .map((e) => e.outerHTML),
    );
  assert.deepEqual(unnamed, []);
  await page.keyboard.press('Control+/');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  // Once around: each stop is visible and has a ring.
  await field().focus();
  const stops = new Set();
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press('Tab');
    const stop = await page.evaluate(() => {
      const e = document.activeElement;
      if (!e || e === document.body) return null;
      const { outlineStyle } = getComputedStyle(e);
      const ring = outlineStyle !== 'none' || e.id === 'message';
      return { name: e.ariaLabel || e.textContent.trim(), ring };
    });
    if (!stop) continue;
    assert.ok(stop.ring, `no ring around ${stop.name}`);
    stops.add(stop.name);
  }
  for (const name of ['New chat', 'Monitor', 'Settings', 'Help', 'Copy', 'Edit', 'Try again'])
    assert.ok(stops.has(name), `${name} is not among ${[...stops].join(', ')}`);
});

test('colours follow the system until one chooses', async () => {
  const back = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  await page.emulateMedia({ colorScheme: 'light' });
  const light = await back();
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await back();
  assert.notEqual(light, dark);
  await page.getByRole('button', { name: 'Colours: system' }).click();
  assert.equal(await back(), light);
  await page.reload();
  assert.equal(await back(), light);
  await page.getByRole('button', { name: 'Colours: light' }).click();
  await page.emulateMedia({ colorScheme: 'light' });
  assert.equal(await back(), dark);
});
