import { apiKey, Failure, keyWanted } from '../base/api';
import { newId } from '../base/id';
import { Store } from '../base/store';
import { streamAnswer, type Piece } from './answer';
import {
  append,
  find,
  patch,
  remove,
  show,
  wireMessages,
  type Call,
  type Measured,
  type Message,
  type Role,
} from './conversation';
import { change, conversation, keepConversation, startConversation, writing } from './library';
import { requestFields, settings } from './settings';

/** An answer that is being written. Several conversations may have one at the same time. */
export interface Run {
  message: string;
  controller: AbortController;
  /** `waiting` until the first token; `again`: the server was busy, it is asked again at `until`. */
  phase: 'waiting' | 'writing' | 'again';
  why?: string;
  until?: number;
}

/** By conversation. */
export const runs = new Store<ReadonlyMap<string, Run>>(new Map());
/** For those who do not see it: what happened last. */
export const spoken = new Store('');

const MAX_TRIES = 5;
/** Pieces come faster than is worth drawing. */
const DRAW_MS = 50;
const KEEP_MS = 2_000;

function setRun(id: string, run: Run | null): void {
  const next = new Map(runs.value);
  if (run) next.set(id, run);
  else next.delete(id);
  if (run) writing.add(id);
  else writing.delete(id);
  runs.set(next);
}

export function stop(id: string): void {
  runs.value.get(id)?.controller.abort();
}

function message(role: Role, parent: string | null, content: string): Message {
  const state = role === 'user' ? 'done' : 'writing';
  return { id: newId(), parent, role, content, reasoning: '', state, at: Date.now() };
}

/** A message at the end of what is shown, or of a new conversation. */
export function send(id: string | null, content: string): void {
  const target = (id && conversation(id)) || startConversation();
  if (runs.value.has(target.id)) return;
  const asked = message('user', target.leaf, content);
  change(target.id, (each) => append(each, asked));
  void answer(target.id, asked.id);
}

/** Another version of a message. After a changed question comes a new answer. */
export function edit(id: string, messageId: string, content: string): void {
  const before = find(conversation(id)!, messageId);
  if (!before || runs.value.has(id)) return;
  const after = { ...message(before.role, before.parent, content), state: 'done' as const };
  change(id, (each) => append(each, after));
  if (before.role === 'user') void answer(id, after.id);
}

/** Another answer to the same question. One that failed without a word gives way to it. */
export function retry(id: string, messageId: string): void {
  const before = find(conversation(id)!, messageId);
  if (!before || runs.value.has(id)) return;
  if (before.role === 'user') return void answer(id, messageId);
  if (before.parent === null) return;
  if (!before.content && !before.reasoning && !before.calls) change(id, (each) => remove(each, messageId));
  void answer(id, before.parent);
}

/** What a tool gave that an answer has called. With the last of them the model goes on. */
export function giveResult(id: string, messageId: string, index: number, result: string): void {
  if (runs.value.has(id)) return;
  const given = (old: Message) => ({
    ...old,
    calls: old.calls?.map((call, i) => (i === index ? { ...call, result } : call)),
  });
  change(id, (each) => patch(each, messageId, given));
  const { calls } = find(conversation(id)!, messageId)!;
  if (calls?.every((call) => call.result !== undefined)) void answer(id, messageId);
}

export function showVersion(id: string, messageId: string): void {
  if (!runs.value.has(id)) change(id, (each) => show(each, messageId));
}

async function answer(id: string, question: string): Promise<void> {
  const controller = new AbortController();
  const reply = message('assistant', question, '');
  change(id, (each) => append(each, reply));
  const run: Run = { message: reply.id, controller, phase: 'waiting' };
  setRun(id, run);
  spoken.set('Waiting for the answer.');
  const writer = new Writer(id, reply.id);
  const body = {
    model: 'default',
    messages: wireMessages(conversation(id)!, question, settings.value.system),
    ...requestFields(settings.value),
  };
  try {
    for (let n = 1; ; n++) {
      try {
        for await (const piece of streamAnswer(body, controller.signal)) {
          if (piece.type !== 'opened' && runs.value.get(id)?.phase !== 'writing')
            setRun(id, { ...run, phase: 'writing' });
          writer.take(piece);
        }
        break;
      } catch (error) {
        if (controller.signal.aborted || writer.begun || n === MAX_TRIES) throw error;
        await untilWorthTrying(error, id, run, n);
        setRun(id, run);
      }
    }
    writer.finish();
  } catch (error) {
    if (controller.signal.aborted) writer.finish('stopped');
    else writer.finish('failed', problemIn(error));
  }
  setRun(id, null);
}

function problemIn(error: unknown): string {
  if (error instanceof Failure) return error.message;
  return 'The answer could not be read: ' + String(error);
}

/** Waits after a failure that may pass; throws the others on. */
async function untilWorthTrying(error: unknown, id: string, run: Run, n: number): Promise<void> {
  const { signal } = run.controller;
  if (error instanceof Failure && error.kind === 'key') {
    setRun(id, { ...run, phase: 'again', why: 'The server asks for an API key.' });
    await keyGiven(signal, error);
  } else if (error instanceof Failure && error.kind === 'busy') {
    const seconds = Math.min(error.details.retryAfter ?? 2 ** n, 60);
    const until = Date.now() + seconds * 1000;
    setRun(id, { ...run, phase: 'again', why: error.message, until });
    await pause(seconds * 1000, signal);
  } else {
    throw error;
  }
}

/** The key dialog sets a key, or is closed without one. */
function keyGiven(signal: AbortSignal, error: Failure): Promise<void> {
  return new Promise((resolve, reject) => {
    const ends = [
      apiKey.subscribe(() => settle(resolve)),
      keyWanted.subscribe(() => {
        if (!keyWanted.value) settle(() => reject(error));
      }),
    ];
    const settle = (how: () => void) => {
      for (const end of ends) end();
      how();
    };
    signal.addEventListener('abort', () => settle(() => reject(signal.reason)), { once: true });
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    const stopped = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    signal.addEventListener('abort', stopped, { once: true });
  });
}

function isText({ type }: Piece): boolean {
  return type === 'reasoning' || type === 'content' || type === 'call';
}

function withPiece(calls: Call[] = [], piece: Piece & { type: 'call' }): Call[] {
  const { id = '', name = '', arguments: before = '' } = calls[piece.index] ?? {};
  const next = [...calls];
  next[piece.index] = {
    id: piece.id ?? id,
    name: piece.name ?? name,
    arguments: before + piece.text,
  };
  return next;
}

/** Puts the pieces of an answer into its message: often for the eye, seldom into storage. */
class Writer {
  begun = false;
  private pending: Piece[] = [];
  private timer: ReturnType<typeof setTimeout> | null = null;
  private keptAt = Date.now();
  private thoughtSince = 0;
  private firstAt = 0;
  private nPieces = 0;

  constructor(
    private readonly id: string,
    private readonly messageId: string,
  ) {}

  take(piece: Piece): void {
    if (piece.type !== 'opened') this.begun = true;
    if (piece.type === 'reasoning') this.thoughtSince ||= Date.now();
    if (isText(piece)) this.count();
    this.pending.push(piece);
    this.timer ??= setTimeout(() => this.flush(), DRAW_MS);
  }

  private count(): void {
    this.firstAt ||= performance.now();
    this.nPieces++;
  }

  /** A piece is a token, or a few where several come in one step. */
  private counted(): Measured | undefined {
    const seconds = (performance.now() - this.firstAt) / 1000;
    if (this.nPieces === 0) return undefined;
    const rate = this.nPieces > 1 && seconds > 0.2 ? (this.nPieces - 1) / seconds : undefined;
    return { tokens: this.nPieces, rate, counted: true };
  }

  private flush(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    const pieces = this.pending;
    this.pending = [];
    const now = Date.now();
    const kept = now - this.keptAt > KEEP_MS;
    if (kept) this.keptAt = now;
    change(this.id, (each) => patch(each, this.messageId, (old) => this.applied(old, pieces)), kept);
  }

  private applied(old: Message, pieces: Piece[]): Message {
    const next = { ...old };
    for (const piece of pieces) {
      if (piece.type === 'opened') next.model = piece.model;
      if (piece.type === 'reasoning') {
        next.reasoning += piece.text;
        next.reasoningSeconds = (Date.now() - this.thoughtSince) / 1000;
      }
      if (piece.type === 'content') next.content += piece.text;
      if (piece.type === 'call') next.calls = withPiece(next.calls, piece);
      if (isText(piece)) next.measured = this.counted();
      if (piece.type === 'end') next.state = piece.reason === 'length' ? 'length' : 'done';
      if (piece.type === 'measured') next.measured = piece.measured;
    }
    return next;
  }

  finish(state?: Message['state'], problem?: string): void {
    this.flush();
    change(
      this.id,
      (each) => ({
        ...patch(each, this.messageId, (old) => ({ ...old, state: state ?? old.state, problem })),
        updated: Date.now(),
      }),
      false,
    );
    const whole = conversation(this.id);
    if (whole) keepConversation(whole);
    spoken.set(
      problem ? 'The answer failed. ' + problem : state === 'stopped' ? 'Stopped.' : 'Answered.',
    );
  }
}
