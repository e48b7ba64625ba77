'use strict';

const byId = (id) => document.getElementById(id);
const chat = byId('chat');
const text = byId('text');

let messages = [];
let running = null;  // AbortController of the answer that is being written

function keyHeaders() {
  const key = sessionStorage.getItem('key');
  return key ? {'Authorization': 'Bearer ' + key} : {};
}

// Everything from outside goes in as text, never as HTML.
function addTurn(kind, content) {
  byId('hello').hidden = true;
  const turn = document.createElement('div');
  turn.className = 'turn ' + kind;
  turn.textContent = content;
  chat.append(turn);
  chat.scrollTop = chat.scrollHeight;
  return turn;
}

function addAnswer() {
  const turn = addTurn('assistant', '');
  const details = document.createElement('details');
  const summary = document.createElement('summary');
  summary.textContent = 'Thoughts';
  const thoughts = document.createElement('div');
  details.append(summary, thoughts);
  details.hidden = true;
  const body = document.createElement('div');
  turn.append(details, body);
  return {turn, details, thoughts, body};
}

// Appends, and stays at the end only if the reader was there.
function append(element, piece) {
  const atEnd = chat.scrollHeight - chat.scrollTop - chat.clientHeight < 40;
  element.append(document.createTextNode(piece));
  if (atEnd) chat.scrollTop = chat.scrollHeight;
}

function setRunning(controller) {
  running = controller;
  byId('stop').hidden = !controller;
  byId('send').disabled = Boolean(controller);
}

function askForKey() {
  byId('key-form').hidden = false;
  byId('key').focus();
}

// Calls onData with the data of each event of a text/event-stream.
async function readEvents(stream, onData) {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let buffer = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    buffer += decoder.decode(value, {stream: true});
    let end;
    while ((end = buffer.indexOf('\n\n')) >= 0) {
      const event = buffer.slice(0, end);
      buffer = buffer.slice(end + 2);
      for (const line of event.split('\n')) {
        if (line.startsWith('data: ')) onData(line.slice(6));
      }
    }
  }
}

async function errorOf(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return 'HTTP ' + response.status;
  }
}

async function ask(question) {
  messages.push({role: 'user', content: question});
  addTurn('user', question);
  const answer = addAnswer();
  const controller = new AbortController();
  setRunning(controller);
  byId('speed').textContent = '';

  let content = '';
  let failed = false;
  let finished = false;
  let nPieces = 0;
  let firstAt = 0;
  const fail = (message) => {
    failed = true;
    addTurn('error', message);
  };

  const onData = (data) => {
    if (data === '[DONE]') return;
    const event = JSON.parse(data);
    if (event.error) return fail(event.error.message);
    if (event.usage) showSpeed(event);
    const choice = event.choices[0];
    if (!choice) return;
    if (choice.finish_reason) finished = true;
    if (choice.finish_reason === 'length') answer.turn.title = 'cut at the token limit';
    const {content: piece, reasoning_content: thought} = choice.delta;
    if (thought) {
      answer.details.hidden = false;
      append(answer.thoughts, thought);
    }
    if (piece) {
      content += piece;
      append(answer.body, piece);
    }
    if (thought || piece) {
      const now = performance.now();
      if (!firstAt) firstAt = now;
      if (nPieces++ && now > firstAt) {
        const rate = (nPieces - 1) * 1000 / (now - firstAt);
        byId('speed').textContent = 'about ' + rate.toFixed(1) + ' tokens/s';
      }
    }
  };

  try {
    const response = await fetch('/v1/chat/completions', {
      method: 'POST',
      headers: {'Content-Type': 'application/json', ...keyHeaders()},
      body: JSON.stringify({
        model: 'default',
        messages,
        stream: true,
        stream_options: {include_usage: true},
        temperature: Number(byId('temperature').value),
        chat_template_kwargs: {enable_thinking: byId('thinking').checked},
      }),
      signal: controller.signal,
    });
    if (response.status === 401) askForKey();
    if (response.ok) {
      await readEvents(response.body, onData);
      if (!finished && !failed) fail('The connection ended before the answer did.');
    } else {
      fail(await errorOf(response));
    }
  } catch (error) {
    if (error.name === 'AbortError') {
      if (answer.turn.isConnected) addTurn('note', 'Stopped.');
    } else {
      fail('The server cannot be reached.');
    }
  }
  if (running === controller) setRunning(null);
  // A chat that was left for a new one keeps out of it.
  if (!answer.turn.isConnected) return;
  if (content) {
    messages.push({role: 'assistant', content});
  } else if (failed) {
    messages.pop();
    answer.turn.remove();
    if (!text.value) text.value = question;
  }
}

function showSpeed(event) {
  const {usage, timings} = event;
  const rate = timings && timings.decode_tokens_per_s;
  byId('speed').textContent = usage.completion_tokens + ' tokens' +
      (rate ? ', ' + rate.toFixed(1) + ' tokens/s' : '');
}

async function showState() {
  let words = 'cannot be reached';
  let again = 2000;
  try {
    const health = await (await fetch('/health')).json();
    byId('model').textContent = health.model;
    document.title = health.model + ' - strata';
    words = health.status === 'ready' ? '' : [health.status, health.phase, ...health.reasons]
        .filter(Boolean).join(': ');
    if (health.status === 'ready') again = 15000;
  } catch {
    // Said below, tried again later.
  }
  byId('state').textContent = words;
  setTimeout(showState, again);
}

byId('form').addEventListener('submit', (event) => {
  event.preventDefault();
  const question = text.value.trim();
  if (!question || running) return;
  text.value = '';
  ask(question);
});

text.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    byId('form').requestSubmit();
  }
});

byId('stop').addEventListener('click', () => running && running.abort());

byId('new').addEventListener('click', () => {
  if (running) running.abort();
  setRunning(null);
  messages = [];
  for (const turn of chat.querySelectorAll('.turn')) turn.remove();
  byId('hello').hidden = false;
  byId('speed').textContent = '';
  text.focus();
});

byId('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('key', byId('key').value);
  byId('key-form').hidden = true;
  text.focus();
});

showState();
