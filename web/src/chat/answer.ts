import { Failure, failureOf, request } from '../base/api';
import { readEvents } from '../base/events';
import type { Measured } from './conversation';

/** What a streamed answer consists of, in the order it comes. */
export type Piece =
  | { type: 'opened'; model: string }
  | { type: 'reasoning'; text: string }
  | { type: 'content'; text: string }
  /** Of the call with this number; id and name come with its first piece. */
  | { type: 'call'; index: number; id?: string; name?: string; text: string }
  | { type: 'end'; reason: string }
  | { type: 'measured'; measured: Measured };

interface Chunk {
  model?: string;
  error?: { message?: string; code?: string };
  choices?: {
    delta?: {
      content?: string | null;
      reasoning_content?: string | null;
      tool_calls?: {
        index?: number;
        id?: string;
        function?: { name?: string; arguments?: string };
      }[];
    };
    finish_reason?: string | null;
  }[];
  usage?: {
    completion_tokens: number;
    prompt_tokens?: number;
    prompt_tokens_details?: { cached_tokens?: number };
  } | null;
  timings?: {
    decode_tokens_per_s?: number;
    queue_ms?: number;
    prompt_ms?: number;
    drafts_guessed?: number[];
    drafts_right?: number[];
  };
}

/** The server sends a comment every few seconds; after so long a silence nobody is there. */
const SILENCE_MS = 60_000;

/** Asks for an answer. Throws a Failure, or what `signal` was aborted with. */
export async function* streamAnswer(
  body: Record<string, unknown>,
  signal: AbortSignal,
  silenceMs = SILENCE_MS,
): AsyncGenerator<Piece> {
  const silent = new AbortController();
  const stop = () => silent.abort(signal.reason);
  signal.addEventListener('abort', stop);
  if (signal.aborted) stop();
  let timer = 0;
  const alive = () => {
    clearTimeout(timer);
    const failure = new Failure('cut', 'The server fell silent.');
    timer = setTimeout(() => silent.abort(failure), silenceMs) as unknown as number;
  };
  try {
    alive();
    const response = await request('v1/chat/completions', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
      signal: silent.signal,
    });
    if (!response.ok || !response.body) throw await failureOf(response);
    yield* pieces(response.body, alive);
  } catch (error) {
    if (signal.aborted || error instanceof Failure) throw error;
    if (silent.signal.aborted) throw silent.signal.reason;
    throw new Failure('cut', 'The connection ended before the answer did.');
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}

async function* pieces(
  stream: ReadableStream<Uint8Array>,
  alive: () => void,
): AsyncGenerator<Piece> {
  let opened = false;
  let ended = false;
  for await (const data of readEvents(stream)) {
    alive();
    if (data === null) continue;
    if (data === '[DONE]') break;
    const chunk: Chunk = JSON.parse(data);
    if (chunk.error) {
      throw new Failure('server', chunk.error.message ?? 'The server could not go on.', {
        code: chunk.error.code,
      });
    }
    if (!opened) yield { type: 'opened', model: chunk.model ?? '' };
    opened = true;
    const choice = chunk.choices?.[0];
    if (choice?.delta?.reasoning_content)
      yield { type: 'reasoning', text: choice.delta.reasoning_content };
    if (choice?.delta?.content) yield { type: 'content', text: choice.delta.content };
    for (const { index = 0, id, function: of } of choice?.delta?.tool_calls ?? [])
      yield { type: 'call', index, id, name: of?.name, text: of?.arguments ?? '' };
    if (choice?.finish_reason) {
      ended = true;
      yield { type: 'end', reason: choice.finish_reason };
    }
    const measured = measuredOf(chunk);
    if (measured) yield { type: 'measured', measured };
  }
  if (!ended) throw new Failure('cut', 'The connection ended before the answer did.');
}

function sum(counts: number[] | undefined): number | undefined {
  return Array.isArray(counts) ? counts.reduce((all, n) => all + n, 0) : undefined;
}

export function measuredOf({ usage, timings }: Chunk): Measured | null {
  if (!usage) return null;
  const firstMs = (timings?.queue_ms ?? 0) + (timings?.prompt_ms ?? 0);
  return {
    tokens: usage.completion_tokens,
    promptTokens: usage.prompt_tokens,
    cachedTokens: usage.prompt_tokens_details?.cached_tokens,
    rate: timings?.decode_tokens_per_s || undefined,
    drafted: sum(timings?.drafts_guessed),
    accepted: sum(timings?.drafts_right),
    firstSeconds: firstMs > 0 ? firstMs / 1000 : undefined,
  };
}
