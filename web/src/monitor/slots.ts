/** A place for a running request, as /slots tells it, or as far as the other figures do. */
export interface Slot {
  id: string;
  busy: boolean;
  promptTokens?: number;
  answerTokens?: number;
  contextTokens?: number;
  /** Of the prompt, while it is being read. */
  readTokens?: number;
  seconds?: number;
}

function first(slot: Record<string, unknown>, names: string[]): number | undefined {
  for (const name of names) {
    const value = slot[name];
    if (typeof value === 'number' && Number.isFinite(value)) return value;
  }
  return undefined;
}

export function slotsFrom(body: unknown): Slot[] | null {
  const list = Array.isArray(body) ? body : (body as { slots?: unknown } | null)?.slots;
  if (!Array.isArray(list)) return null;
  return list.map((value, i): Slot => {
    const slot = (value ?? {}) as Record<string, unknown>;
    const state = typeof slot.state === 'string' ? slot.state : '';
    const ms = first(slot, ['ms', 'running_ms']);
    return {
      id: String(slot.id ?? i),
      busy: slot.is_processing === true || slot.busy === true || (state !== '' && state !== 'idle' && state !== 'free'),
      promptTokens: first(slot, ['prompt_tokens', 'n_prompt_tokens']),
      answerTokens: first(slot, ['answer_tokens', 'completion_tokens', 'n_decoded']),
      readTokens: state === 'reading' ? first(slot, ['read_tokens']) : undefined,
      contextTokens: first(slot, ['context_tokens', 'context_length', 'n_ctx']),
      seconds: first(slot, ['seconds']) ?? (ms === undefined ? undefined : ms / 1000),
    };
  });
}

/** Which are taken is not known then, only how many. */
export function slotsFromCounts(n: number, running: number): Slot[] {
  return Array.from({ length: Math.min(n, 256) }, (_, i) => ({ id: String(i), busy: i < running }));
}

export interface Wait {
  what: string;
  seconds?: number;
}

/** Requests without a slot, where the list has them. */
export function waitingFrom(body: unknown): Wait[] {
  const list = (body as { waiting?: unknown } | null | undefined)?.waiting;
  if (!Array.isArray(list)) return [];
  const waits = list.map((value): Wait => {
    const row = (value ?? {}) as Record<string, unknown>;
    const n = first(row, ['prompt_tokens']);
    const ms = first(row, ['running_ms', 'ms']);
    const what = 'a request for a slot' + (n === undefined ? '' : ` (prompt: ${n} tokens)`);
    return { what, seconds: ms === undefined ? undefined : ms / 1000 };
  });
  return waits.sort((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0));
}

/** What the engine waits for, oldest first. */
export function waitsFrom(engine: Record<string, unknown>): Wait[] {
  if (Array.isArray(engine.waits)) {
    const waits = engine.waits.map((value): Wait => {
      if (typeof value === 'string') return { what: value };
      const wait = (value ?? {}) as Record<string, unknown>;
      const ms = first(wait, ['ms', 'waited_ms']);
      const seconds = first(wait, ['seconds']) ?? (ms === undefined ? undefined : ms / 1000);
      return { what: String(wait.what ?? wait.name ?? ''), seconds };
    });
    return waits
      .filter(({ what }) => what !== '')
      .sort((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0));
  }
  return typeof engine.wait === 'string' && engine.wait ? [{ what: engine.wait }] : [];
}
